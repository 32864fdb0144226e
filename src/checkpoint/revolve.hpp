// Revolve: a chain of l steps with c snapshots of its states, and as few steps run again as that allows.
//
//     Revolve<Array<float>> chain(steps, 3);
//     Tensor y = chain(x);        // y.backward() runs steps again, from the nearest snapshot
//
// (Griewank and Walther, "Algorithm 799: revolve", 2000.) A snapshot is the input of a step; x is one of the
// c. Every step is recorded once, and p(l, c) times one is only run, to get to where the next one that is to
// be recorded begins.
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
// p(l, c): how many steps are run without being recorded, to go back through l steps with c snapshots.
std::uint64_t revolve_cost(std::uint64_t steps, std::uint64_t snapshots);
// From a snapshot before l steps, with c to spend (that one counts): after how many steps the next is taken,
// or, if that is l - 1, the last of them is recorded.
std::uint64_t revolve_split(std::uint64_t steps, std::uint64_t snapshots);
}  // namespace detail

// What a schedule has cost.
struct RevolveCount {
    std::size_t advanced = 0, recorded = 0;  // steps that were only run, and steps that were recorded
    std::size_t snapshots = 0;               // the most that were alive at one time
};

template <class T> class Revolve {
public:
    Revolve(Chain<T> steps, std::size_t snapshots)
        : steps_(std::make_shared<const Chain<T>>(std::move(steps))),
          max_snapshots_(std::min(snapshots, steps_->size())),
          count_(std::make_shared<RevolveCount>()) {
        if (steps_->empty()) throw Error("[revolve] a chain without steps");
        if (snapshots < 1)
            throw Error("[revolve] with 0 snapshots there is nothing to begin from; the input is the first");
    }

    Var<T> operator()(Var<T> x) const;
    const RevolveCount& count() const { return *count_; }  // since it was made

private:
    class Run;
    class Step;

    std::shared_ptr<const Chain<T>> steps_;
    std::size_t max_snapshots_;
    std::shared_ptr<RevolveCount> count_;
};

// One way through the chain: its snapshots, shared by the steps until the way back is over.
template <class T> class Revolve<T>::Run {
public:
    Run(const Revolve& of, const Var<T>& x)
        : steps_(of.steps_), max_snapshots_(of.max_snapshots_), count_(of.count_), x_(x) {}

    // On the way from the state before step `at` to that before step `to`: where the next snapshot is taken.
    std::size_t stop(std::size_t at, std::size_t to) const {
        const std::size_t free = max_snapshots_ - taken_.size();  // the one that stands at `at` counts
        return at == to ? to : at + static_cast<std::size_t>(detail::revolve_split(to - at + 1, free));
    }
    void take(std::size_t before, const T& value) {
        taken_.push_back({before, detail::Saved<T>(&value)});
        count_->snapshots = std::max(count_->snapshots, taken_.size() + 1);
    }
    // The input of a step. What is asked for comes from the last to the first.
    T before(std::size_t step) {
        while (!taken_.empty() && taken_.back().before > step) taken_.pop_back();
        std::size_t at = taken_.empty() ? 0 : taken_.back().before;
        T value = taken_.empty() ? x_.value() : taken_.back().value.get("revolve");
        detail::TraceLog nothing;
        const detail::CheckpointTrace again(nothing,
                                            detail::CheckpointTrace::Mode::replay);  // effects have happened
        const NoGrad off;
        while (at < step) {
            const std::size_t to = stop(at, step);
            Var<T> h(std::exchange(value, T()), detail::State::constant);
            for (; at < to; ++at, ++count_->advanced) h = (*steps_)[at](std::move(h));
            value = h.value();
            if (at < step) take(at, value);
        }
        return value;
    }
    Var<T> run(std::size_t step, const Var<T>& x) const { return (*steps_)[step](x); }
    RevolveCount& count() { return *count_; }

private:
    struct Snapshot {
        std::size_t before;  // which step
        detail::Saved<T> value;
    };
    std::shared_ptr<const Chain<T>> steps_;
    std::size_t max_snapshots_;
    std::shared_ptr<RevolveCount> count_;
    Var<T> x_;
    std::vector<Snapshot> taken_;  // but for x; the latest last
};

