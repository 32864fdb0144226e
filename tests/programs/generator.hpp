// Draws a random program from a seed.
#pragma once

#include <cstdint>

#include "programs/program.hpp"

namespace programs {

Program draw(std::uint64_t seed);

// Whether every request for gradients finds its graph unspent and its targets outside of what is
// checkpointed. Results of one block are swept together, so a block is taken as one operation.
class Evaluator;
bool fits_blocks(const Program& program, const Evaluator& evaluated);

}  // namespace programs
