// cross-entropy on the GPU: the bodies of loss.hpp, launched.
#include "gpu/loss.hpp"

#include "gpu/on_device.hpp"

namespace tally::gpu {

template void install_loss<OnDevice>(Kernels<float>&);
template void install_loss<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
