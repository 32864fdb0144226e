// The optimizers' steps on the GPU: the bodies of update.hpp, launched.
#include "tally/gpu/update.hpp"

#include "tally/gpu/on_device.hpp"

namespace tally::gpu {

template void install_update<OnDevice>(Kernels<float>&);
template void install_update<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
