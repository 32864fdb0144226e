// The kernels under test in this room: the CPU's.
#include "kernel_testing.hpp"

namespace tally::test {

template <class S>
const Kernels<S>& fast() {
    return kernels<S>(Device::cpu);
}

template const Kernels<float>& fast();
template const Kernels<double>& fast();

}  // namespace tally::test
