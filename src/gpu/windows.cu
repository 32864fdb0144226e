// Windows over images on the GPU: the bodies of windows.hpp, launched.
#include "gpu/windows.hpp"

#include "gpu/on_device.hpp"

namespace tally::gpu {

template void install_windows<OnDevice>(Kernels<float>&);
template void install_windows<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
