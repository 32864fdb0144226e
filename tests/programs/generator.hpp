// Generates a random program from a seed.
#pragma once

#include <cstdint>

#include "programs/program.hpp"

namespace programs {

Program draw(std::uint64_t seed);

// Returns false if a request for gradients uses a graph that has already run backward, or has a target inside
// a checkpointed block. A block counts as one operation, because its operations run backward together.
class Evaluator;
bool fits_blocks(const Program& program, const Evaluator& evaluated);

}  // namespace programs
