// Write: a backward function that overwrites or adds.
//
// A value that is used in several places gets one part of its gradient from each place. The gradient is
// the sum of these parts. You write the backward function of y = factor * x, which computes one part of
// the gradient of x. The numbers of this part are factor * dy[i], where dy is the gradient of y.
//
// The function writes the gradient to the vector to.dst, which has as many numbers as dy. to.how says how:
//
//     Write::set   This is the first part: overwrite to.dst. Its old numbers mean nothing and can be NaN.
//     Write::add   to.dst contains earlier parts: add this part to them.
//
// Example: factor is 3, dy is [1 2], and to.dst is [10 30]. Then to.dst becomes [3 6] with Write::set,
// and [13 36] with Write::add.
//
// The question: may your code read to.dst[i] in both cases?
//
// Given:
//     using Numbers = std::vector<double>;
//     enum class Write { set, add };
//     template <class T> struct Into { T& dst; Write how; };
#include "given.hpp"

void times_backward(double factor, const Numbers& dy, Into<Numbers> to) {
    for (std::size_t i = 0; i < dy.size(); ++i) {
        todo();
    }
}
