// The class Picture draws a recorded graph and the gradients of its backward pass as SVG or DOT.
//
//     Picture::KeepValues keep_values;                       // keep values and data for the picture
//     Picture picture;
//     picture.name(w, "w");
//     for (auto micro : split(x, 2)) picture.backward(mean(matmul(micro, w)) / 3);   // one lane each
//     picture.write("divide.svg");
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/var.hpp"
#include "tally/base/text.hpp"
#include "tally/tools/diagram.hpp"

namespace tally {

// A `Picture` draws one or more graphs, each in its own lane. Picture(loss) draws one graph.
class Picture {
public:
    using KeepValues = detail::KeepValues;

    explicit Picture(std::string title = "") { diagram_.title = std::move(title); }
    template <class T> explicit Picture(const Var<T>& loss) { add(loss); }

    // Sets the name of a variable that is drawn later.
    template <class T> Picture& name(const Var<T>& x, std::string text) {
        names_[x.node_or_throw("picture").id] = std::move(text);
        return *this;
    }

    // Draws the graph of `loss` in its current state, in the next lane.
    template <class T> void add(const Var<T>& loss, std::string lane = "") {
        if (loss.node_or_throw("picture").state == detail::State::consumed)
            detail::BackwardPass::throw_consumed("picture", loss.node());
        draw<T>(loss.node());
        box_of(loss.node()).role = detail::Diagram::Role::loss;
        ++losses_;
        diagram_.lanes.push_back(lane.empty() ? "micro-batch " + std::to_string(losses_) : std::move(lane));
    }

    // Draws the graph, runs the backward pass, and draws the gradients.
    template <class T> void backward(const Var<T>& loss, std::string lane = "") {
        add(loss, std::move(lane));
        const std::vector<detail::ValueNode<T>*> leaves = leaves_behind<T>(loss.node());
        struct KeepAlive {  // the backward pass would destroy a leaf that has no handle
            explicit KeepAlive(const std::vector<detail::ValueNode<T>*>& all) : nodes(all) {
                for (detail::ValueNode<T>* node : nodes) ++node->refs;
            }
            ~KeepAlive() {
                for (detail::ValueNode<T>* node : nodes) detail::unref(node);
            }
            const std::vector<detail::ValueNode<T>*>& nodes;
        };
        const KeepAlive hold(leaves);
        std::vector<T> before;  // each leaf's gradient before the current step; an arrow shows the difference
        for (const detail::ValueNode<T>* leaf : leaves)
            before.push_back(leaf->has_complete_gradient() ? leaf->gradient : T());
        std::vector<bool> any(leaves.size());
        for (std::size_t i = 0; i < leaves.size(); ++i) any[i] = leaves[i]->has_complete_gradient();
        int current = -1;
        const auto arrived = [&] {  // labels the gradients that the last backward function sent to leaves
            for (std::size_t i = 0; current >= 0 && i < leaves.size(); ++i) {
                // If the operation reads a leaf several times, the last edge shows the gradient.
                detail::Diagram::Input* edge = nullptr;
                int edges = 0;
                for (auto& input : diagram_.boxes[static_cast<std::size_t>(current)].inputs) {
                    if (input.from != boxes_.at(leaves[i]->id) || !leaves[i]->has_complete_gradient())
                        continue;
                    input.back = true;
                    edge = &input;
                    ++edges;
                }
                if (edge)
                    edge->gradient = text(any[i] ? zip(functor::Sub{}, leaves[i]->gradient, before[i])
                                                 : leaves[i]->gradient) +
                                     (edges > 1 ? " together" : "");
                if (leaves[i]->has_complete_gradient()) {
                    before[i] = leaves[i]->gradient;
                    any[i] = true;
                }
            }
        };
        loss.backward([&](const detail::VisitedNode<T>& visit) {
            const auto drawn = boxes_.find(visit.node.id);
            if (drawn == boxes_.end()) return;  // a node inside a checkpoint, which is drawn as one box
            arrived();
            current = drawn->second;
            detail::Diagram::Box& box = diagram_.boxes[static_cast<std::size_t>(current)];
            box.gradient = text(visit.gradient);
            for (detail::Diagram::Input& input : box.inputs)
                input.back =
                    diagram_.boxes[static_cast<std::size_t>(input.from)].role != detail::Diagram::Role::data;
        });
        arrived();
        for (const detail::ValueNode<T>* leaf : leaves)
            if (leaf->has_complete_gradient()) box_of(leaf).gradient = text(leaf->gradient);
    }

