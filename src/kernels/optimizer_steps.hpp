// Defines the formulas of the optimizers for float, double, a SIMD batch and a GPU thread.
//
// Each formula is a struct. The host computes members such as the learning rate in double, and rounds each
// member once to the type of the parameters. The call operator uses the same order of operations as PyTorch.
#pragma once

#include <cmath>
#include <cstddef>

#include "tally/kernels/functors.hpp"
#include "tally/kernels/into.hpp"

namespace tally::detail {

// An Update describes one tensor of a kernel call. The kernel does not access an array whose pointer is null.
template <class S> struct Update {
    S* value = nullptr;
    const S* gradient = nullptr;
    S* first = nullptr;  // momentum, or Adam's first moment; written if there is a gradient
    S* second = nullptr;
    std::size_t size = 0;
    Write state = Write::set;  // `set`: first and second are uninitialised and count as 0
};

template <class S> struct SgdStep {
    S negative_rate, momentum, kept, weight_decay;  // kept = 1 - dampening
    bool nesterov, decays;

    template <class T>
    constexpr void operator()(const Update<S>& u, T& value, T gradient, T& momentum_buffer, T&) const {
        if (decays) gradient = gradient + value * T(weight_decay);
        if (u.first) {
            momentum_buffer =
                u.state == Write::set ? gradient : momentum_buffer * T(momentum) + gradient * T(kept);
            gradient = nesterov ? gradient + momentum_buffer * T(momentum) : momentum_buffer;
        }
        value = value + gradient * T(negative_rate);
    }
};

// AdamStep updates only the moments if u.value is null, and only u.value if u.gradient is null.
template <class S> struct AdamStep {
    S beta1, one_minus_beta1, beta2, one_minus_beta2;
    S negative_rate, correction2, eps;  // -rate / (1 - beta1^t), sqrt(1 - beta2^t)
    S weight_decay, shrink;             // gradient += weight_decay * value; in AdamW value *= shrink
    bool decays;

    template <class T> constexpr void operator()(const Update<S>& u, T& value, T gradient, T& m, T& v) const {
        using std::sqrt;
        if (u.value) value = value * T(shrink);
        if (u.gradient) {
            if (decays) gradient = gradient + value * T(weight_decay);
            m = m * T(beta1) + gradient * T(one_minus_beta1);
            v = v * T(beta2) + T(one_minus_beta2) * gradient * gradient;
        }
        if (u.value) value = value + T(negative_rate) * m / (sqrt(v) / T(correction2) + T(eps));
    }
};

// Updates the moving average in u.value. The pointer u.gradient refers to the averaged parameter.
template <class S> struct AverageStep {
    S decay, one_minus_decay;

    template <class T> constexpr void operator()(const Update<S>& u, T& average, T parameter, T&, T&) const {
        average = u.state == Write::set ? parameter : T(decay) * average + T(one_minus_decay) * parameter;
    }
};

// Multiplies `value`, usually a gradient, by a factor, and limits the product to ±max_value. NaN stays NaN.
template <class S> struct LimitStep {
    S factor, max_value;

    template <class T> constexpr void operator()(const Update<S>&, T& value, T, T&, T&) const {
        value = value * T(factor);
        value = select(value < T(-max_value), T(-max_value), value);
        value = select(value > T(max_value), T(max_value), value);
    }
};

// Returns the factor by which clipping by norm multiplies gradients.
constexpr double clip_factor(double norm, double max_norm) {
    const double factor = max_norm / (norm + 1e-6);
    return factor >= 1 ? 1 : factor;  // NaN stays NaN
}

template <class Step, class S>
constexpr void update_element(const Step& step, const Update<S>& u, std::size_t i) {
    const bool remembers = u.state == Write::add;
    S value = u.value ? u.value[i] : S(0), first = u.first && remembers ? u.first[i] : S(0),
      second = u.second && remembers ? u.second[i] : S(0);
    step(u, value, u.gradient ? u.gradient[i] : S(0), first, second);
    if (u.value) u.value[i] = value;
    if (u.first && u.gradient) u.first[i] = first;
    if (u.second && u.gradient) u.second[i] = second;
}

}  // namespace tally::detail
