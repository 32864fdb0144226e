// softmax and its kin on the GPU: the bodies of softmax.hpp, launched.
#include "tally/gpu/softmax.hpp"

#include "tally/gpu/on_device.hpp"

namespace tally::gpu {

template void install_softmax<OnDevice>(Kernels<float>&);
template void install_softmax<OnDevice>(Kernels<double>&);

}  // namespace tally::gpu