    // Sets the width in pixels at which lines wrap.
    Picture& widest(int pixels) {
        diagram_.widest = pixels;
        return *this;
    }

    std::string svg() const { return to_svg(finished()); }
    std::string dot() const { return to_dot(finished()); }
    void write(const std::string& path) const;  // writes .svg or .dot, completely or not at all

private:
    template <class T> void draw(detail::ValueNode<T>* root) {
        std::map<std::uint64_t, Node*> fresh;  // ordered by id: topologically
        std::vector<Node*> todo{root};
        while (!todo.empty()) {
            Node* node = todo.back();
            todo.pop_back();
            if (boxes_.count(node->id) || !fresh.emplace(node->id, node).second) continue;
            for (Node* input : node->inputs())
                if (input) todo.push_back(input);
        }
        for (const auto& [id, node] : fresh) {
            const auto& shown = static_cast<const detail::ValueNode<T>&>(*node);
            detail::Diagram::Box box;
            box.role = node->state == detail::State::leaf       ? detail::Diagram::Role::parameter
                       : node->state == detail::State::constant ? detail::Diagram::Role::data
                                                                : detail::Diagram::Role::operation;
            box.name = names_.count(id) ? names_.at(id) : node->op();
            if (detail::shape_of(shown.value).rank() > 0)
                box.shape = to_string(detail::shape_of(shown.value));
            box.value = detail::has_memory(shown.value) ? text(shown.value) : "(freed)";
            if (box.role != detail::Diagram::Role::data)
                box.gradient = shown.has_complete_gradient() ? text(shown.gradient) : "-";
            for (const Node* input : node->inputs())
                if (input) box.inputs.push_back({boxes_.at(input->id), false, ""});
            boxes_[id] = static_cast<int>(diagram_.boxes.size());
            diagram_.boxes.push_back(std::move(box));
        }
    }

    template <class T> static std::vector<detail::ValueNode<T>*> leaves_behind(detail::ValueNode<T>* root) {
        std::map<std::uint64_t, Node*> seen;
        std::vector<Node*> todo{root};
        while (!todo.empty()) {
            Node* node = todo.back();
            todo.pop_back();
            if (!seen.emplace(node->id, node).second) continue;
            for (Node* input : node->inputs())
                if (input) todo.push_back(input);
        }
        std::vector<detail::ValueNode<T>*> leaves;
        for (const auto& [id, node] : seen)
            if (node->state == detail::State::leaf)
                leaves.push_back(static_cast<detail::ValueNode<T>*>(node));
        return leaves;
    }

    detail::Diagram::Box& box_of(const Node* node) {
        return diagram_.boxes[static_cast<std::size_t>(boxes_.at(node->id))];
    }
    detail::Diagram finished() const;

    static std::string text(double x) { return detail::short_number(x); }
    static std::string text(float x) { return detail::short_number(static_cast<double>(x)); }
    template <class S> static std::string text(const Array<S>& x) {
        const std::vector<S> values = x.to_vector();
        return x.shape().rank() == 0 ? detail::short_number(static_cast<double>(values[0]))
                                     : detail::short_values(std::span<const S>(values));
    }

    detail::Diagram diagram_;
    std::map<std::uint64_t, std::string> names_;  // by node id
    std::map<std::uint64_t, int> boxes_;          // index in diagram_.boxes, by node id
    int losses_ = 0;
};

}  // namespace tally
