// Declares direct calls of cuBLAS and direct copies. The GPU benchmark compares tally's time with the time of
// these calls.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tally/kernels/kernels.hpp"

namespace tally::bench {

std::string device_name();
void finish();  // waits for all queued work

// Describes one call of cublasSgemm in full float32. Numbers select the buffers.
struct Call {
    detail::Product product;
    std::size_t a, b, c;
    Write how;
};

// Returns a function that queues the calls and does not wait. The function owns the buffers.
std::function<void()> products(const std::vector<std::size_t>& buffers,  // elements of each buffer
                               const std::vector<Call>& calls);

// Returns a function that queues a copy on the device, which reads and writes `moved` bytes in total.
std::function<void()> copy(std::size_t moved);

}  // namespace tally::bench
