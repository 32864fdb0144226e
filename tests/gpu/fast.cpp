// The kernels under test in this room: the GPU's bodies, run on the host.
#include "gpu/on_host.hpp"
#include "kernel_testing.hpp"

namespace tally::test {

template <class S>
const Kernels<S>& fast() {
    return gpu::host_table<S>();
}

template const Kernels<float>& fast();
template const Kernels<double>& fast();

}  // namespace tally::test
