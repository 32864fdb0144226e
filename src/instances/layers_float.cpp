// The instances of layers.hpp for arrays of float.
#include "tally/instances/layers.hpp"

namespace tally {

TALLY_LAYER_INSTANCES(, float)

}  // namespace tally
