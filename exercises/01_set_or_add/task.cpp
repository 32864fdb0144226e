// Set or add.
//
// A gradient is something that is added up: over the places where a value was used. So whoever computes a part of it is
// told where it belongs, `to.dst`, and whether it is the first part or a later one, `to.how`. The first part SETS; what
// lies at that place before means nothing, it may be rubbish or even "not a number". Each later part ADDS.
//
// Write the backward rule of y = factor * x: bring factor * dy[i] to to.dst[i], in the way that to.how says.
#include "given.hpp"

void times_backward(double factor, const Numbers& dy, Into<Numbers> to) {
    for (std::size_t i = 0; i < dy.size(); ++i) {
        todo();
    }
}
