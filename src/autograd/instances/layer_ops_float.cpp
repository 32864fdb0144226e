// Compiles the instantiations of layer_ops.hpp for arrays of float.
#include "tally/autograd/instances/layer_ops.hpp"

namespace tally {

TALLY_LAYER_INSTANCES(, float)

}  // namespace tally
