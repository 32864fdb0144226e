// One program held against all witnesses; what differs, and the smallest program in which it still does.
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
    std::int64_t several = 0;   // with more than one backward pass
    std::int64_t compared = 0;  // numbers against the tape
    std::int64_t loose = 0;     // numbers whose bound was too wide to say anything
    double nearest = 0;         // the largest difference, in parts of its bound
    std::int64_t with_peer = 0, refused_by_peer = 0;
    std::int64_t with_differences = 0, weak_differences = 0;
    std::int64_t failures = 0;
    std::array<std::int64_t, op_count> by_operation{};
    std::map<std::string, std::int64_t> refusals;
};

// "" when nothing differs. The text begins with the witness, up to a colon. Throws Invalid.
std::string check(const Program& program, bool with_peer, Counts& counts);

// The same witness still disagrees.
Program shrunk(Program program, const std::string& difference);

std::string summary(const Counts& counts);

}  // namespace programs
