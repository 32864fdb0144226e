// What a GPU does without tally: bare products of cuBLAS and bare copies, to be timed beside it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tally/kernels/kernels.hpp"

namespace tally::bench {

std::string device_name();
void finish();  // the host waits for all that the device was given

// Calls of cublasSgemm in full float32, on buffers of their own that are named by number.
struct Call {
    detail::Product product;
    std::size_t a, b, c;
    Write how;
};

// What does so once, on memory that lives as long as it; it hands them to the device and does not wait.
std::function<void()> products(const std::vector<std::size_t>& buffers,  // numbers in each
                               const std::vector<Call>& calls);

// Within the device: what `moved` bytes, half of them read and half written, cost at least.
std::function<void()> copy(std::size_t moved);

}  // namespace tally::bench
