// EarlyGradients: those gradients of a window that are final go to the others while backward still runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tally/autograd/var.hpp"
#include "tally/processes/early_sums.hpp"
#include "tally/values/array.hpp"

namespace tally::detail {

// Backward comes to the last parameters first, so all are summed from the last to the first, and no bucket
// before those behind it: all processes begin the same sums in the same order. What is sent is a copy; where
// the gradient is another one at the window's end, it is summed again there.
template <class S> class EarlyGradients {
public:
    using V = Var<Array<S>>;

    // `window`: its number among all that were opened.
    EarlyGradients(Processes& processes, std::int64_t window, const std::vector<V>& parameters,
                   std::size_t bucket);

    // Amid a backward: begins with what is final, in the update of this number.
    void advance(std::int64_t number);

    // ---- at the window's end ----
    EarlyRound round(std::int64_t number) const;                     // to be kept by those who meet
    bool changed(std::size_t parameter, std::int64_t number) const;  // since it was sent
    void end(std::int64_t number);  // when they have met: if anybody has begun, all sums are ended
    bool summed() const { return summed_; }
    void take(std::size_t parameter) const;  // its gradient becomes its sum

private:
    bool is_final(std::size_t parameter) const;
    EarlySums& sums(std::int64_t number);
    std::size_t sent(const EarlySums& sums) const;
    void copy(std::size_t parameter, std::size_t from);

    Processes& processes_;
    std::vector<V> parameters_;
    std::vector<std::size_t> places_;  // of each among all numbers
    EarlyRound plan_;
    std::shared_ptr<EarlyMemory<S>> memory_;
    std::size_t left_ = 0;  // parameters that are not copied yet, the first ones
    std::int64_t may_begin_ =
        0;  // the update after the one that all have ended: then nobody has begun another
    bool summed_ = false;
};

extern template class EarlyGradients<float>;
extern template class EarlyGradients<double>;

}  // namespace tally::detail
