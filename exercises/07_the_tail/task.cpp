// Complete the code of three policies for the tail, the micro-batches that are left at the end of an epoch.
//
// Four micro-batches make one update, and an epoch has ten micro-batches. At the end, two micro-batches are
// left over. They are the tail of the epoch, and a policy decides what happens to the tail:
//
//     Policy::scale   The tail makes its own update: the mean gradient of the items in the tail.
//     Policy::drop    The gradients of the tail are thrown away: the tail makes no update.
//     Policy::carry   The next epoch's first update begins with the tail. The last epoch's tail is lost.
//
// Return the gradients of all updates, in the order of the updates. Each gradient is the mean over the ITEMS
// of its update. (Micro-batches can have different numbers of items.) The code for the end of an epoch is
// missing below. Example: {2, 2} is a micro-batch of 2 items whose gradients have the sum 2. An epoch has the
// micro-batches {2, 2} {4, 2} {9, 1}, and an update has 2 of them. The first update has the gradient
// (2 + 4) / (2 + 2) = 1.5. The tail {9, 1} gives 9 / 1 = 9 with Policy::scale.
//
// The question: which policies keep `sum`, `items` and `micros` of the left-over micro-batches?
//
// Given:
//     struct Micro { double sum; int items; };  // the sum of the items' gradients, and the number of items
//     using Epoch = std::vector<Micro>;
#include "given.hpp"

std::vector<double> updates(const std::vector<Epoch>& epochs, int size, Policy policy) {
    std::vector<double> gradients;
    double sum = 0;
    int items = 0;
    int micros = 0;
    for (const Epoch& epoch : epochs) {
        for (const Micro& micro : epoch) {
            sum += micro.sum;
            items += micro.items;
            if (++micros == size) {
                gradients.push_back(sum / items);
                sum = items = micros = 0;
            }
        }
        todo();  // the end of an epoch
    }
    return gradients;
}
