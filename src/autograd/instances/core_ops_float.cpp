// Compiles the instantiations of core_ops.hpp for arrays of float.
#include "tally/autograd/instances/core_ops.hpp"

namespace tally {

TALLY_CORE_INSTANCES(, float)

}  // namespace tally
