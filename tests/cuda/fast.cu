// The kernels under test in this room: the GPU's own, the host waiting for each, on memory that both can
// reach.
#include <new>

#include "autograd/peer.hpp"
#include "gpu/on_device.hpp"
#include "under_test.hpp"

namespace tally::test {

namespace {

struct Waiting : gpu::OnDevice {
    template <class Body>
    static void each(const char* name, std::size_t n, const Body& body) {
        OnDevice::each(name, n, body);
        gpu::wait_for_device(name);
    }
    template <std::size_t lanes, class Body>
    static void teams(const char* name, std::size_t count, const Body& body) {
        OnDevice::teams<lanes>(name, count, body);
        gpu::wait_for_device(name);
    }
    template <class S>
    static void multiply(const Product& p, const S* a, const S* b, Into<S[]> c) {
        OnDevice::multiply(p, a, b, c);
        gpu::wait_for_device("matmul");
    }
};

}  // namespace

template <class S>
const Kernels<S>& fast() {
    static const Kernels<S> made = gpu::table<Waiting, S>();
    return made;
}

void* grab(std::size_t bytes) {
    void* memory = nullptr;
    gpu::check(cudaMallocManaged(&memory, bytes), "cudaMallocManaged", "memory of a test");
    return memory;
}

void give(void* memory) { static_cast<void>(cudaFree(memory)); }

template const Kernels<float>& fast();
template const Kernels<double>& fast();

}  // namespace tally::test
