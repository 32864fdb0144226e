// The wrappers that people know: an optimizer that steps at every N-th call only, and N that changes
// with the epoch.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

#include "tally/train/window.hpp"

namespace tally {

// How many micro-batches make an update, by epoch: 4, or {{0, 8}, {4, 2}} for 8 from the start and 2 from
// epoch 4 on (1 before the first epoch that is named).
class AccumulationSteps {
public:
    AccumulationSteps(std::int64_t steps)
        : AccumulationSteps(std::map<std::int64_t, std::int64_t>{{0, steps}}) {}
    AccumulationSteps(std::initializer_list<std::pair<const std::int64_t, std::int64_t>> from_epoch)
        : AccumulationSteps(std::map<std::int64_t, std::int64_t>(from_epoch)) {}
    explicit AccumulationSteps(std::map<std::int64_t, std::int64_t> from_epoch);

    std::int64_t at(std::int64_t epoch) const;
    std::string in_words() const;  // as it is written

private:
    std::map<std::int64_t, std::int64_t> from_epoch_;
};

// Call step() after each backward(), as if there were no accumulation. Whether the gradient of an update is
// the mean of what came, or the sum, is said here, since wrappers of this name do either; and so is what
// becomes of a tail. A mean of means is the mean over all only where all are of one size: tell step() how
// many items came, and another number is an Error. step() also rejects two backward() calls before it.
template <class S> class Accumulate {
public:
    Accumulate(Optimizer<S>& optimizer, AccumulationSteps steps, Reduction reduction,
               Tail tail = Tail::scale);

    // "Wrapping 'SGD' optimizer with GA of 4 steps"
    std::string announcement() const;

    // Says whether the parameters were updated.
    bool step(std::int64_t items);
    bool flush();  // at the end of an epoch: the tail, by its policy
    void begin_epoch(std::int64_t epoch);

    const Window<S>& window() const { return window_; }
    Window<S>& window() { return window_; }

private:
    AccumulationSteps steps_;
    Window<S> window_;
    detail::CallsReaching calls_;  // its parameters, since the last step()
};

extern template class Accumulate<float>;
extern template class Accumulate<double>;

}  // namespace tally
