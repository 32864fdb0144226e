// Class weights.
//
// Where one class is rare, its items are given a larger weight. The loss of a batch is the weighted mean:
//
//     (sum over items of weight[label] * loss)  /  (sum over items of weight[label])
//
// (PyTorch's cross_entropy with weight=... does that.) Now the batch comes in micro-batches. Return the gradient of the
// weighted mean over all items of all of them, however the classes are spread: a micro-batch may have rare ones only.
#include "given.hpp"

double gradient(const std::vector<Micro>& micros, const std::vector<double>& weight) {
    for (const Micro& micro : micros)
        for (const Item& item : micro) todo();  // item.gradient, weight[item.label]
    return 0;
}
