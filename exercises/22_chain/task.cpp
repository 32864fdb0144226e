// Write: a chain with checkpoints. The check trains a deep chain with it and counts the arrays that it keeps.
//
//     struct DeepChain {
//         std::vector<Tensor> w;             // one square matrix for each layer
//         std::size_t segments;              // 1 to w.size()
//         std::vector<Array<float>> inputs;  // forward() keeps the input of each segment here
//     };
//     Tensor layers(Tensor x, const std::vector<Tensor>& w, std::size_t from, std::size_t to);  // runs from to to - 1
//     Tensor loss_of(const Tensor& y, const Array<float>& target);                              // mean squared error
//
// n layers in k segments: segment s begins with layer s * n / k, and segment s + 1 begins where it ends.
//
//   forward    Run all segments without a graph: `const NoGrad off;` switches recording off to the end of the block.
//              Keep the input of each segment (h.value()), replace the inputs of an earlier forward(), and return the
//              loss (.item()).
//   backward   Begin with the last segment. Recompute a segment from parameter(chain.inputs[s]), this time with a
//              graph, and call backward() before you recompute the next one. The last segment ends with the loss.
//              Every other segment ends with sum(h * constant(g)), where g is the gradient of the next segment's input
//              (exercise two-segments).
//
// The gradients of all w must have the bits of the plain chain, which keeps n arrays of the size of x. Your chain may
// have at most k + n / k + 6 of them at the same time.
#include "given.hpp"

float forward(DeepChain& chain, const Array<float>& x, const Array<float>& target) { todo(); }

void backward(DeepChain& chain, const Array<float>& target) { todo(); }
