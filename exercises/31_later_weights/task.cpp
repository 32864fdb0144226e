// Repair a schedule that computes weight gradients too early.
//
// Backward of a stage has two parts. B computes the gradient of the input, and the stage before waits for it. W
// computes the gradient of the weights, and no stage waits for it. The code below does W(b) directly after B(b):
// four stages and eight micro-batches take 30 units of time.
//
// Stage s has s stages before it. Let stage s postpone s of its weight gradients W:
//     W(0) follows B(s), W(1) follows B(s + 1), and so on. The remaining W come at the end.
//     As before, an F follows each B. If a W follows this B, the F comes after the W.
//
// Example: F(m) is the forward pass of micro-batch m, and B(m) and W(m) are the two parts of its backward
// pass. With 2 stages and 3 micro-batches, stage 1 does F(0) B(0) F(1) B(1) W(0) F(2) B(2) W(1) W(2).
//
// Targets for 4 stages and 8 micro-batches: 27 units of time, and at most 4 micro-batches kept by each stage.
// A stage keeps a micro-batch from its forward pass F to the end of its weight gradients W. F, B and W take
// one unit of time each. F(m) waits for F(m) of the stage before, B(m) waits for B(m) of the stage after, and
// W(m) waits for B(m) of its own stage.
//
// The question: after the input gradient B of one micro-batch, a stage can compute the weight gradients W of
// an earlier micro-batch. So how can a stage know for which micro-batch it computes W next?
//
// Given:
//     struct Piece { char what; int micro; };   // what is 'F', 'B' or 'W'
//     Piece F(int micro);   Piece B(int micro);   Piece W(int micro);
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
