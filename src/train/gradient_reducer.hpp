// A `GradientReducer` sums the gradients of several processes, so that all processes make the same update.
// The class Window depends only on this interface, which src/distributed implements with MPI.
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
// Holds sums for Window::noise(). Members before `squared_weights` sum over each process's first micro-batch.
struct NoiseParts {
    std::int64_t firsts = 0;
    double squares = 0;          // squared norms of the mean gradients
    double shares = 0;           // sum(w^2) / sum(w)^2, which multiplies the variance (noise.hpp)
    double squared_weights = 0;  // sum(w^2) over all items
    NoiseParts& operator+=(const NoiseParts& more);
};

// The number of processes of the pipeline that this thread has run since the last `Window`, or 0.
inline constinit thread_local int pipe_processes = 0;

// A `WindowTotals` stores the counts and the sums of an update, for one process or for all processes.
struct WindowTotals {
    std::int64_t micro_batches = 0, dropped = 0;
    std::int64_t regularizers = 0;   // terms of add_regularizer(), which are the same in all processes
    double regularizer_value = 0;    // sum of these terms
    bool written = false;            // a parameter has changed since the window began or last stepped
    double count = 0, loss_sum = 0;  // sums of the micro-batches' counts and losses
    bool planned = false;            // a process has planned a number of micro-batches
    bool full = true;                // each process that has planned micro-batches has added all of them
    double learning_rate = 0;        // the same in all processes, like `updates`
    std::int64_t updates = 0;
    NoiseParts noise = {};
};

// All processes must make the same calls in the same order, unless a comment says otherwise. If one process
// throws an error, all processes throw. With Sum::exact, `exact` contains the sums of each gradient, of the
// losses and of the counts. Otherwise `exact` is empty.
template <class S> class GradientReducer {
public:
    using NamedTexts = std::vector<std::pair<std::string, std::string>>;

    virtual ~GradientReducer() = default;

    // Returns those micro-batches of `parts` that this process computes. Not collective.
    virtual std::vector<Items> share(const std::vector<Items>& parts) = 0;
    // Returns whether this process writes files and prints progress. Not collective.
    virtual bool writes_files() const = 0;
    // Each window calls open() once. Throws if optimizers, parameters or options differ between processes.
    virtual void open(const Optimizer<S>& optimizer, const NamedTexts& options) = 0;
    // Returns the combined totals of all processes just before an update ends. `call` and `window_index` must
    // be equal in all processes. The totals include the exact sums of all processes, rounded once, and
    // `exact` does not change. Later calls use `optimizer`, because several windows may use the same reducer.
    virtual WindowTotals gather(const Optimizer<S>& optimizer, const char* call, std::int64_t window_index,
                                const WindowTotals& here, std::span<ExactSum<S>> exact) = 0;
    // Sums each gradient over all processes, or with Sum::exact each sum in `exact`. Merges side effects.
    virtual void reduce(SideEffects& effects, std::span<ExactSum<S>> exact) = 0;
    // Combines the norms of all processes. By default each process has computed the norm of all gradients.
    virtual detail::MeasuredGradients combine_norms(const detail::MeasuredGradients& mine) { return mine; }
    // Waits, just before the parameters change, until every process has allocated the memory for the update.
    virtual void barrier_before_step() = 0;
    // Reports an error to the other processes. This report replaces the next collective call of this process.
    virtual void report_failure(const char* call, std::int64_t window_index,
                                const std::string& why) noexcept = 0;
    // Returns the index of this process's first item among all items of the update. Not collective.
    virtual std::int64_t first_item(const Optimizer<S>& optimizer, std::int64_t window_index) = 0;
    // Returns a part of the seed, which differs between processes that number their items separately.
    virtual std::uint64_t rng_offset() const { return 0; }
};
}  // namespace detail

}  // namespace tally
