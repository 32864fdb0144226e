// The instances of core.hpp for arrays of double.
#include "tally/autograd/instances/core_ops.hpp"

namespace tally {

TALLY_CORE_INSTANCES(, double)

}  // namespace tally
