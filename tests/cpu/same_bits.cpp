// Compares two programs that run the same test cases on different devices: all buffers must have the same bits. One program
// writes a checksum for each test case to the file TALLY_WRITE_BITS, and the other reads them from TALLY_SAME_BITS.
// Test cases with the tag [library] are left out: they call BLAS or the C library, whose bits differ between devices.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "catch.hpp"
#include "kernel_testing.hpp"

namespace tally::test {

namespace {

using Checksums = std::map<std::string, std::uint64_t>;

Checksums written(const char* file) {
    Checksums all;
    std::ifstream in(file);
    std::uint64_t value = 0;
    for (std::string test; in >> value && in.ignore() && std::getline(in, test);) all[test] = value;
    return all;
}

std::string compare(const std::string& test, const std::string& tags) {
    const std::uint64_t ours = std::exchange(bits_of_test, 0);
    if (tags.find("[library]") != tags.npos) return "";
    if (const char* const file = std::getenv("TALLY_WRITE_BITS")) {
        static std::ofstream out(file);
        out << ours << ' ' << test << std::endl;
    }
    if (const char* const file = std::getenv("TALLY_SAME_BITS")) {
        static const Checksums all = written(file);
        const auto theirs = all.find(test);
        if (theirs == all.end()) return std::string("is not in ") + file;
        if (theirs->second != ours)
            return std::string("gives other bits than the program that wrote ") + file;
    }
    return "";
}

[[maybe_unused]] const bool is_set = (after_each_test = compare, true);

}  // namespace

}  // namespace tally::test
