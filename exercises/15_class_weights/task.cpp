// Write the gradient of a weighted mean in micro-batches.
//
// If a class is rare, its items can get a larger weight. The loss of a batch is then a weighted mean:
//
//     (sum over items of weight[label] * loss)  /  (sum over items of weight[label])
//
// PyTorch's cross_entropy with weight=... computes this mean. Here the batch comes in micro-batches. Return
// the gradient of the weighted mean over the items of ALL micro-batches. The result must not depend on the
// way the batch is split: a micro-batch can contain rare items only.
//
// Example: the weights of the classes 0 and 1 are 1 and 9. Three items with label 0 have the gradients 1 2 3,
// and one item with label 1 has the gradient 8. The result is (1 + 2 + 3 + 72) / 12 = 6.5 for every split.
//
// The question: if a rare item is alone in its micro-batch, how much does this micro-batch add to the
// denominator of the weighted mean?
//
// Given:
//     struct Item { int label; double gradient; };  // the gradient of the item's loss, without a weight
//     using Micro = std::vector<Item>;
#include "given.hpp"

double gradient(const std::vector<Micro>& micros, const std::vector<double>& weight) {
    for (const Micro& micro : micros)
        for (const Item& item : micro) todo();
    return 0;
}
