// The processes that mpirun has started this test with: every one runs the same cases in the same order.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "tally/distributed.hpp"

namespace tally::test {

// Its patience is short of a test's, and longer than a loaded machine needs.
ProcessGroup& world();

// So many of them, in their order or the other way round, as processes of their own; null for the others.
std::unique_ptr<ProcessGroup> first_processes(int count, bool backwards);

inline std::size_t ranks() { return static_cast<std::size_t>(world().size()); }
inline std::size_t me() { return static_cast<std::size_t>(world().rank()); }

// One seed for all processes, new each time unless TALLY_TEST_SEED says which.
inline std::uint64_t common_seed(const std::string& what) {
    const char* const told = std::getenv("TALLY_TEST_SEED");
    const std::uint64_t mine = told ? std::strtoull(told, nullptr, 10) : std::random_device{}();
    return std::stoull(world().all_gather("the seed of " + what, std::to_string(mine))[0]);
}

// Whether all processes have the same bits.
template <class S> bool same_everywhere(const Array<S>& array) {
    const auto sums = world().all_gather("a checksum", std::to_string(detail::checksum(array)));
    for (const std::string& sum : sums)
        if (sum != sums[0]) return false;
    return true;
}

// What all together have sent.
inline std::uint64_t numbers_of_all() {
    std::uint64_t sum = 0;
    for (const std::string& sent : world().all_gather("bytes sent", std::to_string(world().sent().numbers)))
        sum += std::stoull(sent);
    return sum;
}

}  // namespace tally::test
