// The operations of instances.hpp on arrays of double.
#include "tally/autograd/ops/instances.hpp"

namespace tally {

TALLY_INSTANCES(, double)

}  // namespace tally
