// What the page asks of the engine; each answer is a JSON text, the same in the browser and natively, byte for byte.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tally::web {

enum class Divide : int { not_at_all, by_parts, by_rows };  // a micro-loss: as it is, / N, or times b_k / B

// The toy: rows of three numbers times three weights; the mean is the loss. `cuts` are the micro-batches' rows.
std::string toy(const std::vector<float>& x, const std::vector<float>& w, const std::vector<int>& cuts,
                Divide divide);

// A chain of layers tanh(h W). What is kept is the input of layer i where keep[i] is true (that of layer 0 always is);
// from one of them to the next is a segment, which runs again when the way back comes to it.
std::string chain(const std::vector<bool>& keep);

// Gradients of `draws` micro-batches of `size` items, drawn from 512 with replacement.
std::string noise(std::uint64_t seed, int size, int draws);

}  // namespace tally::web
