// checkpoint(f, x...) does not keep the graph of f. backward() runs f again to record the graph.
//
//     Tensor y = checkpoint([&](const Tensor& h) { return relu(linear(h, w, b)); }, x);
//
// The new nodes of f join the running backward pass. They are newer than all queued nodes, so they run next.
// Each gradient is therefore added in the same order, and has the same bits, as without a checkpoint.
// Parameters that f captures get their gradients as usual. f must depend only on its arguments and on the
// values that it captures, and backward() checks this.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tally/autograd/recording_hook.hpp"
#include "tally/checkpoint/recompute.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

namespace detail {
// The value type of the first variable in X.
template <class X> struct ValueIn : ValueIn<typename X::value_type> {};
template <class T> struct ValueIn<Var<T>> { using type = T; };
template <class First, class... Rest> struct ValueIn<std::tuple<First, Rest...>> : ValueIn<First> {};
template <class First, class Second> struct ValueIn<std::pair<First, Second>> : ValueIn<First> {};

// Gives the gradient of a result to the same result of the second run.
template <class T> void seed_gradient(BackwardPass& backward_pass, const Var<T>& result, const T& gradient) {
    ValueNode<T>& node = *result.node();
    if (!same_shape_and_device(node.value, gradient))
        throw Error("[checkpoint] the function gave a result of " + describe(gradient) + ", and now one of " +
                    describe(node.value));
    if (!backward_pass.prepare_gradient(&node)) return;
    accumulate_into(node.into(), gradient);
    if (node.state == State::leaf) account_as(node.gradient, MemoryClass::gradient);
}

// The node of a checkpointed function has no value. Each BlockResult stores its gradient in this node.
template <class T> class BlockNode : public ValueNode<T> {
public:
    BlockNode() : ValueNode<T>(T(), State::fresh) {}
    const char* op() const override { return "checkpoint"; }
    std::vector<T> gradients;   // of each result; valid only if `arrived` is true
    std::vector<bool> arrived;  // for each result
};

// RecomputedBlock owns the function and its arguments, and runs the function again in backward().
template <class T, class F, class Arguments> class RecomputedBlock final : public BlockNode<T> {
public:
    RecomputedBlock(F&& f, Arguments&& arguments, TraceLog&& log, KeptResults<T>&& kept)
        : f_(std::move(f)), arguments_(std::move(arguments)), log_(std::move(log)), kept_(std::move(kept)) {
        this->gradients.resize(log_.results.size());
        this->arrived.resize(log_.results.size());
        each_var(arguments_, [&](const auto& x) {
            if constexpr (std::is_same_v<decltype(x), const Var<T>&>)
                if (x) read_.emplace_back(&x.value());
        });
    }

    std::vector<Node*> inputs() const override {
        std::vector<Node*> all;
        each_var(arguments_, [&](const auto& x) { all.push_back(x.node()); });
        return all;
    }

    void backward(BackwardPass& backward_pass) override {
        for (const Saved<T>& argument : read_) argument.get(this->op());
        auto results = run_again(log_, [&] {
            const Recompute<T> run(log_, kept_);
            auto made = std::apply(*f_, std::as_const(arguments_));
            run.finish_replay(nodes_of(made));
            return made;
        });
        std::size_t i = 0;
        each_var(results, [&](auto& y) {
            if constexpr (std::is_same_v<decltype(y), Var<T>&>)
                if (this->arrived[i] && y.requires_grad())
                    seed_gradient(backward_pass, y, this->gradients[i]);
            ++i;
        });
        clear();
        unref(this);
    }

    void clear() override;
    void destroy(Node*& pending) override;
    void tell(const ValueInfo& result) const;

private:
    std::optional<F> f_;
    Arguments arguments_;
    TraceLog log_;
    KeptResults<T> kept_;
    std::vector<Saved<T>> read_;  // the arguments with their versions, to detect changes
};

template <class T> class BlockResult final : public ValueNode<T> {
public:
    BlockResult(T&& v, BlockNode<T>* block, std::size_t which)
        : ValueNode<T>(std::move(v), State::fresh), block_(block), which_(which) {
        ++block->refs;
    }
    const char* op() const override { return "checkpoint"; }
    std::vector<Node*> inputs() const override { return block_ ? block_->inputs() : std::vector<Node*>(); }
    void backward(BackwardPass& backward_pass) override {
        if (this->grad_flags && backward_pass.prepare_gradient(block_)) {
            block_->gradients[which_] = this->gradient;
            block_->arrived[which_] = true;
        }
        clear();
        unref(this);
    }
    void clear() override;
    void destroy(Node*& pending) override;

private:
    BlockNode<T>* block_;
    std::size_t which_;
};

// Makes the node of a result. An enclosing checkpointed function treats the result as an operation.
template <class T> Var<T> block_result(T value, const Var<T>& whole, std::size_t which) {
    if (context.recorder) {  // no operands are needed, because the result is always recorded
        OpInfoOf<T> operation("checkpoint", true, value, {}, {}, std::nullopt);
        if (!context.recorder->on_operation(operation)) return CheckpointProxyNode<T>::of(std::move(value));
    }
    using Result = BlockResult<T>;
    return Var<T>(new (pool::take(sizeof(Result)))
                      Result(std::move(value), static_cast<BlockNode<T>*>(whole.node()), which));
}

// ---- releasing memory and notifying the observer ----

template <class T, class F, class Arguments> void RecomputedBlock<T, F, Arguments>::clear() {
    each_var(arguments_, [](auto& x) { x = {}; });
    f_.reset();
    read_.clear();
    log_.held_buffers.clear();
    kept_.clear();
    this->gradients.clear();
}

template <class T, class F, class Arguments> void RecomputedBlock<T, F, Arguments>::destroy(Node*& pending) {
    each_var(arguments_, [&](auto& x) {  // adds to `pending`, so that a long chain needs no recursion
        if (x)
            if (Node* const node = std::move(x).into_node(true)) unref(node, pending);
    });
    this->~RecomputedBlock();
    pool::give(this, sizeof *this);
}

template <class T> void BlockResult<T>::clear() {
    if (block_) unref(std::exchange(block_, nullptr));
    if (this->is_grad_target) return;
    reset(this->gradient);
    this->grad_flags = false;
}

template <class T> void BlockResult<T>::destroy(Node*& pending) {
    if (block_) unref(block_, pending);
    this->~BlockResult();
    pool::give(this, sizeof *this);
}

template <class T, class F, class Arguments>
void RecomputedBlock<T, F, Arguments>::tell(const ValueInfo& result) const {
    std::vector<ValueInfo> kept;
    for (const Saved<T>& argument : read_) kept.push_back(value_info(argument.get(this->op())));
    for (const auto& [place, saved] : kept_) kept.push_back(value_info(saved.get(this->op())));
    instrumentation::detail::observer->on_forward({this->op(), this, result, kept});
}
}  // namespace detail

