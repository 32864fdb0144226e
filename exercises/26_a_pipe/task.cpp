// A pipe of four stages, eight micro-batches.
//
// Each of four machines has a quarter of the layers. A micro-batch goes forward through stages 0, 1, 2, 3 and backward
// through 3, 2, 1, 0; from its F to its B a stage keeps its activations. If each stage does all F first and then all B,
// it keeps 8 of them. But stage 3 can go backward at once!
//
// Write the schedule "one forward, one backward": stage s first does as many F as there are stages behind it; then it
// does F and B in turn, until there is no F left; then the rest of B. Targets: 22 units of time, a bubble of 3/11, and
// never more than 4 micro-batches kept. (With fewer micro-batches than stages it must work as well.)
#include "given.hpp"

std::vector<Work> schedule(int stage, int stages, int micros) {
    std::vector<Work> order;
    for (int m = 0; m < micros; ++m) order.push_back(F(m));
    for (int m = 0; m < micros; ++m) order.push_back(B(m));
    return order;
}
