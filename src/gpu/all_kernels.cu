// Instantiates the kernels of all families for the GPU.
#include "tally/gpu/on_device.hpp"
#include "tally/gpu/table.hpp"

namespace tally::gpu {

#define TALLY_MADE(family)                                     \
    template void install_##family<OnDevice>(Kernels<float>&); \
    template void install_##family<OnDevice>(Kernels<double>&);
TALLY_KERNEL_FAMILIES(TALLY_MADE)
#undef TALLY_MADE

}  // namespace tally::gpu
