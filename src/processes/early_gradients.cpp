// When a gradient is final, and what has become of it since.
#include "tally/processes/early_gradients.hpp"

#include <algorithm>
#include <cstring>

namespace tally::detail {

template <class S> EarlyGradients<S>::EarlyGradients(Processes& processes, std::int64_t window,
                                                     const std::vector<V>& parameters, std::size_t bucket)
    : processes_(processes), parameters_(parameters), places_(parameters.size()) {
    std::size_t numbers = 0;
    for (std::size_t i = parameters_.size(); i-- > 0; numbers += parameters_[i].value().size())
        places_[i] = numbers;
    plan_ = {.window = window,
             .numbers = static_cast<std::int64_t>(numbers),
             .bucket = static_cast<std::int64_t>(std::clamp(numbers, std::size_t{1}, bucket)),
             .bytes_each = sizeof(S)};
    memory_ = std::make_shared<EarlyMemory<S>>(plan_, processes_.size());
}

template <class S> EarlyRound EarlyGradients<S>::round(std::int64_t number) const {
    EarlyRound round = plan_;
    round.number = number;
    return round;
}

// A gradient has come in this micro-batch, and no operation of a graph will read the parameter any more. One that
// a checkpoint will read when it is computed anew is taken for final too early; changed() notices.
template <class S> bool EarlyGradients<S>::is_final(std::size_t parameter) const {
    const auto& node = *parameters_[parameter].node();
    return node.refs == 1 && (node.touched & touch::met) && node.has_gradient();
}

template <class S> EarlySums& EarlyGradients<S>::sums(std::int64_t number) {
    if (EarlySums* const begun = processes_.early(round(number))) return *begun;
    left_ = parameters_.size();
    return processes_.begin_early(round(number), memory_);
}

template <class S> std::size_t EarlyGradients<S>::sent(const EarlySums& sums) const {
    return std::min(memory_->numbers.size(), static_cast<std::size_t>(sums.round().begun * plan_.bucket));
}

// All but its first numbers. Where no gradient has arrived -0, which adds nothing: 0 would turn a -0 into 0.
template <class S> void EarlyGradients<S>::copy(std::size_t parameter, std::size_t from) {
    S* const to = memory_->numbers.data() + places_[parameter] + from;
    const std::size_t size = parameters_[parameter].value().size() - from;
    if (!parameters_[parameter].has_grad()) {
        std::fill_n(to, size, S(-0.0));
        return;
    }
    const Array<S>& gradient = parameters_[parameter].node()->gradient;
    device_copy::bytes(to, Device::cpu, gradient.data() + from, gradient.device(), size * sizeof(S));
}

template <class S> void EarlyGradients<S>::advance(std::int64_t number) {
    EarlySums* sums = processes_.early(round(number));
    if (!sums) {
        if (number != may_begin_ || processes_.has_early() || !is_final(parameters_.size() - 1)) return;
        if (!processes_.wire().complete()) return;  // somebody was left out, who may have begun some
        sums = &this->sums(number);
    }
    while (left_ > 0 && is_final(left_ - 1)) copy(--left_, 0);
    sums->advance(left_ == 0 ? plan_.buckets()
                             : static_cast<std::int64_t>(places_[left_ - 1]) / plan_.bucket);
}

template <class S> bool EarlyGradients<S>::changed(std::size_t parameter, std::int64_t number) const {
    const EarlySums* const sums = processes_.early(round(number));
    const std::size_t place = places_[parameter], all = parameters_[parameter].value().size();
    if (!sums || sent(*sums) <= place) return false;
    if (!parameters_[parameter].has_grad()) return true;
    const std::size_t size = std::min(all, sent(*sums) - place);
    const Array<S>& gradient = parameters_[parameter].node()->gradient;
    std::vector<S> now(size);
    device_copy::bytes(now.data(), Device::cpu, gradient.data(), gradient.device(), size * sizeof(S));
    return std::memcmp(memory_->numbers.data() + place, now.data(), size * sizeof(S)) != 0;
}

template <class S> void EarlyGradients<S>::end(std::int64_t number) {
    may_begin_ = number + 1;
    summed_ = processes_.kept_begun();
    if (!summed_) return;
    EarlySums& sums = this->sums(number);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const std::size_t gone = sent(sums) - std::min(sent(sums), places_[i]);
        if (gone < parameters_[i].value().size()) copy(i, gone);
    }
    processes_.end_early(sums, plan_.buckets());
}

template <class S> void EarlyGradients<S>::take(std::size_t parameter) const {
    parameters_[parameter].change_grad([&](Array<S>& gradient) {
        device_copy::bytes(gradient.writable(), gradient.device(), memory_->sums.data() + places_[parameter],
                           Device::cpu, gradient.size() * sizeof(S));
    });
}

template class EarlyGradients<float>;
template class EarlyGradients<double>;

}  // namespace tally::detail
