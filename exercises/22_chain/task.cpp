// Write a chain with checkpoints. The check trains a deep chain with your code, and counts the arrays that your code
// keeps.
//
//     struct DeepChain {
//         std::vector<Tensor> w;             // one square matrix for each layer
//         std::size_t segments;              // 1 to w.size()
//         std::vector<Array<float>> inputs;  // forward() keeps the input of each segment here
//     };
//     // Runs the layers `from` to `to` - 1.
//     Tensor layers(Tensor x, const std::vector<Tensor>& w, std::size_t from, std::size_t to);
//     Tensor loss_of(const Tensor& y, const Array<float>& target);  // the mean squared error
//
// The n layers are divided into k segments. Segment s begins with layer s * n / k, rounded down, and ends where
// segment s + 1 begins.
//
//   forward    Run all segments without a graph: `const NoGrad off;` switches recording off until the end of the block.
//              Keep the input of each segment (h.value()), replace the inputs of an earlier forward(), and return the
//              loss (.item()).
//   backward   Begin with the last segment of the chain. Recompute a segment from parameter(chain.inputs[s]),
//              this time with a graph, and call backward() before you recompute the previous segment. For the
//              last segment, call backward() on the loss. For every other segment, call backward() on
//              sum(h * constant(g)), where h is the segment's result and g is the gradient of the next
//              segment's input (exercise two-segments).
//
// The gradients of all matrices in w must have the same bits as in a plain chain without checkpoints. The
// plain chain keeps n arrays of the size of the input x. Your chain may keep at most k + n / k + 6 such
// arrays at the same time.
#include "given.hpp"

float forward(DeepChain& chain, const Array<float>& x, const Array<float>& target) { todo(); }

void backward(DeepChain& chain, const Array<float>& target) { todo(); }
