// The kernels under test in this room: the GPU's own, the host waiting for each, on memory that both can
// reach.
#include <new>

#include "autograd/kernels.hpp"
#include "gpu/cuda.hpp"
#include "under_test.hpp"

namespace tally::test {

template <class S>
const Kernels<S>& fast() {
    gpu::wait_after_each_launch(true);
    return kernels<S>(Device::cuda);
}

void* grab(std::size_t bytes) {
    void* memory = nullptr;
    if (cudaMallocManaged(&memory, bytes) != cudaSuccess) throw std::bad_alloc();
    return memory;
}

void give(void* memory) { static_cast<void>(cudaFree(memory)); }

template const Kernels<float>& fast();
template const Kernels<double>& fast();

}  // namespace tally::test
