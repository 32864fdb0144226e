// The instances of layers.hpp for arrays of double.
#include "tally/instances/layers.hpp"

namespace tally {

TALLY_LAYER_INSTANCES(, double)

}  // namespace tally
