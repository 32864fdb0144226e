// The operations of instances.hpp on arrays of float.
#include "tally/autograd/ops/instances.hpp"

namespace tally {

TALLY_INSTANCES(, float)

}  // namespace tally
