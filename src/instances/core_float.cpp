// The instances of core.hpp for arrays of float.
#include "tally/instances/core.hpp"

namespace tally {

TALLY_CORE_INSTANCES(, float)

}  // namespace tally
