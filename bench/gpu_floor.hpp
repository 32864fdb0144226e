// The GPU benchmark compares tally with floors: bare products of cuBLAS and bare copies.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tally/kernels/kernels.hpp"

namespace tally::bench {

std::string device_name();
void finish();  // waits for all queued work

// Describes a call of cublasSgemm in full float32. `a`, `b` and `c` are indices of buffers.
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
