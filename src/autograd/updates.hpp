// The formulas of the optimizers, once: for float, double, a SIMD batch and a GPU thread alike.
//
// What the host decides for a step (learning rate, Adam's corrections, a clip's factor) is one small struct
// of numbers, computed in double and rounded once to the type of the parameters. Its call operator is the
// formula, in PyTorch's order of operations.
#pragma once

#include <cmath>
#include <cstddef>

#include "autograd/functors.hpp"
#include "autograd/into.hpp"

namespace tally {

// One tensor of a list that a kernel goes through in one call. What is null takes no part.
template <class S>
struct Update {
    S* value = nullptr;
    const S* gradient = nullptr;
    S* first = nullptr;   // what an optimizer remembers: a momentum, Adam's two moments; written where there
    S* second = nullptr;  // is a gradient
    std::size_t size = 0;
    Write state = Write::set;  // `set`: nothing is remembered yet; first and second count as 0, unread
};

template <class S>
struct SgdStep {
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
template <class S>
struct AdamStep {
    S beta1, rest1, beta2, rest2;       // rest = 1 - beta
    S negative_rate, correction2, eps;  // the rate over 1 - beta1^t; the root of 1 - beta2^t
    S weight_decay, shrink;             // added to the gradient; what the value is multiplied by first
    bool decays;

    template <class T>
    constexpr void operator()(const Update<S>& u, T& value, T gradient, T& m, T& v) const {
        using std::sqrt;
        if (u.value) value = value * T(shrink);
        if (u.gradient) {
            if (decays) gradient = gradient + value * T(weight_decay);
            m = m * T(beta1) + gradient * T(rest1);
            v = v * T(beta2) + T(rest2) * gradient * gradient;
        }
        if (u.value) value = value + T(negative_rate) * m / (sqrt(v) / T(correction2) + T(eps));
    }
};

// A moving average, in the place of the value, of the parameters, in the place of the gradient.
template <class S>
struct AverageStep {
    S decay, rest;

    template <class T>
    constexpr void operator()(const Update<S>& u, T& average, T parameter, T&, T&) const {
        average = u.state == Write::set ? parameter : T(decay) * average + T(rest) * parameter;
    }
};

// In place of the value is what is multiplied by a factor and kept within [-most, most]; NaN stays NaN.
template <class S>
struct LimitStep {
    S factor, most;

    template <class T>
    constexpr void operator()(const Update<S>&, T& value, T, T&, T&) const {
        value = value * T(factor);
        value = select(value < T(-most), T(-most), value);
        value = select(value > T(most), T(most), value);
    }
};

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

}  // namespace tally
