// Batch norm on the GPU: the bodies of batch_norm.hpp, launched.
#include "tally/gpu/batch_norm.hpp"

#include "tally/gpu/on_device.hpp"

namespace tally::gpu {

template void install_batch_norm<OnDevice>(Kernels<float>&);
template void install_batch_norm<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
