// A module's list of members for arrays of float and double, compiled once.
#include "tally/train/module.hpp"

namespace tally {

bool detail::trains(const char* layer, const Pass& pass) {
    if (pass.implied && context.recording) called_without_pass = layer;
    if (pass.training && pass.over)
        throw Error("[" + std::string(layer) +
                    "] this pass belongs to a finished window; call window.pass() for each micro-batch");
    return pass.training;
}

template class Members<float>;
template class Members<double>;

}  // namespace tally
