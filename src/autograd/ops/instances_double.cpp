// The operations of instances.hpp on arrays of double.
#include "autograd/ops/instances.hpp"

namespace tally {

TALLY_INSTANCES(, double)

}  // namespace tally
