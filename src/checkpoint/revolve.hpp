// Revolve runs backward() through l steps with c snapshots, and recomputes as few steps as possible.
//
// The algorithm is "Algorithm 799: revolve" by Griewank and Walther, 2000. A snapshot is the input of a step,
// and x counts as one. Each step is recorded once. Besides, steps run r l - C(c + r, r - 1) times in all
// without being recorded, where C is a binomial coefficient and r is the smallest number with C(c + r, c) >= l.
//
//     Revolve<Array<float>> chain(steps, 3);
//     Tensor y = chain(x);        // y.backward() runs steps again, from the nearest snapshot
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "tally/checkpoint/chain.hpp"

namespace tally {

namespace detail {
// Returns p(l, c), the number of steps that run without being recorded.
std::uint64_t revolve_cost(std::uint64_t steps, std::uint64_t snapshots);
// Returns how many steps run before the next snapshot is taken. The argument `snapshots` includes the
// snapshot at the first step. A return value of steps - 1 means that no further snapshot is taken.
std::uint64_t revolve_split(std::uint64_t steps, std::uint64_t snapshots);

// Counts steps and snapshots.
struct RevolveCounts {
    std::size_t advanced = 0, recorded = 0;  // steps that only ran, and steps that were recorded
    std::size_t snapshots = 0;               // the most snapshots at one time
};
}  // namespace detail

template <class T> class Revolve {
public:
    using Count = detail::RevolveCounts;

    Revolve(Chain<T> steps, std::size_t snapshots)
        : steps_(std::make_shared<const Chain<T>>(std::move(steps))),
          max_snapshots_(std::min(snapshots, steps_->size())),
          count_(std::make_shared<Count>()) {
        if (steps_->empty()) throw Error("[revolve] the chain has no steps; add at least one");
        if (snapshots < 1)
            throw Error("[revolve] 0 snapshots are too few, because the input counts as one; use at least 1");
    }

    Var<T> operator()(Var<T> x) const;
    const Count& count() const { return *count_; }  // since this Revolve was made

private:
    class Run;
    class StepNode;

    std::shared_ptr<const Chain<T>> steps_;
    std::size_t max_snapshots_;
    std::shared_ptr<Count> count_;
};

// A Run stores the snapshots of one forward pass. The StepNodes share the Run until backward() ends.
template <class T> class Revolve<T>::Run {
public:
    Run(const Revolve& of, const Var<T>& x)
        : steps_(of.steps_), max_snapshots_(of.max_snapshots_), count_(of.count_), x_(x) {}

    // Returns the step after `at` whose input is the next snapshot, or `to` if no snapshot follows.
    std::size_t next_snapshot(std::size_t at, std::size_t to) const {
        const std::size_t free = max_snapshots_ - taken_.size();  // snapshots left, plus the one at `at`
        return at == to ? to : at + static_cast<std::size_t>(detail::revolve_split(to - at + 1, free));
    }
    void take_snapshot(std::size_t step, const T& value) {
        taken_.push_back({step, detail::Saved<T>(&value)});
        count_->snapshots = std::max(count_->snapshots, taken_.size() + 1);
    }
    // Computes the input of a step from the nearest snapshot. Call input_of() for steps in descending order.
    T input_of(std::size_t step) {
        while (!taken_.empty() && taken_.back().step > step) taken_.pop_back();
        std::size_t at = taken_.empty() ? 0 : taken_.back().step;
        T value = taken_.empty() ? x_.value() : taken_.back().value.get("revolve");
        detail::TraceLog log;  // for `trace`, which makes is_recomputing() return true in the steps
        const detail::CheckpointTrace trace(log, detail::CheckpointTrace::Mode::recompute);
        const NoGrad off;
        while (at < step) {
            const std::size_t to = next_snapshot(at, step);
            Var<T> h(std::exchange(value, T()), detail::State::constant);
            for (; at < to; ++at, ++count_->advanced) h = (*steps_)[at](std::move(h));
            value = h.value();
            if (at < step) take_snapshot(at, value);
        }
        return value;
    }
    Var<T> run(std::size_t step, const Var<T>& x) const { return (*steps_)[step](x); }
    detail::RevolveCounts& count() { return *count_; }

private:
    struct Snapshot {
        std::size_t step;  // the step that has this snapshot as its input
        detail::Saved<T> value;
    };
    std::shared_ptr<const Chain<T>> steps_;
    std::size_t max_snapshots_;
    std::shared_ptr<detail::RevolveCounts> count_;
    Var<T> x_;
    std::vector<Snapshot> taken_;  // without x, in the order of the steps
};

// A StepNode is the node of one step, and saves no value, because a Run provides the step's input.
template <class T> class Revolve<T>::StepNode final : public detail::ValueNode<T> {
public:
    StepNode(T&& v, std::shared_ptr<Run> chain_run, std::size_t which, detail::TraceLog&& log,
             detail::ValueNode<T>* input, std::uint64_t checksum_of_input)
        : detail::ValueNode<T>(std::move(v), detail::State::fresh),
          run_(std::move(chain_run)),
          which_(which),
          log_(std::move(log)),
          input_(input),
          checksum_of_input_(checksum_of_input) {
        ++input->refs;
    }

    const char* op() const override { return "revolve"; }
    std::vector<Node*> inputs() const override { return {input_}; }

    void backward(detail::BackwardPass& backward_pass) override {
        if (this->received_gradient()) {
            T input = run_->input_of(which_);
            const bool differs = log_.has_checksums && detail::checksum(input) != checksum_of_input_;
            if (!detail::has_memory(input_->value)) input_->value = std::move(input);
            if (++input_->handles == 1) ++input_->refs;  // for the new handle x
            const Var<T> x(input_), y = recompute(x);    // throws if parameters were changed
            if (differs)
                throw Error("[revolve] the steps before step " + std::to_string(which_ + 1) +
                            " gave other values than the first time; a step must depend only on its input "
                            "and on captured values that do not change before backward() ends");
            ++run_->count().recorded;
            if (y.requires_grad()) detail::seed_gradient(backward_pass, y, this->gradient);
        }
        release();
        detail::unref(this);
    }
    void release() override {
        if (input_) detail::unref(std::exchange(input_, nullptr));
        run_.reset();
        log_.held_buffers.clear();
        if (this->is_grad_target) return;
        detail::reset(this->gradient);
        this->grad_flags = 0;
    }
    void destroy(Node*& pending) override {
        if (input_) detail::unref(input_, pending);
        this->~StepNode();
        pool::give(this, sizeof *this);
    }

private:
    Var<T> recompute(const Var<T>& x) {
        return detail::recompute(log_, [&] {
            const detail::CheckpointTrace run(log_, detail::CheckpointTrace::Mode::recompute);
            Var<T> y = run_->run(which_, x);
            run.end_recomputation({y.node()});
            return y;
        });
    }

    std::shared_ptr<Run> run_;
    std::size_t which_;
    detail::TraceLog log_;
    detail::ValueNode<T>* input_;
    std::uint64_t checksum_of_input_;
};

template <class T> Var<T> Revolve<T>::operator()(Var<T> x) const {
    const std::size_t last = steps_->size() - 1;
    if (!detail::context.recording) return detail::run_chain(*steps_, 0, steps_->size(), std::move(x));
    if (detail::context.interceptor)
        throw Error("[revolve] a Revolve cannot run inside a checkpointed function; call it outside");
    const auto chain_run = std::make_shared<Run>(*this, x);
    count_->snapshots = std::max<std::size_t>(count_->snapshots, 1);
    std::size_t next = chain_run->next_snapshot(0, last);
    for (std::size_t i = 0; i < last; ++i) {
        detail::TraceLog log;
        const std::uint64_t first_inner_id = detail::context.next_id,
                            input_checksum = detail::verifying ? detail::checksum(x.value()) : 0;
        Var<T> y;
        {
            detail::CheckpointTrace run(log, detail::CheckpointTrace::Mode::first_run);
            y = chain_run->run(i, x);
            run.end_first_run({y.node()}, false);
        }
        ++count_->advanced;
        if (y.node()->id >= first_inner_id && y.requires_grad()) {
            T value = y.value();
            y = {};
            y = Var<T>(new (pool::take(sizeof(StepNode))) StepNode(std::move(value), chain_run, i,
                                                                   std::move(log), x.node(), input_checksum));
        }
        x = std::move(y);
        if (i + 1 == next && next < last) {
            chain_run->take_snapshot(next, x.value());
            next = chain_run->next_snapshot(next, last);
        }
    }
    ++count_->recorded;
    return chain_run->run(last, x);
}

}  // namespace tally
