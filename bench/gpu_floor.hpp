// What a GPU does without tally: bare products of cuBLAS and bare copies, to be timed beside it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "autograd/kernels.hpp"

namespace tally::bench {

std::string device_name();
void finish();  // the host waits for all that the device was given

// Calls of cublasSgemm in full float32, on buffers of their own that are named by number.
struct Call {
    Product product;
    std::size_t a, b, c;
    Write how;
};

class Calls {
public:
    Calls(const std::vector<std::size_t>& buffers, std::vector<Call> calls);  // numbers in each buffer
    void run() const;                                                         // hands them to the device

private:
    struct Buffers;
    std::shared_ptr<const Buffers> buffers_;
    std::vector<Call> calls_;
};

class Copy {  // within the device: what `moved` bytes, half of them read and half written, cost at least
public:
    explicit Copy(std::size_t moved);
    void run() const;

private:
    std::size_t bytes_;
    std::shared_ptr<void> from_, to_;
};

}  // namespace tally::bench
