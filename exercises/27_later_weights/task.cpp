// What nobody waits for comes later.
//
// A stage's backward computes two things: the gradient of its input, for which the stage before it waits (B), and the
// gradient of its weights, for which nobody waits (W). F, B and W take one unit of time each. Below is "one forward, one
// backward" with W at once after its B: four stages and eight micro-batches take 30 units.
//
// Stage s has s stages before it, which get their gradients that much later than it has its own. Let it put off as many W
// as that: B first, and W(0) only after B(s), then W(1) after B(s + 1), and so on; what is left of W comes at the end. An
// F still follows each B, after the W if there is one.
// Targets: 27 units, and never more micro-batches kept, from F to W, than there are stages.
#include "given.hpp"

std::vector<Piece> schedule(int stage, int stages, int micros) {
    std::vector<Piece> order;
    int f = 0;
    while (f < std::min(micros, stages - stage)) order.push_back(F(f++));
    for (int b = 0; b < micros; ++b) {
        order.push_back(B(b));
        order.push_back(W(b));
        if (f < micros) order.push_back(F(f++));
    }
    return order;
}
