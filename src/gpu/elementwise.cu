// map, zip and where on the GPU: the bodies of elementwise.hpp, launched.
#include "tally/gpu/elementwise.hpp"

#include "tally/gpu/on_device.hpp"

namespace tally::gpu {

template void install_elementwise<OnDevice>(Kernels<float>&);
template void install_elementwise<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
