// Taking hold of parameters, and noticing what has happened to them all the same.
#include "tally/train/hold.hpp"

#include <algorithm>

namespace tally::detail {

template <class S> void Hold<S>::take(Sweeps sweeps) {
    on_ = true;
    sweeps_ = sweeps;
    const std::uint8_t how = sweeps == Sweeps::own ? touch::held | touch::sealed : touch::held;
    for (const Var<Array<S>>& parameter : parameters_) {
        std::uint8_t& touched = parameter.node()->touched;
        touched = static_cast<std::uint8_t>((touched & ~touch::met) | how);
    }
}

template <class S> void Hold<S>::untouch() {
    for (const Var<Array<S>>& parameter : parameters_)
        if (on_ || !(parameter.node()->touched & touch::held)) parameter.node()->untouch();
}

template <class S> void Hold<S>::release() {
    if (!on_) return;
    on_ = false;
    for (const Var<Array<S>>& parameter : parameters_)
        parameter.node()->touched &= touch::arrived | touch::shown | touch::lent;
}

template <class S> void Hold<S>::look() {
    if (!on_) return;
    left_.clear();
    for (const Var<Array<S>>& parameter : parameters_) {
        ValueNode<Array<S>>& node = *parameter.node();
        node.touched &= static_cast<std::uint8_t>(~touch::met);
        left_.push_back({place_of(node.value), place_of(node.gradient)});
    }
}

template <class S> void Hold<S>::expect_as_left(const char* doing) const {
    if (!on_) return;
    for (std::size_t i = 0; i < left_.size(); ++i) {
        const ValueNode<Array<S>>& node = *parameters_[i].node();
        if (sweeps_ == Sweeps::own && node.touched & touch::met)
            throw Error(std::string("[window] ") + doing + ": another window went backward into parameter " +
                        std::to_string(i) + " of " + to_string(parameters_[i].shape()) +
                        ", which belongs to this one; detach() it in the other's loss. discard() this window "
                        "and begin anew");
        const bool value = place_of(node.value) == left_[i].value,
                   gradient =
                       place_of(node.gradient) == left_[i].gradient ||
                       (sweeps_ == Sweeps::theirs && node.gradient.storage() != left_[i].gradient.storage);
        if (value && gradient) continue;
        throw Error(std::string("[window] ") + doing + ": the " + (value ? "gradient" : "value") +
                    " of parameter " + std::to_string(i) + " of " + to_string(parameters_[i].shape()) +
                    " was changed in place since the last micro-batch, by something that is not the window; "
                    "discard() it and begin anew");
    }
}

template <class S> bool Hold<S>::met() const {
    return std::any_of(parameters_.begin(), parameters_.end(), [&](const Var<Array<S>>& parameter) {
        return (parameter.node()->touched & (on_ ? touch::met : touch::arrived)) != 0;
    });
}

template <class S> void Hold<S>::note_values() noexcept {
    for (std::size_t i = 0; i < noted_.size(); ++i) noted_[i] = place_of(parameters_[i].node()->value);
}

template <class S> bool Hold<S>::written() const {
    for (std::size_t i = 0; i < noted_.size(); ++i)
        if (place_of(parameters_[i].node()->value) != noted_[i]) return true;
    return false;
}

template class Hold<float>;
template class Hold<double>;

}  // namespace tally::detail
