// checkpoint(f, x...) does not keep the graph of f. backward() runs f again to record the graph.
//
// The new nodes of f join the running backward pass, which visits the newest nodes first. Gradients are thus
// added in the same order, and have the same bits, as without a checkpoint. Parameters that f captures get
// gradients as usual. f must depend only on its arguments and captured values. backward() checks this rule.
//
//     Tensor y = checkpoint([&](const Tensor& h) { return relu(linear(h, w, b)); }, x);
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tally/autograd/intercept.hpp"
#include "tally/checkpoint/recompute.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

namespace detail {
// ValueIn<X>::type is the value type of the first variable in X.
template <class X> struct ValueIn : ValueIn<typename X::value_type> {};
template <class T> struct ValueIn<Var<T>> { using type = T; };
template <class First, class... Rest> struct ValueIn<std::tuple<First, Rest...>> : ValueIn<First> {};
template <class First, class Second> struct ValueIn<std::pair<First, Second>> : ValueIn<First> {};

// Passes the gradient of a result of the first run to the corresponding result of the recomputation.
template <class T> void seed_gradient(BackwardPass& backward_pass, const Var<T>& result, const T& gradient) {
    ValueNode<T>& node = *result.node();
    if (!same_shape_and_device(node.value, gradient))
        throw Error("[checkpoint] the first run returned a result of " + describe(gradient) +
                    ", and the recomputation one of " + describe(node.value));
    if (!backward_pass.enqueue_if_needed(&node)) return;
    accumulate_into(node.into(), gradient);
    if (node.state == State::leaf) account_as(node.gradient, MemoryClass::gradient);
}

// The base of RecomputingNode does not depend on F and Arguments, and stores the gradients of all results.
template <class T> class CheckpointNode : public ValueNode<T> {
public:
    CheckpointNode() : ValueNode<T>(T(), State::fresh) {}
    const char* op() const override { return "checkpoint"; }
    std::vector<T> gradients;   // of each result; valid only if `arrived` is true
    std::vector<bool> arrived;  // for each result
};

// A RecomputingNode owns a function and the function's arguments, and runs the function again in backward().
template <class T, class F, class Arguments> class RecomputingNode final : public CheckpointNode<T> {
public:
    RecomputingNode(F&& f, Arguments&& arguments, TraceLog&& log, SavedResults<T>&& saved)
        : f_(std::move(f)), arguments_(std::move(arguments)), log_(std::move(log)), saved_(std::move(saved)) {
        this->gradients.resize(log_.results.size());
        this->arrived.resize(log_.results.size());
        each_var(arguments_, [&](const auto& x) {
            if constexpr (std::is_same_v<decltype(x), const Var<T>&>)
                if (x) saved_arguments_.emplace_back(&x.value());
        });
    }

    std::vector<Node*> inputs() const override {
        std::vector<Node*> all;
        each_var(arguments_, [&](const auto& x) { all.push_back(x.node()); });
        return all;
    }

    void backward(BackwardPass& backward_pass) override {
        for (const Saved<T>& argument : saved_arguments_) argument.get(this->op());
        auto results = recompute(log_, [&] {
            const RecomputeTrace<T> run(log_, saved_);
            auto made = std::apply(*f_, std::as_const(arguments_));
            run.end_recomputation(nodes_of(made));
            return made;
        });
        std::size_t i = 0;
        each_var(results, [&](auto& y) {
            if constexpr (std::is_same_v<decltype(y), Var<T>&>)
                if (this->arrived[i] && y.requires_grad())
                    seed_gradient(backward_pass, y, this->gradients[i]);
            ++i;
        });
        release();
        unref(this);
    }

    void release() override {
        each_var(arguments_, [](auto& x) { x = {}; });
        f_.reset();
        saved_arguments_.clear();
        log_.held_buffers.clear();
        saved_.clear();
        this->gradients.clear();
    }
    void destroy(Node*& pending) override {
        each_var(arguments_, [&](auto& x) {  // adds to `pending`, so that a long chain needs no recursion
            if (x)
                if (Node* const node = std::move(x).take_node(true)) unref(node, pending);
        });
        this->~RecomputingNode();
        pool::give(this, sizeof *this);
    }
    void notify_observer(const ValueInfo& result) const {
        std::vector<ValueInfo> saved_values;
        for (const Saved<T>& argument : saved_arguments_)
            saved_values.push_back(value_info(argument.get(this->op())));
        for (const auto& [index, saved] : saved_) saved_values.push_back(value_info(saved.get(this->op())));
        instrumentation::detail::observer->on_forward({this->op(), this, result, saved_values});
    }

private:
    std::optional<F> f_;
    Arguments arguments_;
    TraceLog log_;
    SavedResults<T> saved_;
    std::vector<Saved<T>> saved_arguments_;  // the arguments with their versions, to detect changes
};

template <class T> class CheckpointResult final : public ValueNode<T> {  // the node of one result
public:
    CheckpointResult(T&& v, CheckpointNode<T>* node, std::size_t which)
        : ValueNode<T>(std::move(v), State::fresh), node_(node), which_(which) {
        ++node->refs;
    }
    const char* op() const override { return "checkpoint"; }
    std::vector<Node*> inputs() const override { return node_ ? node_->inputs() : std::vector<Node*>(); }
    void backward(BackwardPass& backward_pass) override {
        if (this->received_gradient() && backward_pass.enqueue_if_needed(node_)) {
            node_->gradients[which_] = this->gradient;
            node_->arrived[which_] = true;
        }
        release();
        unref(this);
    }
    void release() override {
        if (node_) unref(std::exchange(node_, nullptr));
        if (this->is_grad_target) return;
        reset(this->gradient);
        this->grad_flags = 0;
    }
    void destroy(Node*& pending) override {
        if (node_) unref(node_, pending);
        this->~CheckpointResult();
        pool::give(this, sizeof *this);
    }

private:
    CheckpointNode<T>* node_;
    std::size_t which_;
};

// Creates the node of a result. In an enclosing checkpoint, the result counts as one operation.
template <class T> Var<T> make_result_node(T value, const Var<T>& node_handle, std::size_t which) {
    if (context.interceptor) {  // no operands: the operations inside have added theirs to the outer trace
        OpInfoOf<T> info("checkpoint", true, value, {}, {}, std::nullopt);
        if (!context.interceptor->on_operation(info)) return CheckpointProxyNode<T>::of(std::move(value));
    }
    using Result = CheckpointResult<T>;
    return Var<T>(new (pool::take(sizeof(Result)))
                      Result(std::move(value), static_cast<CheckpointNode<T>*>(node_handle.node()), which));
}
}  // namespace detail

