// Prints the checksum of the weights after a short training run, and compares it with the expected checksum.
#include <cstdio>

#include "one_training.hpp"

int main() {
    using namespace tally::test;
    const std::uint64_t float_bits = one_training<float>(), double_bits = one_training<double>();
    const bool same = float_bits == weights_in_float && double_bits == weights_in_double;
    std::printf("%016llx %016llx %s\n", static_cast<unsigned long long>(float_bits),
                static_cast<unsigned long long>(double_bits), same ? "as written down" : "OTHER BITS");
    return same ? 0 : 1;
}
