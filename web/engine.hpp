// Declares the functions that classroom.html calls. Browsers and programs get the same JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tally::web {

enum class Divide : int { not_at_all, by_parts, by_rows };  // a micro-loss: unchanged, / N, or times b_k / B

// Runs the toy, whose loss is the mean of x w. Rows have three numbers. `cuts` are rows per micro-batch.
std::string toy(const std::vector<float>& x, const std::vector<float>& w, const std::vector<int>& cuts,
                Divide divide);

// Trains w with SGD on the rows x, whose target is the sum of each row. Returns w before the first step and after each step.
std::string race(const std::vector<float>& x, const std::vector<int>& cuts, Divide divide, float rate,
                 int steps);

// Trains 4 layers of 32 units with 64 items, in micro-batches of these sizes, and returns the bytes in use at each moment.
std::string batch_memory(const std::vector<int>& sizes);

// Runs layers tanh(h W) in segments, computes the gradient, and returns the moments of the forward and backward
// pass. A segment begins at layer i if i is 0 or starts[i] is true. All segments except the last run again.
std::string chain(const std::vector<bool>& starts);

// Returns the segments of such a chain that fit into `bytes` and recompute the fewest layers. If no segments
// fit, returns the segments that need the fewest bytes.
std::string chain_fit(int layers, int bytes);

// Runs such a chain by Revolve.
std::string chain_revolve(int layers, int snapshots);

// Computes gradients of `draws` micro-batches, each of `size` items that are drawn with replacement from 512.
std::string noise(std::uint64_t seed, int size, int draws);

}  // namespace tally::web
