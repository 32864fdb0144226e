// Computes the norm of gradients and clips gradients, with one launch for all parameters.
#include "tally/train/clip.hpp"

#include <cmath>
#include <limits>

#include "tally/train/state_reader.hpp"

namespace tally {

namespace {

template <class S> using Parameters = std::vector<Var<Array<S>>>;

using detail::MeasuredGradients;

template <class S> MeasuredGradients measure(const Parameters<S>& parameters, bool norm = true) {
    const Device device = parameters[0].value().device();
    std::vector<detail::Update<S>> list;
    list.reserve(parameters.size());
    for (const Var<Array<S>>& parameter : parameters) {
        if (parameter.value().device() != device)  // to() may have moved only some of the parameters
            detail::fail_devices("window", device, parameter.value().device());
        if (parameter.has_grad()) {
            const Array<S>& gradient = parameter.node()->gradient;  // grad() marks gradients as escaped
            list.push_back({.gradient = gradient.data(), .size = gradient.size()});
        }
    }
    if (list.empty()) return {};
    Array<double> found = Array<double>::empty({2}, device);
    detail::kernels<S>(device).measure(list, norm, found.raw());
    const std::vector<double> read = found.to_vector();
    return {std::sqrt(read[0]), static_cast<std::int64_t>(read[1])};
}

template <class S> void limit(const Parameters<S>& parameters, S factor, S max_value) {
    std::vector<detail::Update<S>> list;
    for (const Var<Array<S>>& parameter : parameters)
        parameter.modify_grad([&](Array<S>& gradient) {
            list.push_back({.value = gradient.writable(), .size = gradient.size()});
        });
    if (!list.empty())
        detail::kernels<S>(parameters[0].value().device())
            .limit(list, detail::LimitStep<S>{factor, max_value});
}

}  // namespace

template <class S> double detail::grad_norm(const Parameters<S>& parameters) {
    require_parameters("grad_norm", parameters);
    return measure(parameters).norm;
}

template <class S> std::int64_t detail::count_non_finite(const Parameters<S>& parameters) {
    require_parameters("count_non_finite", parameters);
    return measure(parameters, false).non_finite;
}

template <class S> MeasuredGradients detail::measure_gradients(const Parameters<S>& parameters, bool norm) {
    return measure(parameters, norm);
}

template <class S> void detail::clip_measured(const Parameters<S>& parameters, double norm, double max_norm) {
    require(max_norm >= 0, "clip_grad_norm", "max_norm must be at least 0", max_norm);
    const double factor = clip_factor(norm, max_norm);
    if (factor != 1) limit(parameters, static_cast<S>(factor), std::numeric_limits<S>::infinity());
}

template <class S> double clip_grad_norm(const Parameters<S>& parameters, double max_norm) {
    require(max_norm >= 0, "clip_grad_norm", "max_norm must be at least 0", max_norm);
    require_parameters("clip_grad_norm", parameters);
    const double norm = measure(parameters).norm;
    detail::clip_measured(parameters, norm, max_norm);
    return norm;
}

template <class S> void clip_grad_value(const Parameters<S>& parameters, double max_value) {
    require(max_value >= 0, "clip_grad_value", "limit must be at least 0", max_value);
    require_parameters("clip_grad_value", parameters);
    limit(parameters, S(1), static_cast<S>(max_value));
}

#define TALLY_MADE_FOR(S)                                                             \
    template double detail::grad_norm(const Parameters<S>&);                          \
    template std::int64_t detail::count_non_finite(const Parameters<S>&);             \
    template MeasuredGradients detail::measure_gradients(const Parameters<S>&, bool); \
    template void detail::clip_measured(const Parameters<S>&, double, double);        \
    template double clip_grad_norm(const Parameters<S>&, double);                     \
    template void clip_grad_value(const Parameters<S>&, double);
TALLY_MADE_FOR(float)
TALLY_MADE_FOR(double)
#undef TALLY_MADE_FOR

}  // namespace tally
