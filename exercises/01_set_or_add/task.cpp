// Write a backward function that overwrites or adds.
//
// A value that is used in several places gets one contribution to its gradient from each place. The
// gradient is the sum of these contributions. You write the backward function of y = factor * x. This
// function computes one contribution to the gradient of x: factor times dy, where dy is the gradient of y.
//
// The function writes to the vector to.dst, which has as many numbers as dy. to.how says how to write:
//
//     Write::set   This contribution is the first one: overwrite to.dst. Its old numbers can be NaN.
//     Write::add   to.dst contains the sum of earlier contributions: add this contribution to the sum.
//
// Example: factor is 3, dy is [1 2], and to.dst is [10 30]. Then to.dst becomes [3 6] with Write::set,
// and [13 36] with Write::add.
//
// The question: may your code read the old numbers in to.dst for the first contribution (Write::set), and
// may it read them for a later one (Write::add)?
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
