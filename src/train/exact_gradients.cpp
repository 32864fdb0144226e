// Implements ExactGradients: adds gradients, rounds their sums, and saves and loads the sums.
#include "tally/train/exact_gradients.hpp"

#include <cmath>

#include "tally/train/state_reader.hpp"

namespace tally::detail {

template <class S> ExactGradients<S>::ExactGradients(const std::vector<V>& parameters)
    : parameters_(parameters), sums_(empty_sums()) {}

template <class S> typename ExactGradients<S>::Sums ExactGradients<S>::empty_sums() const {
    Sums sums;
    for (const V& parameter : parameters_) sums.emplace_back(parameter.shape());
    sums.emplace_back(Shape{});
    sums.emplace_back(Shape{});
    return sums;
}

template <class S> void ExactGradients<S>::begin() {
    for (const V& parameter : parameters_) parameter.node()->clear_gradient();
}

template <class S> void ExactGradients<S>::add_gradients() {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        if (parameters_[i].has_grad())
            sums_[i].add(parameters_[i].node()->gradient);  // grad() would mark the gradient as escaped
}

template <class S> void ExactGradients<S>::count(const V& loss, const V& counted) {
    sums_[parameters_.size()].add(loss.value());
    sums_[parameters_.size() + 1].add(counted.value());
}

template <class S> Var<Array<S>> ExactGradients<S>::total(std::size_t which) const {
    return V(sums_[parameters_.size() + which].rounded().to(parameters_[0].value().device()));
}

template <class S> void ExactGradients<S>::round() {
    begin();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (sums_[i].empty()) continue;
        ValueNode<Array<S>>& node = *parameters_[i].node();
        const Into<Array<S>> into = node.into();
        if (node.value.device() == Device::cpu)
            sums_[i].round_to(detail::grad_buffer(into).dst);
        else
            accumulate_into(into, sums_[i].rounded().to(node.value.device()));
        account_as(node.gradient, MemoryClass::gradient);
    }
}

template <class S> void ExactGradients<S>::clear() {
    for (detail::ExactSum<S>& sum : sums_) sum.clear();
}

// Saves digits of exact sums as doubles, which represent every digit exactly after carry().
template <class S> void ExactGradients<S>::save(TrainingState& state, const std::string& prefix) const {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
        const std::string at = prefix + "/sums/" + std::to_string(i);
        state.put(at + "/there", std::int64_t{!sums_[i].empty()});
        if (sums_[i].empty()) continue;
        detail::ExactSum<S> sum(sums_[i].shape());
        sum.merge(sums_[i]);
        sum.carry();
        const ExactRange& range = sum.range();
        const auto digits = static_cast<std::int64_t>(range.digit_count());
        state.put(at + "/lowest", digits ? range.lowest : 0);
        state.put(at + "/width", digits);
        state.put(at + "/marks", std::int64_t{range.has_marks});
        const std::span<const std::int64_t> saved = sum.words();
        state.put(at + "/digits",
                  Array<double>({static_cast<std::int64_t>(saved.size())}, {saved.begin(), saved.end()}));
    }
}

template <class S>
typename ExactGradients<S>::Sums ExactGradients<S>::read(StateReader& saved,
                                                         std::int64_t micro_batches) const {
    Sums sums = empty_sums();
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const std::string at = "sums/" + std::to_string(i);
        if (saved.count(at + "/there", micro_batches > 0) == 0) continue;
        const std::int64_t lowest = saved.count(at + "/lowest", 100), width = saved.count(at + "/width", 100);
        ExactRange range{.has_marks = saved.count(at + "/marks", 1) == 1};
        if (width > 0) range = {lowest, lowest + width - 1, range.has_marks};
        const Array<double>& digits = saved.get<Array<double>>(at + "/digits");
        const std::size_t size = sums[i].shape().size() * range.words_per_number();
        if (!has_memory(digits) || digits.shape() != Shape{static_cast<std::int64_t>(size)})
            saved.fail("'" + saved.name_of(at) + "' are digits of " + to_string(digits.shape()) + "; (" +
                       std::to_string(size) + ") expected");
        sums[i].widen(range);
        std::int64_t* place = sums[i].words().data();
        for (const double digit : digits.to_vector()) {
            if (!(std::abs(digit) <= 0x1p45) || std::floor(digit) != digit)
                saved.fail("'" + saved.name_of(at) + "' has a digit " + to_text(digit));
            *place++ = static_cast<std::int64_t>(digit);
        }
        sums[i].set_additions(1);
    }
    return sums;
}

template class ExactGradients<float>;
template class ExactGradients<double>;

}  // namespace tally::detail
