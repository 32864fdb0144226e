// The class Accumulate wraps an optimizer so that only every N-th call of step() makes a step. N may depend
// on the epoch. A `Window` adds the gradients, and an `Observer` counts the backward() calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tally/autograd/observer.hpp"
#include "tally/train/trainer.hpp"

namespace tally::lesson {

// Counts the backward() calls that reach any of the parameters through an operation. A call of backward() on
// a parameter itself is not counted, because it runs no backward function.
template <class S> class CallsReaching final : public Observer {
public:
    explicit CallsReaching(const std::vector<Var<Array<S>>>& parameters) : parameters_(parameters) {}

    // Returns the number of calls since the last restart() or since all gradients were cleared.
    std::int64_t restart() { return std::exchange(calls_, 0); }

    void before_backward(const Node& node) override {
        if (std::exchange(call_, detail::backward_calls) != detail::backward_calls)
            ignored_ = for_grad(node);  // the first node of a new backward() call is the call's result
        if (ignored_ || !reads_one(node)) return;
        ignored_ = true;  // counts a call only once, even if the call uses several parameters
        if (std::ranges::none_of(parameters_, &Var<Array<S>>::has_grad)) calls_ = 0;
        ++calls_;
    }

private:
    bool reads_one(const Node& node) const {
        const std::vector<Node*> inputs = node.inputs();
        return std::ranges::any_of(parameters_, [&](const Var<Array<S>>& parameter) {
            return std::ranges::find(inputs, parameter.node()) != inputs.end();
        });
    }
    // Calls of grad() are not counted, because they do not add to the gradients of parameters.
    static bool for_grad(const Node& result) {
        std::vector<const Node*> open{&result};
        std::unordered_set<const Node*> seen;
        while (!open.empty()) {
            const Node* const node = open.back();
            open.pop_back();
            if (!node || !seen.insert(node).second) continue;
            if (node->is_grad_target) return true;
            for (const Node* input : node->inputs()) open.push_back(input);
        }
        return false;
    }

    const std::vector<Var<Array<S>>>& parameters_;
    std::uint64_t call_ = detail::backward_calls;  // the last observed call
    bool ignored_ = true;                          // whether the rest of the call is ignored
    std::int64_t calls_ = 0;
};

// Call step() after each backward(). The caller chooses what happens to a tail, and whether the gradient is a
// mean or a sum, because wrappers differ in both points. step() throws Error if backward() was called twice.
// For a mean, step() also throws Error if the number of items changes, because a mean of means is the mean
// over all items only for equal sizes.
template <class S> class Accumulate {
public:
    Accumulate(Optimizer<S>& optimizer, typename Trainer<S>::AccumulationSteps steps, Reduction reduction,
               Tail tail = Tail::scale)
        : steps_(std::move(steps)),
          window_(optimizer, {.micro_batches = steps_.at(0), .reduction = reduction, .tail = tail}),
          calls_(optimizer.parameters()) {}

    // Returns a text such as "Wrapping 'SGD' optimizer with GA of 4 steps".
    std::string announcement() const {
        return "Wrapping '" + window_.optimizer().name() + "' optimizer with GA of " +
               std::to_string(window_.planned_micro_batches()) + " steps";
    }

    // Returns true if step() has updated the parameters.
    bool step(std::int64_t items) {
        const auto refuse = [&](const std::string& why) {  // backward() has already added the gradient
            window_.add_in_passes([&] { throw Error("[accumulate] " + why + ". Now discard() the window"); });
        };
        if (const std::int64_t calls = calls_.restart(); calls > 1)
            refuse(std::to_string(calls) +
                   " backward() calls have reached the parameters since the last step(); call step() after "
                   "each backward(), or write (a + b).backward() if a micro-batch has several losses");
        if (items < 1) refuse("a micro-batch of " + std::to_string(items) + " items has no mean");
        const std::int64_t before = window_.empty() ? items : window_.items() / window_.micro_batches();
        if (items != before && window_.options().reduction == Reduction::mean)
            refuse("this micro-batch has " + std::to_string(items) + " items, those before " +
                   std::to_string(before) +
                   ": the mean of their means is not the mean over all. Window::add() weighs them right; so "
                   "do losses that are sums, with Reduction::sum");
        window_.after_backward(1, items);
        return window_.full() && window_.finish().stepped;
    }
    bool flush() {  // treats the tail by its policy at the end of an epoch
        const bool stepped = window_.flush().stepped;
        calls_.restart();
        return stepped;
    }
    void begin_epoch(std::int64_t epoch) {
        window_.plan_micro_batches(steps_.at(epoch));
        if (window_.full()) window_.finish();
        calls_.restart();
    }

    const Window<S>& window() const { return window_; }
    Window<S>& window() { return window_; }

private:
    typename Trainer<S>::AccumulationSteps steps_;
    Window<S> window_;
    CallsReaching<S> calls_;  // since the last step()
    Observer::Scope observing_{calls_};
};

}  // namespace tally::lesson
