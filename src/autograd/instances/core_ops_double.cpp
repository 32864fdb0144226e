// Compiles the instantiations of core_ops.hpp for arrays of double.
#include "tally/autograd/instances/core_ops.hpp"

namespace tally {

TALLY_CORE_INSTANCES(, double)

}  // namespace tally
