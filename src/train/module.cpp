// Instantiates the class `Members`, and finds layers that were called without a `ForwardPass`.
#include "tally/train/module.hpp"

#include <algorithm>

namespace tally {

namespace {

struct MadeWithoutPass {
    std::uint64_t id;
    const char* layer;
};
constexpr std::size_t most_unpassed = 256;  // limit, because each evaluation without NoGrad adds an entry
thread_local std::vector<MadeWithoutPass> unpassed;

}  // namespace

void detail::note_made_without_pass(const Node& result) {
    if (result.state != State::fresh) return;
    if (unpassed.size() == most_unpassed) unpassed.erase(unpassed.begin());
    unpassed.push_back({result.id, called_without_pass});
}

void detail::require_made_in_pass(const std::string& what, const Node& graph) {
    if (unpassed.empty()) return;
    const std::uint64_t oldest = std::ranges::min(unpassed, {}, &MadeWithoutPass::id).id;
    std::set<const Node*> seen;
    std::vector<const Node*> waiting{&graph};
    while (!waiting.empty()) {
        const Node* const node = waiting.back();
        waiting.pop_back();
        if (!node || node->id < oldest || !seen.insert(node).second) continue;
        const auto found = std::ranges::find(unpassed, node->id, &MadeWithoutPass::id);
        if (found != unpassed.end())
            throw Error(what + ": " + found->layer +
                        " was called without a pass, so it did not train; write model(x, "
                        "window.begin_micro_batch(items)) for "
                        "each micro-batch, or make evaluation explicit: ForwardPass evaluation; model(x, "
                        "evaluation)");
        for (const Node* input : node->inputs()) waiting.push_back(input);
    }
}

bool detail::trains(const char* layer, const ForwardPass& pass) {
    if (pass.implied && context.recording) called_without_pass = layer;
    if (pass.training && pass.over)
        throw Error(
            "[" + std::string(layer) +
            "] this pass belongs to a finished window; call window.begin_micro_batch() for each micro-batch");
    return pass.training;
}

template class detail::Members<float>;
template class detail::Members<double>;

}  // namespace tally
