// sum, mean, spread and max on the GPU: the bodies of reduce.hpp, launched.
#include "tally/gpu/reduce.hpp"

#include "tally/gpu/on_device.hpp"

namespace tally::gpu {

template void install_reduce<OnDevice>(Kernels<float>&);
template void install_reduce<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
