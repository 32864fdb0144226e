// GradientReducer: what a window asks of the others that share it, one window each, and one update for all of them.
//
// The window knows nothing of processes: src/distributed has one who asks MPI.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tally/array/exact_sum.hpp"
#include "tally/train/batches.hpp"
#include "tally/train/clip.hpp"
#include "tally/train/module.hpp"
#include "tally/train/optimizer.hpp"

namespace tally {

namespace detail {
// For Window::noise(): the first micro-batches, one of each who has any, and sum(w^2) over all items.
struct NoiseParts {
    std::int64_t firsts = 0;
    double squares = 0, shares = 0;  // of their mean gradients; of the variance of one item's (noise.hpp)
    double squared_weights = 0;
    NoiseParts& operator+=(const NoiseParts& more);
};

// Number of processes of the pipe that this thread ran since a window last ended; 0: no pipe ran.
inline constinit thread_local int piped = 0;

// How far a window has come: here, or on all who share it together.
struct WindowTotals {
    std::int64_t micro_batches = 0, dropped = 0;
    std::int64_t regularizers = 0;  // terms that are counted once, which are the same everywhere
    double regularizer_value = 0;   // their sum
    bool written = false;           // a parameter, since the window was opened or has stepped
    double count = 0, sum = 0;      // what the losses count, and what they are
    bool planned = false;           // a number of micro-batches, by anybody
    bool full = true;               // each who planned one has it
    double learning_rate = 0;       // the same everywhere, as is the number of updates
    std::int64_t updates = 0;
    NoiseParts noise = {};
};

// All calls are made by everybody, in the same order. What one of them throws, each of them throws there.
// `exact`: of Sum::exact, a sum for each parameter's gradient, then one of losses and one of counts; else none.
template <class S> class GradientReducer {
public:
    using Named = std::vector<std::pair<std::string, std::string>>;

    virtual ~GradientReducer() = default;

    // Of a window's micro-batches those that are to be computed here.
    virtual std::vector<Items> share(const std::vector<Items>& parts) = 0;
    // Whether it is this one that writes what is the same everywhere: files, and lines of progress.
    virtual bool is_main_process() const = 0;
    // When a window is opened: an Error where optimizers, parameters or options differ.
    virtual void open(const Optimizer<S>& optimizer, const Named& options) = 0;
    // Before its end: how far all have come together. `call` and `window` must be everybody's. Exact sums stay
    // this one's, since the window may stay open; only the standing's sum and count are theirs, rounded once.
    // What follows is about the same optimizer's parameters: several windows may share one GradientReducer.
    virtual WindowTotals gather(const Optimizer<S>& optimizer, const char* call, std::int64_t window,
                                const WindowTotals& here, std::span<ExactSum<S>> exact) = 0;
    // Each parameter's gradient becomes the sum of everybody's, or each exact sum does, and effects are joined.
    virtual void reduce(SideEffects& effects, std::span<ExactSum<S>> exact) = 0;
    // Of all gradients of all who share the window: its own are those already, or a part of them.
    virtual detail::MeasuredGradients measured(const detail::MeasuredGradients& mine) { return mine; }
    // Just before the parameters change: everybody is there, and has the memory for it.
    virtual void barrier_before_step() = 0;
    // Instead of the next of these calls: the end of this window has failed here.
    virtual void fail(const char* call, std::int64_t window, const std::string& why) noexcept = 0;
    // Asked by each pass: the number of this window's first item among the items of all.
    virtual std::int64_t first_item(const Optimizer<S>& optimizer, std::int64_t window) = 0;
    // Mixed into the window's seed: another number on each process whose items are not numbered among all.
    virtual std::uint64_t rng_offset() const { return 0; }
};
}  // namespace detail

}  // namespace tally
