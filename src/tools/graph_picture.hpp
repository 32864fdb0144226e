// The class Picture draws a recorded graph and the gradients of its backward pass as SVG or DOT.
//
//     Picture::KeepValues keep_values;                       // keep values and data for the picture
//     Picture picture;
//     picture.name(w, "w");
//     for (auto micro : split(x, 2)) picture.backward(mean(matmul(micro, w)) / 3);   // one lane each
//     picture.write("divide.svg");
#pragma once

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
        // The backward pass frees a node without a handle, but its gradient is read after the pass of its user.
        const std::map<std::uint64_t, Node*> nodes = behind(loss.node());
        std::vector<Held> held;
        for (const auto& [id, node] : nodes) held.emplace_back(node);
        // The inputs of the operation that runs, and their gradients before it runs; an arrow shows the change.
        std::map<const detail::ValueNode<T>*, T> before;
        int current = -1;
        const auto arrived = [&] {
            for (const auto& [input, earlier] : before) {
                if (!input->complete_gradient()) continue;
                const T& now = input->gradient;
                label(current, boxes_.at(input->id),
                      text(detail::has_memory(earlier) ? zip(functor::Sub{}, now, earlier) : now));
            }
            before.clear();
        };
        loss.backward([&](const detail::VisitedNode<T>& visit) {
            const auto drawn = boxes_.find(visit.node.id);
            if (drawn == boxes_.end()) return;  // a node inside a checkpoint, which is drawn as one box
            arrived();
            current = drawn->second;
            diagram_.boxes[static_cast<std::size_t>(current)].gradient = text(visit.gradient);
            for (Node* node : visit.node.inputs()) {
                if (!node || node->state == detail::State::constant) continue;
                const auto* input = static_cast<const detail::ValueNode<T>*>(node);
                before[input] = input->complete_gradient() ? input->gradient : T();
            }
        });
        arrived();
        for (const auto& [id, node] : nodes) {
            const auto& leaf = static_cast<const detail::ValueNode<T>&>(*node);
            if (node->state == detail::State::leaf && leaf.complete_gradient())
                box_of(node).gradient = text(leaf.gradient);
        }
    }

    std::string svg() const { return to_svg(finished()); }
    std::string dot() const { return to_dot(finished()); }
    void write(const std::string& path) const;  // writes .svg or .dot, completely or not at all

private:
    struct Held {  // keeps a node alive
        explicit Held(Node* n) : node(n) { ++node->refs; }
        Held(Held&& other) noexcept : node(std::exchange(other.node, nullptr)) {}
        ~Held() {
            if (node) detail::unref(node);
        }
        Node* node;
    };

    // Returns the nodes of a graph by their ids, and so in topological order.
    static std::map<std::uint64_t, Node*> behind(Node* root);

    template <class T> void draw(detail::ValueNode<T>* root) {
        for (const auto& [id, node] : behind(root)) {
            if (boxes_.count(id)) continue;
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
                box.gradient = shown.complete_gradient() ? text(shown.gradient) : "-";
            for (const Node* input : node->inputs())
                if (input) box.inputs.push_back({boxes_.at(input->id), false, ""});
            boxes_[id] = static_cast<int>(diagram_.boxes.size());
            diagram_.boxes.push_back(std::move(box));
        }
    }

    detail::Diagram::Box& box_of(const Node* node) {
        return diagram_.boxes[static_cast<std::size_t>(boxes_.at(node->id))];
    }
    // Labels the arrow that carries a gradient to the box `to`. If the operation reads the box several times,
    // its last edge shows the gradient.
    void label(int user, int to, std::string gradient);
    detail::Diagram finished() const;

    static std::string text(double x) { return detail::short_number(x); }
    static std::string text(float x) { return detail::short_number(static_cast<double>(x)); }
    template <class S> static std::string text(const Array<S>& x) {
        const std::vector<S> values = x.to_vector();
        return x.shape().rank() == 0
                   ? text(values[0])
                   : detail::short_values(std::vector<double>(values.begin(), values.end()));
    }

    detail::Diagram diagram_;
    std::map<std::uint64_t, std::string> names_;  // by node id
    std::map<std::uint64_t, int> boxes_;          // index in diagram_.boxes, by node id
    int losses_ = 0;
};

}  // namespace tally
