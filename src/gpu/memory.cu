// fill, copy, gather, scatter, blocks and rows on the GPU: the bodies of memory.hpp, launched.
#include "gpu/memory.hpp"

#include "gpu/on_device.hpp"

namespace tally::gpu {

template void install_memory<OnDevice>(Kernels<float>&);
template void install_memory<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
