// Instantiates the layers for float and double.
#include "tally/train/layers.hpp"

namespace tally {

template class Linear<float>;
template class Linear<double>;
template class ReLU<float>;
template class ReLU<double>;
template class Tanh<float>;
template class Tanh<double>;
template class GELU<float>;
template class GELU<double>;
template class Flatten<float>;
template class Flatten<double>;
template class LayerNorm<float>;
template class LayerNorm<double>;
template class Dropout<float>;
template class Dropout<double>;
template class Embedding<float>;
template class Embedding<double>;
template class SelfAttention<float>;
template class SelfAttention<double>;
template class Sequential<float>;
template class Sequential<double>;

}  // namespace tally
