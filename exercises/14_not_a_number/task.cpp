// One micro-batch is not a number.
//
// Among a window's micro-batches one has NaN, or infinity, among its numbers: an overflow, a broken picture. The
// policy is to leave that micro-batch out, all of it, and to make the update from the others as if it had never been
// there: the mean over THEIR items. Where none is left there is no update: return an empty vector.
//
// std::isfinite(x) is false for NaN and for both infinities. Mind that NaN times 0 is NaN.
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
