// GradientReducer lets several processes share one update: each has a window, and their gradients are summed.
//
// Window depends only on this interface. src/distributed implements the interface by MPI.
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
// Sums for Window::noise(), over the first micro-batch of each process, and sum(w^2) over all items.
struct NoiseParts {
    std::int64_t firsts = 0;
    double squares = 0;  // squared norms of the mean gradients
    double shares = 0;   // factors of the variance of one item's gradient (noise.hpp)
    double squared_weights = 0;
    NoiseParts& operator+=(const NoiseParts& more);
};

// Number of processes of the pipe that this thread ran since a window last ended, or 0.
inline constinit thread_local int pipe_processes = 0;

// WindowTotals are the counts and sums of a window, in this process or over all processes that share it.
struct WindowTotals {
    std::int64_t micro_batches = 0, dropped = 0;
    std::int64_t regularizers = 0;  // terms of add_regularizer(), which are the same in all processes
    double regularizer_value = 0;   // sum of these terms
    bool written = false;           // a parameter has changed since the window was opened or has stepped
    double count = 0, sum = 0;      // counts and sums of the losses
    bool planned = false;           // a process has planned a number of micro-batches
    bool full = true;               // each process that has planned micro-batches has added all of them
    double learning_rate = 0;       // the same in all processes, like the number of updates
    std::int64_t updates = 0;
    NoiseParts noise = {};
};

// All calls are collective, except where a comment says otherwise: every process makes them in the same
// order, and an error in one process is thrown in all. With Sum::exact, `exact` contains the sums of each
// parameter's gradient, of the losses and of the counts; otherwise `exact` is empty.
template <class S> class GradientReducer {
public:
    using NamedTexts = std::vector<std::pair<std::string, std::string>>;

    virtual ~GradientReducer() = default;

    // Returns the micro-batches of a window that this process computes. Not collective.
    virtual std::vector<Items> share(const std::vector<Items>& parts) = 0;
    // Returns whether this process writes the files and the lines of progress. Not collective.
    virtual bool is_main_process() const = 0;
    // Throws if optimizers, parameters or options differ. Called when a window is opened.
    virtual void open(const Optimizer<S>& optimizer, const NamedTexts& options) = 0;
    // Returns the totals of all processes before the end of a window. `call` and `window` must be the same in
    // all processes. Sum and count of the totals include the exact sums of all processes, rounded once;
    // `exact` does not change. Later calls refer to this optimizer, because windows may share a reducer.
    virtual WindowTotals gather(const Optimizer<S>& optimizer, const char* call, std::int64_t window,
                                const WindowTotals& here, std::span<ExactSum<S>> exact) = 0;
    // Sums each gradient, or each exact sum, over all processes, and joins their effects.
    virtual void reduce(SideEffects& effects, std::span<ExactSum<S>> exact) = 0;
    // Measures the gradients of all processes. The default is for processes that have all gradients.
    virtual detail::MeasuredGradients combine_norms(const detail::MeasuredGradients& mine) { return mine; }
    // Returns when every process has the memory for the step, just before the parameters change.
    virtual void barrier_before_step() = 0;
    // Reports an error of this process at the end of the window. Replaces its next collective call.
    virtual void fail(const char* call, std::int64_t window, const std::string& why) noexcept = 0;
    // Returns the number of this window's first item among the items of all processes. Not collective.
    virtual std::int64_t first_item(const Optimizer<S>& optimizer, std::int64_t window) = 0;
    // Returns a part of the window's seed, which differs if each process numbers its own items.
    virtual std::uint64_t rng_offset() const { return 0; }
};
}  // namespace detail

}  // namespace tally
