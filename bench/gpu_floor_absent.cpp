// Replaces gpu_floor.cu in programs without CUDA, such as the tests in tests/gpu.
#include "bench/gpu_floor.hpp"
#include "tally/base/error.hpp"

namespace tally::bench {

namespace {

[[noreturn]] void refuse() {
    throw Error("[bench] cannot measure cuBLAS in a program without CUDA; use --small or --cpu");
}

}  // namespace

std::function<void()> products(const std::vector<std::size_t>&, const std::vector<Call>&) { refuse(); }
std::function<void()> copy(std::size_t) { refuse(); }

std::string device_name() { return "a device without CUDA"; }
void finish() {}

}  // namespace tally::bench
