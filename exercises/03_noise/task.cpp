// The noise, read off the micro-batches.
//
// How large should a batch be? That depends on how noisy a gradient is: on the variance of one item's gradient. If you
// accumulate, you get that for free. The N micro-batches of a window are N means over `size` items each; they scatter
// around each other, and a mean over b items has 1/b of the variance of one item.
//
// Return an estimate of the variance of ONE item, from these N means alone. It shall be right on average: from N means,
// their own mean included, only N - 1 differences are free.
#include "given.hpp"

double item_variance(const std::vector<double>& means, int size) {
    double mean = 0;
    for (double g : means) mean += g / static_cast<double>(means.size());
    double squares = 0;
    for (double g : means) squares += (g - mean) * (g - mean);
    todo();
    return squares;
}
