// cross-entropy on the GPU: the bodies of loss.hpp, launched.
#include "tally/gpu/loss.hpp"

#include "tally/gpu/on_device.hpp"

namespace tally::gpu {

template void install_loss<OnDevice>(Kernels<float>&);
template void install_loss<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
