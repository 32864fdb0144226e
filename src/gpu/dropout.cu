// Dropout on the GPU: the bodies of dropout.hpp, launched.
#include "tally/gpu/dropout.hpp"

#include "tally/gpu/on_device.hpp"

namespace tally::gpu {

template void install_dropout<OnDevice>(Kernels<float>&);
template void install_dropout<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
