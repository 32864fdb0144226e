// Newest first.
//
// Backward begins at one value and hands gradients on to what it was made of. A value may hand on its gradient only when
// that is complete: when everybody who used it has been visited. Values have numbers, in the order in which they were made.
//
//     0: x     1: y = x * x  (inputs 0 and 0)     2: z = y + x  (inputs 1 and 0)     from 2:  2 1 0
//
// Return the numbers in the order of the visits. Each value comes once, however many paths lead to it, and what `from`
// was not made of does not come at all. What is written here visits some values too early, and some too often.
#include "given.hpp"

std::vector<int> order(const Inputs& inputs, int from) {
    std::vector<int> visited, waiting{from};
    while (!waiting.empty()) {
        const int value = waiting.back();  // which one of those that wait should be next?
        waiting.pop_back();
        visited.push_back(value);
        for (int input : inputs[static_cast<std::size_t>(value)]) waiting.push_back(input);
    }
    return visited;
}
