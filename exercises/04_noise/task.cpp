// Complete the estimate of the variance of one item's gradient, from the micro-batches.
//
// The noise of a gradient is the variance of one item's gradient. The best batch size depends on this noise,
// and accumulation lets you measure it without extra work. Each of the N micro-batches of an update has a
// mean gradient over `size` items. These N means differ from each other because of the noise. (A gradient is
// a single number here.)
//
// A mean over b items has 1/b of the variance of one item. The code below subtracts the average of the N
// means from each of these means, so the N differences add up to 0. Therefore, only N - 1 of the
// differences are independent.
//
// Return an estimate of the variance of ONE item. The estimate must be right on average. The code below
// computes `squares`, the sum of the squared differences. The last step is missing.
//
// Example: the means are 1 and 3, each over 4 items. Then the sum of the squared differences, `squares`, is
// 2, and the estimate is 8.
//
// The question: does one item have a larger or a smaller variance than a mean over `size` items?
#include "given.hpp"

double item_variance(const std::vector<double>& means, int size) {
    double mean = 0;
    for (double g : means) mean += g / static_cast<double>(means.size());
    double squares = 0;
    for (double g : means) squares += (g - mean) * (g - mean);
    todo();
    return squares;
}