// A step in the graph: it keeps no value, and asks for its input when its turn comes.
template <class T> class Revolve<T>::Step final : public detail::ValueNode<T> {
public:
    Step(T&& v, std::shared_ptr<Run> course, std::size_t which, detail::TraceLog&& block,
         detail::ValueNode<T>* input, std::uint64_t checksum_of_input)
        : detail::ValueNode<T>(std::move(v), detail::State::fresh),
          course_(std::move(course)),
          which_(which),
          block_(std::move(block)),
          input_(input),
          checksum_of_input_(checksum_of_input) {
        ++input->refs;
    }

    const char* op() const override { return "revolve"; }
    std::vector<Node*> inputs() const override { return {input_}; }

    void backward(detail::BackwardPass& backward_pass) override {
        if (this->grad_flags) {
            T before = course_->before(which_);
            const bool other = block_.verified && detail::checksum(before) != checksum_of_input_;
            if (!detail::has_memory(input_->value)) input_->value = std::move(before);
            if (++input_->handles == 1) ++input_->refs;
            const Var<T> x(input_), y = again(x);  // which knows better why, if parameters were changed
            if (other)
                throw Error("[revolve] the steps before step " + std::to_string(which_ + 1) +
                            " gave other values than the first time; a step must be a function of its input, "
                            "and what it captures must stay until backward() is over");
            ++course_->count().recorded;
            if (y.requires_grad()) detail::seed_gradient(backward_pass, y, this->gradient);
        }
        clear();
        detail::unref(this);
    }
    void clear() override {
        if (input_) detail::unref(std::exchange(input_, nullptr));
        course_.reset();
        block_.read.clear();
        if (this->is_grad_target) return;
        detail::reset(this->gradient);
        this->grad_flags = false;
    }
    void destroy(Node*& pending) override {
        if (input_) detail::unref(input_, pending);
        this->~Step();
        pool::give(this, sizeof *this);
    }

private:
    Var<T> again(const Var<T>& x) {
        return detail::run_again(block_, [&] {
            const detail::CheckpointTrace run(block_, detail::CheckpointTrace::Mode::replay);
            Var<T> y = course_->run(which_, x);
            run.finish_replay({y.node()});
            return y;
        });
    }

    std::shared_ptr<Run> course_;
    std::size_t which_;
    detail::TraceLog block_;
    detail::ValueNode<T>* input_;
    std::uint64_t checksum_of_input_;
};

template <class T> Var<T> Revolve<T>::operator()(Var<T> x) const {
    const std::size_t last = steps_->size() - 1;
    if (!detail::context.recording) return run_chain(*steps_, 0, steps_->size(), std::move(x));
    if (detail::context.recorder)
        throw Error("[revolve] inside a checkpointed function; let its steps be checkpointed instead");
    const auto course = std::make_shared<Run>(*this, x);
    count_->snapshots = std::max<std::size_t>(count_->snapshots, 1);
    std::size_t stop = course->stop(0, last);
    for (std::size_t i = 0; i < last; ++i) {
        detail::TraceLog block;
        const std::uint64_t mark = detail::context.next_id,
                            sum = detail::verifying ? detail::checksum(x.value()) : 0;
        Var<T> y;
        {
            detail::CheckpointTrace run(block, detail::CheckpointTrace::Mode::record);
            y = course->run(i, x);
            run.finish_recording({y.node()}, false);
        }
        ++count_->advanced;
        if (y.node()->id >= mark && y.requires_grad()) {
            T value = y.value();
            y = {};
            y = Var<T>(new (pool::take(sizeof(Step)))
                           Step(std::move(value), course, i, std::move(block), x.node(), sum));
        }
        x = std::move(y);
        if (i + 1 == stop && stop < last) {
            course->take(stop, x.value());
            stop = course->stop(stop, last);
        }
    }
    ++count_->recorded;
    return course->run(last, x);
}

}  // namespace tally
