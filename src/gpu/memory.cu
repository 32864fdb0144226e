// fill, copy, gather, scatter, blocks and rows on the GPU: the bodies of memory.hpp, launched.
#include "tally/gpu/memory.hpp"

#include "tally/gpu/on_device.hpp"

namespace tally::gpu {

template void install_memory<OnDevice>(Kernels<float>&);
template void install_memory<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
