// A module's list of members for arrays of float and double, compiled once.
#include "tally/train/module.hpp"

namespace tally {

template class Members<float>;
template class Members<double>;

}  // namespace tally
