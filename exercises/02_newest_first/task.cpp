// Repair the order in which backward visits values.
//
// backward() starts at one value and passes gradients to the inputs of each value that it visits. The
// gradient of a value is complete when backward() has visited every value that uses it. Only then may
// backward() visit the value. Values are numbered in the order in which they were computed, so the inputs
// of a value always have smaller numbers than the value itself:
//
//     0: x     1: y = x * x  (inputs 0 and 0)     2: z = y + x  (inputs 1 and 0)
//
// Return the numbers of the values in the order of the visits. The first visit is to the value `from`. In
// the example above, the order is 2 1 0 if `from` is 2. Visit each value once, even if several paths lead
// to it. Do not visit a value that does not contribute to `from`. In the code below, `waiting` contains the
// values that the code still has to visit. The code visits some values too early, and some values several
// times.
//
// The question: which of the waiting values certainly has a complete gradient?
//
// Given:
//     using Inputs = std::vector<std::vector<int>>;  // inputs[i]: the inputs of value i
#include "given.hpp"

std::vector<int> order(const Inputs& inputs, int from) {
    std::vector<int> visited, waiting{from};
    while (!waiting.empty()) {
        const int value = waiting.back();
        waiting.pop_back();
        visited.push_back(value);
        for (int input : inputs[static_cast<std::size_t>(value)]) waiting.push_back(input);
    }
    return visited;
}
