// layer norm on the GPU: the bodies of norm.hpp, launched.
#include "tally/gpu/norm.hpp"

#include "tally/gpu/on_device.hpp"

namespace tally::gpu {

template void install_norm<OnDevice>(Kernels<float>&);
template void install_norm<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
