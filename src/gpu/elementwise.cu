// map, zip and where on the GPU: the bodies of elementwise.hpp, launched.
#include "gpu/elementwise.hpp"

#include "gpu/on_device.hpp"

namespace tally::gpu {

template void install_elementwise<OnDevice>(Kernels<float>&);
template void install_elementwise<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
