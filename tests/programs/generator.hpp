// Generates a random program from a seed.
#pragma once

#include <cstdint>

#include "programs/program.hpp"

namespace programs {

Program draw(std::uint64_t seed);

// Returns whether every request for gradients has a graph that has not run backward, and has targets outside
// of checkpointed blocks. A block counts as one operation, because its operations run backward together.
class Evaluator;
bool fits_blocks(const Program& program, const Evaluator& evaluated);

}  // namespace programs
