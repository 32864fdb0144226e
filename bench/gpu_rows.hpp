// Declares the rows of the GPU benchmark. The rows can run on any device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tally/tally.hpp"

namespace tally::bench {

struct Row {
    std::string name, per;               // per: unit of the time
    std::function<void()> run;           // does not wait for a GPU
    std::function<Array<float>()> seen;  // gradients or result, to be compared with the CPU's
    std::size_t moved = 0;               // bytes read and written, if memory limits the row
};

// Returns a pseudo-random number between -0.5 and 0.5.
inline float number(std::uint64_t i, std::uint64_t stream) {
    const std::uint64_t mixed = (i * 2654435761u + stream * 1779033703u) & 0xFFFFFFFFu;
    return static_cast<float>(mixed >> 8) / 16777216.0f - 0.5f;
}

struct Network {
    std::vector<std::int64_t> sizes;  // sizes of the layers, the input first
    std::int64_t micro_batches, rows_each;
};

Row update(const std::string& name, const Network& network, Device device);
std::vector<Row> kernels_alone(std::size_t rows, std::size_t columns, Device device);

}  // namespace tally::bench
