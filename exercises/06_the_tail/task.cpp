// The tail of an epoch, with three policies.
//
// Four micro-batches make an update, and an epoch has ten: two are left over, the tail. What becomes of them?
//
//     Policy::scale   they make an update of their own, divided by the items that came
//     Policy::drop    they make none, and are forgotten
//     Policy::carry   they wait, and the next epoch fills their window up
//
// Return the gradient of every update of all epochs, in order: each is the mean over the ITEMS of its window, their
// sum divided by their number. (Micro-batches need not be equally large.) What is missing is the end of an epoch.
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
            if (++micros == size) {  // the window is full
                gradients.push_back(sum / items);
                sum = items = micros = 0;
            }
        }
        // the epoch is over, and `micros` of its micro-batches may be waiting: todo
    }
    return gradients;
}
