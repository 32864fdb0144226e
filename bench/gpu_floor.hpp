// Floors of the GPU benchmark: bare products of cuBLAS and bare copies, to be compared with tally.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tally/kernels/kernels.hpp"

namespace tally::bench {

std::string device_name();
void finish();  // waits for all queued work

// A call of cublasSgemm in full float32 on numbered buffers.
struct Call {
    detail::Product product;
    std::size_t a, b, c;
    Write how;
};

// Returns a function that queues the calls and does not wait. The function owns the buffers.
std::function<void()> products(const std::vector<std::size_t>& buffers,  // elements of each buffer
                               const std::vector<Call>& calls);

// Returns a function that queues a copy within the device, which reads and writes `moved` / 2 bytes each.
std::function<void()> copy(std::size_t moved);

}  // namespace tally::bench
