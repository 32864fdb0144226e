// layer norm on the GPU: the bodies of norm.hpp, launched.
#include "gpu/norm.hpp"

#include "gpu/on_device.hpp"

namespace tally::gpu {

template void install_norm<OnDevice>(Kernels<float>&);
template void install_norm<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
