// What optimizers, clips and averages ask of their parameters, options and saved states; included by .cpp
// files.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "autograd/array.hpp"
#include "autograd/var.hpp"
#include "train/training_state.hpp"

namespace tally {

inline std::string in_words(double number) {  // as short as it reads back
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

inline void require(bool holds, const std::string& who, const std::string& what, double given) {
    if (!holds) throw Error("[" + who + "] " + what + "; " + in_words(given) + " is not");
}

// Each a parameter, all on one device, none twice.
template <class S>
void require_parameters(const std::string& who, const std::vector<Var<Array<S>>>& parameters) {
    if (parameters.empty()) throw Error("[" + who + "] there is no parameter to update");
    std::unordered_set<const Node*> seen;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const std::string which = "[" + who + "] parameter " + std::to_string(i);
        const Node* const node = parameters[i].node();
        if (!node) throw Error(which + " is an empty variable");
        const Array<S>& value = parameters[i].value();
        if (node->state != State::leaf)
            throw Error(which + " of " + form(value) + " is the result of '" + node->op() +
                        "'; only what parameter() made can be updated");
        if (!seen.insert(node).second)
            throw Error(which + " of " + form(value) + " is there twice: it would be updated twice");
        if (value.device() != parameters[0].value().device())
            throw Error(which + " is on " + to_string(value.device()) + ", parameter 0 on " +
                        to_string(parameters[0].value().device()) + "; one call updates one device");
    }
}

inline void require_saved_parameters(const std::string& who, const TrainingState& state,
                                     const std::string& under, std::size_t parameters) {
    const auto saved = state.get<std::int64_t>(under + "/parameters");
    if (saved != static_cast<std::int64_t>(parameters))
        throw Error("[" + who + "] '" + under + "' was saved with " + std::to_string(saved) +
                    " parameters, here are " + std::to_string(parameters));
}

inline void require_saved_option(const std::string& who, const TrainingState& state, const std::string& under,
                                 const std::string& option, double here) {
    const double saved = state.get<double>(under + "/options/" + option);
    if (saved != here)
        throw Error("[" + who + "] '" + under + "' was saved with " + option + " " + in_words(saved) +
                    ", here it is " + in_words(here));
}

inline std::int64_t saved_count(const std::string& who, const TrainingState& state, const std::string& name) {
    const auto saved = state.get<std::int64_t>(name);
    if (saved < 0) throw Error("[" + who + "] '" + name + "' is no count: " + std::to_string(saved));
    return saved;
}

// An array of the form of `like`, on its device.
template <class S>
Array<S> saved_array(const std::string& who, const TrainingState& state, const std::string& name,
                     const Array<S>& like) {
    const Array<S>& saved = state.get<Array<S>>(name);
    if (!ready(saved) || saved.shape() != like.shape())
        throw Error("[" + who + "] '" + name + "' is " + to_string(saved.shape()) + ", its parameter " +
                    to_string(like.shape()));
    return saved.to(like.device());
}

}  // namespace tally
