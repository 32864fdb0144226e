// check() compares tally's results of a program with independent results. shrunk() simplifies a program.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "programs/program.hpp"

namespace programs {

struct Counts {
    std::int64_t programs = 0, operations = 0, requests = 0, wide = 0, special = 0, checkpointed = 0,
                 nested = 0;
    std::int64_t several = 0;   // programs with several backward passes
    std::int64_t compared = 0;  // numbers compared with the tape
    std::int64_t loose = 0;     // numbers whose bound was too large for a comparison
    double nearest = 0;         // the largest difference, as a fraction of the bound
    std::int64_t with_peer = 0, rejected_by_peer = 0;
    std::int64_t with_differences = 0, weak_differences = 0;
    std::int64_t failures = 0;
    std::array<std::int64_t, op_count> by_operation{};
    std::map<std::string, std::int64_t> errors_of_peer;
};

// Returns the first difference, which begins with the name of the check and a colon, or "". Throws Invalid.
std::string check(const Program& program, bool with_peer, Counts& counts);

// Returns a smaller program that still fails the check that found `difference`.
Program shrunk(Program program, const std::string& difference);

std::string summary(const Counts& counts);

}  // namespace programs