// Returns f(x...), which is a variable, or several variables in a vector, an array, a tuple, a pair or a
// Loss. Each argument may have any copyable type.
template <class F, class... X>
requires std::is_invocable_v<F&, const X&...>
auto checkpoint(F f, X... x) {
    std::tuple<X...> arguments(std::move(x)...);
    using Result = decltype(std::apply(f, std::as_const(arguments)));
    using T = typename detail::ValueIn<Result>::type;
    if (!detail::context.recording) return std::apply(f, std::as_const(arguments));

    detail::TraceLog log;
    detail::SavedResults<T> saved_results;
    const std::uint64_t first_inner_id = detail::context.next_id;
    const auto made_inside = [first_inner_id](const auto& result) {
        return std::is_same_v<decltype(result), const Var<T>&> && result.node()->id >= first_inner_id &&
               result.node()->state == detail::State::fresh;
    };
    const auto first_run = [&] {
        detail::CheckpointTrace run(log, detail::CheckpointTrace::Mode::first_run);
        Result y = std::apply(f, std::as_const(arguments));
        saved_results = detail::save_results<T>(run, y);
        return y;
    };
    Result y = first_run();
    std::optional<detail::ValueInfo> first_result_info;
    detail::each_var(y, [&](const auto& result) {
        if (!first_result_info && made_inside(result)) first_result_info = detail::value_info(result.value());
    });
    if (!first_result_info) return y;

    // A CheckpointNode. Empty in the first run of an enclosing checkpoint, in which the results become proxies.
    Var<T> node_handle;
    if (!detail::CheckpointTrace::current() || !detail::CheckpointTrace::current()->is_first_run()) {
        using Recomputing = detail::RecomputingNode<T, F, std::tuple<X...>>;
        auto* const node = new (pool::take(sizeof(Recomputing)))
            Recomputing(std::move(f), std::move(arguments), std::move(log), std::move(saved_results));
        node_handle = Var<T>(node);
        if (instrumentation::detail::observer) node->notify_observer(*first_result_info);
    }
    std::size_t which = 0;
    std::map<const Node*, Var<T>> made_results;  // f may return a variable twice
    detail::each_var(y, [&](auto& result) {
        const std::size_t index = which++;
        if (!made_inside(result)) return;
        if constexpr (std::is_same_v<decltype(result), Var<T>&>) {
            Var<T>& made = made_results[result.node()];
            if (!made) made = detail::make_result_node<T>(result.value(), node_handle, index);
            result = made;
        }
    });
    return y;
}

}  // namespace tally
