// Instantiates the layers of images for float and double.
#include "tally/train/image_layers.hpp"

namespace tally {

template class Conv2d<float>;
template class Conv2d<double>;
template class MaxPool2d<float>;
template class MaxPool2d<double>;
template class BatchNorm<float>;
template class BatchNorm<double>;

}  // namespace tally
