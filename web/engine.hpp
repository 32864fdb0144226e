// Functions of the engine for the page. Each returns JSON with the same bytes in the browser and natively.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tally::web {

enum class Divide : int { not_at_all, by_parts, by_rows };  // a micro-loss: unchanged, / N, or times b_k / B

// Runs the toy: rows of three numbers times three weights, whose mean is the loss. `cuts` are counts of rows.
std::string toy(const std::vector<float>& x, const std::vector<float>& w, const std::vector<int>& cuts,
                Divide divide);

// Runs a chain of layers tanh(h W) with checkpoints. The input of layer i is kept if keep[i] is true or i is
// 0. The layers from one kept input to the next are a segment, which is recomputed during backward.
std::string chain(const std::vector<bool>& keep);

// Computes gradients of `draws` micro-batches of `size` items, drawn from 512 with replacement.
std::string noise(std::uint64_t seed, int size, int draws);

}  // namespace tally::web
