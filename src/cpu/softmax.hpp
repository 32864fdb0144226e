// Softmax of one row of neighbours, as the losses need it too.
#pragma once

#include <cstddef>

namespace tally::cpu {

template <class S> struct SoftmaxRow {
    S largest, log_total;  // log of the sum of exp(x - largest)
};

// y = softmax(x); n is at least 1.
template <class S> SoftmaxRow<S> softmax_row(const S* x, S* y, std::size_t n);

}  // namespace tally::cpu
