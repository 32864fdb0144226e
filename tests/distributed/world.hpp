// world() is the group of all processes that mpirun starts. Every rank runs the same cases in the same order.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "tally/distributed.hpp"

namespace tally::test {

// The timeout of this group is shorter than the timeout of ctest, and longer than delays of a busy machine.
ProcessGroup& world();

// Returns a group of the first `count` processes, in rank order or reversed. Other processes get nullptr.
std::unique_ptr<ProcessGroup> first_processes(int count, bool backwards);

inline std::size_t ranks() { return static_cast<std::size_t>(world().size()); }
inline std::size_t me() { return static_cast<std::size_t>(world().rank()); }

// Returns the value of TALLY_TEST_SEED or a random seed, which is equal on all processes.
inline std::uint64_t common_seed(const std::string& what) {
    const char* const given = std::getenv("TALLY_TEST_SEED");
    const std::uint64_t mine = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    return std::stoull(world().all_gather("the seed of " + what, std::to_string(mine))[0]);
}

// Returns true if the arrays of all processes have the same bits.
template <class S> bool same_everywhere(const Array<S>& array) {
    const auto sums = world().all_gather("a checksum", std::to_string(detail::checksum(array)));
    for (const std::string& sum : sums)
        if (sum != sums[0]) return false;
    return true;
}

// Returns how many bytes all processes together have sent to add arrays.
inline std::uint64_t numbers_of_all() {
    std::uint64_t sum = 0;
    for (const std::string& sent : world().all_gather("bytes sent", std::to_string(world().sent().sum_bytes)))
        sum += std::stoull(sent);
    return sum;
}

}  // namespace tally::test
