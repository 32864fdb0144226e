// Declares the functions that classroom.html calls. A function returns the same JSON in every browser.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tally::web {

enum class Divide : int { not_at_all, by_parts, by_rows };  // a micro-loss: unchanged, / N, or times b_k / B

// Runs the toy with rows of three numbers. `cuts` contains the number of rows of each micro-batch.
std::string toy(const std::vector<float>& x, const std::vector<float>& w, const std::vector<int>& cuts,
                Divide divide);

// Runs layers tanh(h W) with checkpoints. If i is 0 or keep[i] is true, the input of layer i is saved and a
// new segment begins at layer i. The backward pass recomputes each segment.
std::string chain(const std::vector<bool>& keep);

// Computes the gradients of `draws` micro-batches. Each micro-batch has `size` items, drawn from 512 items.
std::string noise(std::uint64_t seed, int size, int draws);

}  // namespace tally::web
