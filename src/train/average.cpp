// Implements MovingAverage: updates all averages in one launch, and exchanges averages and parameters.
#include "tally/train/average.hpp"

#include <algorithm>
#include <utility>

#include "tally/train/state_reader.hpp"

namespace tally {

template <class S>
MovingAverage<S>::MovingAverage(std::vector<Var<Array<S>>> parameters, detail::AverageOptions options)
    : parameters_(std::move(parameters)), options_(options) {
    require_parameters("average", parameters_);
    require(options.decay >= 0 && options.decay < 1, "average", "the decay must be from 0 to below 1",
            options.decay);
    for (const Var<Array<S>>& parameter : parameters_) averages_.push_back(parameter.value().clone());
}

template <class S> void MovingAverage<S>::prepare() {
    require_not_swapped("update");  // throws before a step changes the parameters
    move_to_parameter_device();
    for (Array<S>& average : averages_) average.writable();
    list_.reserve(averages_.size());
}

template <class S> void MovingAverage<S>::move_to_parameter_device() {
    const Device there = parameters_[0].value().device();
    for (std::size_t i = 0; i < averages_.size(); ++i) {
        if (const Device own = parameters_[i].value().device(); own != there)
            detail::fail_devices("average", there, own);
        if (averages_[i].device() != there) averages_[i] = averages_[i].to(there);
    }
}

template <class S> detail::AverageStep<S> MovingAverage<S>::numbers() const {
    require_not_swapped("update");
    double decay = options_.decay;
    if (options_.bias_correction)  // weight of the previous average in the average after t updates
        decay *= (1 - formula::pow(decay, static_cast<double>(updates_))) /
                 (1 - formula::pow(decay, static_cast<double>(updates_ + 1)));
    return {static_cast<S>(decay), static_cast<S>(1 - decay)};
}

template <class S> void MovingAverage<S>::follow_update() {
    const detail::AverageStep<S> step = numbers();
    list_.clear();
    move_to_parameter_device();
    for (std::size_t i = 0; i < averages_.size(); ++i)
        list_.push_back({.value = averages_[i].writable(),
                         .gradient = parameters_[i].value().data(),
                         .size = averages_[i].size(),
                         .state = updates_ == 0 ? Write::set : Write::add});
    detail::kernels<S>(averages_[0].device()).average(list_, step);
    ++updates_;
}

template <class S> void MovingAverage<S>::update() {
    if (in_use_.use_count() > 1)
        throw Error(
            "[average] update: a window already updates this average, so this call would count an update "
            "twice; remove the call, or make the window without .average");
    follow_update();
}

template <class S>
std::shared_ptr<const void> MovingAverage<S>::use(const std::vector<Var<Array<S>>>& stepped) const {
    const auto is_stepped = [&](const Var<Array<S>>& parameter) {
        return std::ranges::any_of(stepped,
                                   [&](const auto& each) { return each.node() == parameter.node(); });
    };
    if (std::ranges::none_of(parameters_, is_stepped))
        throw Error(
            "[window] average: none of its " + std::to_string(parameters_.size()) +
            " parameters is among the " + std::to_string(stepped.size()) +
            " that the optimizer steps, so it would never change; make both from the same parameters");
    return in_use_;
}

template <class S> const Array<S>& MovingAverage<S>::value(std::size_t i) const {
    require_not_swapped("value");
    if (i >= averages_.size())
        throw Error("[average] value(" + std::to_string(i) + ") of " + std::to_string(averages_.size()) +
                    " averages; they are numbered from 0");
    return averages_[i];
}

template <class S> void MovingAverage<S>::swap() {
    for (std::size_t i = 0; !swapped_ && i < parameters_.size(); ++i)
        if (parameters_[i].node()->grad_flags & grad_flag::holds_average)
            detail::throw_holds_average("average", i);
    const detail::UnlockScope own(grad_flag::holds_average);
    move_to_parameter_device();
    std::vector<Array<S>> kept;
    for (const Var<Array<S>>& parameter : parameters_) kept.push_back(parameter.value().clone());
    std::vector<detail::Update<S>> copies;  // complete before the kernel writes a value
    for (std::size_t i = 0; i < kept.size(); ++i)
        parameters_[i].modify_value([&](Array<S>& value) {
            copies.push_back(
                {.value = value.writable(), .gradient = averages_[i].data(), .size = value.size()});
        });
    detail::kernels<S>(kept[0].device()).average(copies, {});
    averages_ = std::move(kept);
    swapped_ = !swapped_;
    mark_holds_average(swapped_);
}

template <class S> void MovingAverage<S>::mark_holds_average(bool lent) noexcept {
    for (const Var<Array<S>>& parameter : parameters_) {
        std::uint8_t& grad_flags = parameter.node()->grad_flags;
        grad_flags = static_cast<std::uint8_t>(lent ? grad_flags | grad_flag::holds_average
                                                    : grad_flags & ~grad_flag::holds_average);
    }
}

template <class S> void MovingAverage<S>::require_not_swapped(const char* doing) const {
    if (swapped_)
        throw Error(std::string("[average] ") + doing +
                    ": the model has the averages in place of its weights; swap() back first");
}

template <class S> void MovingAverage<S>::save(TrainingState& state, const std::string& prefix) const {
    require_not_swapped("save");
    state.put(prefix + "/parameters", static_cast<std::int64_t>(averages_.size()));
    state.put(prefix + "/updates", updates_);
    state.put(prefix + "/options/decay", options_.decay);
    state.put(prefix + "/options/bias_correction", options_.bias_correction ? 1.0 : 0.0);
    for (std::size_t i = 0; i < averages_.size(); ++i)
        state.put(prefix + "/average/" + std::to_string(i), averages_[i]);
}

template <class S>
detail::ApplyState MovingAverage<S>::validate_state(const TrainingState& state, const std::string& prefix) {
    require_not_swapped("load");
    StateReader saved("average", state, prefix);
    saved.require_parameter_count(averages_.size());
    saved.require_option("decay", options_.decay);
    saved.require_option("bias_correction", options_.bias_correction ? 1 : 0);
    const std::int64_t updates = saved.count("updates");
    std::vector<Array<S>> averages;
    for (std::size_t i = 0; i < averages_.size(); ++i)
        averages.push_back(saved.array("average/" + std::to_string(i), averages_[i]));
    saved.require_all_read();
    return [this, updates, averages = std::move(averages)]() mutable {
        averages_ = std::move(averages);
        updates_ = updates;
    };
}

template class MovingAverage<float>;
template class MovingAverage<double>;

}  // namespace tally
