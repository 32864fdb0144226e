// softmax_row() computes the softmax of one contiguous row.
#pragma once

#include <cstddef>

namespace tally::cpu {

template <class S> struct SoftmaxRow {
    S largest, log_total;  // log of the sum of exp(x - largest)
};

// Computes y = softmax(x) for n >= 1.
template <class S> SoftmaxRow<S> softmax_row(const S* x, S* y, std::size_t n);

}  // namespace tally::cpu
