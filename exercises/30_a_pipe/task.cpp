// Repair a schedule that keeps too many micro-batches.
//
// Four machines (stages) have a quarter of the layers each. A micro-batch goes forward through the stages 0, 1, 2, 3
// and backward through 3, 2, 1, 0. A stage keeps the activations of a micro-batch from its forward F to its
// backward B. The code below does all F first, so each stage keeps all 8 micro-batches.
//
// Return the work of one stage in the order "one forward, one backward" (1F1B):
//     first    Do as many forward passes F as there are stages after this stage.
//     then     Do one forward F and one backward B in turn, until all micro-batches have done F.
//     at last  Do the remaining B.
//
// Example: F(m) is the forward pass of micro-batch m, and B(m) is its backward pass. With 4 stages and 3
// micro-batches, stage 2 does F(0) F(1) B(0) F(2) B(1) B(2).
//
// Targets for 4 stages and 8 micro-batches: 22 units of time, and at most 4 micro-batches kept by each stage.
// The schedule must also work for fewer micro-batches than stages. Each forward F and each backward B takes
// one unit of time. For micro-batch m, F(m) waits for F(m) of the stage before, and B(m) waits for B(m) of
// the stage after.
//
// The question: how many more forward passes F than backward passes B may a stage have done at any time?
//
// Given:
//     struct Work { bool backward; int micro; };
//     Work F(int micro);   Work B(int micro);
#include "given.hpp"

std::vector<Work> schedule(int stage, int stages, int micros) {
    std::vector<Work> order;
    for (int m = 0; m < micros; ++m) order.push_back(F(m));
    for (int m = 0; m < micros; ++m) order.push_back(B(m));
    return order;
}
