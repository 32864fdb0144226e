// Generates a random program from a seed.
#pragma once

#include <cstdint>

#include "programs/program.hpp"

namespace programs {

Program draw(std::uint64_t seed);

// Returns true if no request for gradients uses a graph that has run backward, or a target inside a
// checkpointed block. A block counts as one operation, because its operations run backward together.
class Evaluator;
bool fits_blocks(const Program& program, const Evaluator& evaluated);

}  // namespace programs
