// Prints the weights of a small training, as a number, and whether it is the one that was written down.
#include <cstdio>

#include "one_training.hpp"

int main() {
    using namespace tally::test;
    const std::uint64_t single = one_training<float>(), twice = one_training<double>();
    const bool same = single == weights_in_float && twice == weights_in_double;
    std::printf("%016llx %016llx %s\n", static_cast<unsigned long long>(single),
                static_cast<unsigned long long>(twice), same ? "as written down" : "OTHER BITS");
    return same ? 0 : 1;
}
