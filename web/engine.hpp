// Declares the functions that the page calls. All return JSON, with the same bytes in a browser or a program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tally::web {

enum class Divide : int { not_at_all, by_parts, by_rows };  // a micro-loss: unchanged, / N, or times b_k / B

// Runs the toy, whose loss is the mean of x w. A row of x has three numbers. `cuts` are rows per micro-batch.
std::string toy(const std::vector<float>& x, const std::vector<float>& w, const std::vector<int>& cuts,
                Divide divide);

// Runs layers tanh(h W) with checkpoints. The input of layer i is kept if i is 0 or keep[i] is true. The
// layers from a kept input to the next kept input are a segment, and backward recomputes each segment.
std::string chain(const std::vector<bool>& keep);

// Computes gradients of `draws` micro-batches, each of `size` items that are drawn with replacement from 512.
std::string noise(std::uint64_t seed, int size, int draws);

}  // namespace tally::web
