// Compiles the instantiations of layer_ops.hpp for arrays of double.
#include "tally/autograd/instances/layer_ops.hpp"

namespace tally {

TALLY_LAYER_INSTANCES(, double)

}  // namespace tally
