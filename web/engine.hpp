// The page calls these functions. Each returns JSON, whose bytes are the same in a browser and in a program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tally::web {

enum class Divide : int { not_at_all, by_parts, by_rows };  // a micro-loss: unchanged, / N, or times b_k / B

// Runs the toy: the loss is the mean of x w. A row of x has three numbers. `cuts` are rows per micro-batch.
std::string toy(const std::vector<float>& x, const std::vector<float>& w, const std::vector<int>& cuts,
                Divide divide);

// Runs a chain of layers tanh(h W) with checkpoints. The input of layer i is kept if i is 0 or keep[i] is
// true. The layers from a kept input to the next kept input are a segment, which backward recomputes.
std::string chain(const std::vector<bool>& keep);

// Computes gradients of `draws` micro-batches. Each has `size` items, drawn from 512 items with replacement.
std::string noise(std::uint64_t seed, int size, int draws);

}  // namespace tally::web
