// The formulas of the optimizers, once: for float, double, a SIMD batch and a GPU thread alike.
//
// What the host decides for a step (learning rate, Adam's corrections, a clip's factor) is one small struct
// of numbers, computed in double and rounded once to the type of the parameters. Its call operator is the
// formula, in PyTorch's order of operations.
#pragma once

#include <cmath>
#include <cstddef>

#include "tally/kernels/functors.hpp"
#include "tally/kernels/into.hpp"

namespace tally::detail {

// One tensor of a list that a kernel goes through in one call. What is null takes no part.
template <class S> struct Update {
    S* value = nullptr;
    const S* gradient = nullptr;
    S* first = nullptr;   // what an optimizer remembers: a momentum, Adam's two moments; written where there
    S* second = nullptr;  // is a gradient
    std::size_t size = 0;
    Write state = Write::set;  // `set`: nothing is remembered yet; first and second count as 0, unread
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

// Without a value the moments alone are brought forward; without a gradient the value alone is stepped.
template <class S> struct AdamStep {
    S beta1, one_minus_beta1, beta2, one_minus_beta2;
    S negative_rate, correction2, eps;  // the rate over 1 - beta1^t; the root of 1 - beta2^t
    S weight_decay, shrink;             // added to the gradient; what the value is multiplied by first
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

// A moving average, in the place of the value, of the parameters, in the place of the gradient.
template <class S> struct AverageStep {
    S decay, one_minus_decay;

    template <class T> constexpr void operator()(const Update<S>& u, T& average, T parameter, T&, T&) const {
        average = u.state == Write::set ? parameter : T(decay) * average + T(one_minus_decay) * parameter;
    }
};

// In place of the value is what is multiplied by a factor and kept within ±max_value; NaN stays NaN.
template <class S> struct LimitStep {
    S factor, max_value;

    template <class T> constexpr void operator()(const Update<S>&, T& value, T, T&, T&) const {
        value = value * T(factor);
        value = select(value < T(-max_value), T(-max_value), value);
        value = select(value > T(max_value), T(max_value), value);
    }
};

// What clipping by norm multiplies gradients by.
constexpr double clip_factor(double norm, double max_norm) {
    const double factor = max_norm / (norm + 1e-6);
    return factor >= 1 ? 1 : factor;  // NaN stays NaN
}

// ---- element by element ----

// Element i of one tensor.
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