// Returns f(x...), which is a variable, or several in a vector, an array, a tuple, a pair or a Loss. Each x
// may have any copyable type. Inside another checkpoint, each result counts as one operation.
template <class F, class... X>
requires std::is_invocable_v<F&, const X&...>
auto checkpoint(F f, X... x) {
    std::tuple<X...> arguments(std::move(x)...);
    using Result = decltype(std::apply(f, std::as_const(arguments)));
    using T = typename detail::ValueIn<Result>::type;
    if (!detail::context.recording) return std::apply(f, std::as_const(arguments));

    detail::TraceLog log;
    detail::KeptResults<T> kept;
    const std::uint64_t mark = detail::context.next_id;
    const auto made_inside = [mark](const auto& result) {
        return std::is_same_v<decltype(result), const Var<T>&> && result.node()->id >= mark &&
               result.node()->state == detail::State::fresh;
    };
    const auto first_time = [&] {
        detail::CheckpointTrace run(log, detail::CheckpointTrace::Mode::record);
        Result y = std::apply(f, std::as_const(arguments));
        kept = detail::finish_recording<T>(run, y);
        return y;
    };
    Result y = first_time();
    std::optional<detail::ValueInfo> first_made;
    detail::each_var(y, [&](const auto& result) {
        if (!first_made && made_inside(result)) first_made = detail::value_info(result.value());
    });
    if (!first_made) return y;

    Var<T> whole;  // keeps the BlockNode until its results refer to it
    if (!detail::CheckpointTrace::current() || !detail::CheckpointTrace::current()->is_recording()) {
        using Whole = detail::RecomputedBlock<T, F, std::tuple<X...>>;
        auto* const node = new (pool::take(sizeof(Whole)))
            Whole(std::move(f), std::move(arguments), std::move(log), std::move(kept));
        whole = Var<T>(node);
        if (instrumentation::detail::observer) node->tell(*first_made);
    }
    std::size_t which = 0;
    std::map<const Node*, Var<T>> known;  // f may return a variable twice
    detail::each_var(y, [&](auto& result) {
        const std::size_t place = which++;
        if (!made_inside(result)) return;
        if constexpr (std::is_same_v<decltype(result), Var<T>&>) {
            Var<T>& outside = known[result.node()];
            if (!outside) outside = detail::block_result<T>(result.value(), whole, place);
            result = outside;
        }
    });
    return y;
}

}  // namespace tally
