// Implements ParameterLock, which locks parameters by flags and detects writes that bypass the lock.
#include "tally/train/parameter_lock.hpp"

#include <algorithm>

namespace tally::detail {

template <class S> void ParameterLock<S>::lock(Mode mode) {
    on_ = true;
    mode_ = mode;
    const std::uint8_t how =
        mode == Mode::internal ? grad_flag::locked | grad_flag::backward_locked : grad_flag::locked;
    for (const Var<Array<S>>& parameter : parameters_) {
        std::uint8_t& grad_flags = parameter.node()->grad_flags;
        grad_flags = static_cast<std::uint8_t>((grad_flags & ~grad_flag::dirty_for_window) | how);
    }
}

template <class S> void ParameterLock<S>::clear_gradients() {
    for (const Var<Array<S>>& parameter : parameters_)
        if (on_ || !(parameter.node()->grad_flags & grad_flag::locked)) parameter.node()->clear_gradient();
}

template <class S> void ParameterLock<S>::release() {
    if (!on_) return;
    on_ = false;
    for (const Var<Array<S>>& parameter : parameters_)
        parameter.node()->grad_flags &= grad_flag::present | grad_flag::escaped | grad_flag::holds_average;
}

template <class S> void ParameterLock<S>::snapshot() {
    if (!on_) return;
    left_.clear();
    for (const Var<Array<S>>& parameter : parameters_) {
        ValueNode<Array<S>>& node = *parameter.node();
        node.grad_flags &= static_cast<std::uint8_t>(~grad_flag::dirty_for_window);
        left_.push_back({place_of(node.value), place_of(node.gradient)});
    }
}

template <class S> void ParameterLock<S>::require_unchanged(const char* doing) const {
    if (!on_) return;
    for (std::size_t i = 0; i < left_.size(); ++i) {
        const ValueNode<Array<S>>& node = *parameters_[i].node();
        if (mode_ == Mode::internal && node.grad_flags & grad_flag::dirty_for_window)
            throw Error(std::string("[window] ") + doing + ": another window ran backward() into parameter " +
                        std::to_string(i) + " of " + to_string(parameters_[i].shape()) +
                        ", which belongs to this window; detach() the parameter in the other window's "
                        "loss, and discard() this window");
        const bool value = place_of(node.value) == left_[i].value,
                   gradient =
                       place_of(node.gradient) == left_[i].gradient ||
                       (mode_ == Mode::external && node.gradient.storage() != left_[i].gradient.storage);
        if (value && gradient) continue;
        throw Error(std::string("[window] ") + doing + ": the " + (value ? "gradient" : "value") +
                    " of parameter " + std::to_string(i) + " of " + to_string(parameters_[i].shape()) +
                    " was changed in place since the last micro-batch, by code other than the window; "
                    "discard() the window");
    }
}

template <class S> bool ParameterLock<S>::is_dirty() const {
    return std::any_of(parameters_.begin(), parameters_.end(), [&](const Var<Array<S>>& parameter) {
        return (parameter.node()->grad_flags & (on_ ? grad_flag::dirty_for_window : grad_flag::present)) != 0;
    });
}

template <class S> void ParameterLock<S>::note_values() noexcept {
    for (std::size_t i = 0; i < noted_.size(); ++i) noted_[i] = place_of(parameters_[i].node()->value);
}

template <class S> bool ParameterLock<S>::written() const {
    for (std::size_t i = 0; i < noted_.size(); ++i)
        if (place_of(parameters_[i].node()->value) != noted_[i]) return true;
    return false;
}

template class ParameterLock<float>;
template class ParameterLock<double>;

}  // namespace tally::detail
