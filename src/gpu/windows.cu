// Windows over images on the GPU: the bodies of windows.hpp, launched.
#include "tally/gpu/windows.hpp"

#include "tally/gpu/on_device.hpp"

namespace tally::gpu {

template void install_windows<OnDevice>(Kernels<float>&);
template void install_windows<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
