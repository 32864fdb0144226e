// Complete the code of a gradient that leaves out micro-batches with NaN or infinity.
//
// A micro-batch can contain NaN or infinity, for example after an overflow. Leave out such a micro-batch
// completely, and return the mean gradient over the items of the other micro-batches. If no micro-batch
// is left, return an empty vector: then the training makes no update.
//
// Example: three micro-batches have 2, 3 and 1 items, and the sums of their gradients are [2 4], [NaN 1] and
// [6 3]. The first and the third together have 3 items, so the result is [8/3 7/3].
//
// The question: which two sums must not contain a micro-batch with NaN? Remember that NaN * 0 is NaN.
//
// Given:
//     struct Micro {
//         std::vector<double> sum;   // the sum of the items' gradients, one number for each weight
//         int items;
//     };
//     std::isfinite(x)               // false for NaN, infinity and -infinity
#include "given.hpp"

std::vector<double> gradient(const std::vector<Micro>& micros) {
    std::vector<double> sum(micros[0].sum.size());
    int items = 0;
    for (const Micro& micro : micros) {
        todo();
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += micro.sum[i];
        items += micro.items;
    }
    for (double& value : sum) value /= items;
    return sum;
}
