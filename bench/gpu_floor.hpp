// Declares calls of cuBLAS and copies of memory, with which the GPU benchmark compares tally.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tally/kernels/kernels.hpp"

namespace tally::bench {

std::string device_name();
void finish();  // waits for all queued work

// Describes one call of cublasSgemm in float32. The fields a, b and c are indices of buffers.
struct Call {
    detail::Product product;
    std::size_t a, b, c;
    Write how;
};

// Allocates the buffers, and returns a function that owns the buffers and queues the calls.
std::function<void()> products(const std::vector<std::size_t>& buffers,  // elements of each buffer
                               const std::vector<Call>& calls);

// Returns a function that queues a copy on the device. The copy reads and writes `moved` bytes in total.
std::function<void()> copy(std::size_t moved);

}  // namespace tally::bench
