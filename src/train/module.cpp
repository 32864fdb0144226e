// A module's list of members for arrays of float and double, compiled once.
#include "tally/train/module.hpp"

namespace tally {

bool detail::trains(const char* layer, const Pass& pass) {
    const auto refuse = [&](const std::string& why) { throw Error("[" + std::string(layer) + "] " + why); };
    if (pass.implied && unused_pass && context.recording)
        refuse(
            "the model was called without a pass after window.pass(), so it would not train; write "
            "model(x, pass) with the Pass that window.pass() returned, or make evaluation explicit: "
            "Pass evaluation; model(x, evaluation)");
    if (pass.implied && context.recording) called_without_pass = layer;
    use(pass);
    if (pass.training && pass.over)
        refuse(
            "the window of this pass is finished, so it would draw the same again; call window.pass() "
            "for each micro-batch");
    return pass.training;
}

template class Members<float>;
template class Members<double>;

}  // namespace tally
