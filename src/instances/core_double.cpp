// The instances of core.hpp for arrays of double.
#include "tally/instances/core.hpp"

namespace tally {

TALLY_CORE_INSTANCES(, double)

}  // namespace tally
