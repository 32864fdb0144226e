// Implements Denominator: weighs losses, adds up counts, and divides gradients.
#include "tally/train/denominator.hpp"

#include <cmath>
#include <limits>

namespace tally {

namespace {

template <class S, class F> void change_all(const std::vector<Var<Array<S>>>& parameters, const F& formula) {
    for (const Var<Array<S>>& parameter : parameters)
        parameter.modify_grad([&](Array<S>& gradient) {
            S* const place = gradient.writable();
            detail::kernels<S>(gradient.device())
                .map[detail::slot<F, detail::UnaryOps>](&formula, place, place, gradient.size());
        });
}

}  // namespace

template <class S>
detail::Denominator<S>::Denominator(Reduction reduction, Weigh weigh, double total, Device device)
    : reduction_(reduction), weigh_(weigh), total_(total), counted_(Array<S>::full({}, S(0), device)) {}

template <class S>
Loss<Array<S>> detail::Denominator<S>::contribution(const Loss<Array<S>>& loss, double weight) const {
    Loss<Array<S>> contribution = loss;
    if (weigh_ == Weigh::micro_batches) {
        const bool empty = loss.count.item() == 0;  // a loss of no terms has no mean
        if (!empty) contribution.sum = loss.mean();
        contribution.count =
            constant(Array<S>::full({}, S(empty ? 0 : 1), contribution.sum.value().device()));
    }
    if (weight != 1) {
        contribution.sum = contribution.sum * weight;
        contribution.count = contribution.count * weight;
    }
    return contribution;
}

template <class S>
double detail::Denominator<S>::item_weight(const Loss<Array<S>>& loss, double weight) const {
    if (weigh_ == Weigh::counted) return weight;
    const auto count = static_cast<double>(loss.count.item());
    return count > 0 ? weight / count : 0;
}

template <class S> Var<Array<S>> detail::Denominator<S>::divided(const V& sum) const {
    return announced() ? sum / total_ : sum;
}

template <class S> void detail::Denominator<S>::count(const V& counted) {
    const NoGrad off;
    counted_ = counted_ + counted;
}

template <class S> double detail::Denominator<S>::tolerance() const {
    return 64 * static_cast<double>(std::numeric_limits<S>::epsilon()) * total_;
}

template <class S> bool detail::Denominator<S>::reached(double counted) const {
    return std::abs(counted - total_) <= tolerance();
}

template <class S>
void detail::Denominator<S>::divide(const std::vector<V>& parameters, double counted) const {
    if (reduction_ == Reduction::sum) return;
    if (!announced())
        change_all(parameters, functor::DivNumber{counted});
    else if (!reached(counted))  // the window is incomplete because the epoch has ended
        change_all(parameters, functor::MulNumber{total_ / counted});
}

template class detail::Denominator<float>;
template class detail::Denominator<double>;

}  // namespace tally
