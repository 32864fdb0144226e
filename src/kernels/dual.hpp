// Dual is a number with its derivative. Arrays of Dual combine forward mode with reverse mode.
//
// A backward pass over dual numbers x + εv computes the gradient, whose ε part is the Hessian times v.
#pragma once

#include <cmath>
#include <iosfwd>

#include "tally/kernels/formulas.hpp"

namespace tally {

template <class S> struct Dual {
    S value{};
    S rate{};

    constexpr Dual() = default;
    constexpr Dual(S v, S r) : value(v), rate(r) {}
    explicit constexpr Dual(double constant) : value(static_cast<S>(constant)) {}

    constexpr Dual operator-() const { return {-value, -rate}; }
    friend constexpr Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.rate + b.rate}; }
    friend constexpr Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.rate - b.rate}; }
    friend constexpr Dual operator*(Dual a, Dual b) {
        return {a.value * b.value, a.rate * b.value + a.value * b.rate};
    }
    friend constexpr Dual operator/(Dual a, Dual b) {
        const S quotient = a.value / b.value;
        return {quotient, (a.rate - quotient * b.rate) / b.value};
    }
    constexpr Dual& operator+=(Dual b) { return *this = *this + b; }
    constexpr Dual& operator-=(Dual b) { return *this = *this - b; }
    constexpr Dual& operator*=(Dual b) { return *this = *this * b; }
    constexpr Dual& operator/=(Dual b) { return *this = *this / b; }

    // Comparisons use only `value`, and ignore the derivative `rate`.
    friend constexpr bool operator==(Dual a, Dual b) { return a.value == b.value; }
    friend constexpr auto operator<=>(Dual a, Dual b) { return a.value <=> b.value; }

    friend std::ostream& operator<<(std::ostream& out, Dual x) {
        return out << x.value << " at rate " << x.rate;
    }

    friend Dual exp(Dual x) {
        const S y = formula::exp(x.value);
        return {y, y * x.rate};
    }
    friend Dual log(Dual x) { return {formula::log(x.value), x.rate / x.value}; }
    friend Dual log_of_one_plus(Dual x) { return {formula::log1p(x.value), x.rate / (1 + x.value)}; }
    friend Dual exp_less_one(Dual x) { return {formula::expm1(x.value), formula::exp(x.value) * x.rate}; }
    friend Dual fma(Dual a, Dual b, Dual c) {
        return {std::fma(a.value, b.value, c.value), c.rate + (a.rate * b.value + a.value * b.rate)};
    }
    friend Dual sqrt(Dual x) {
        const S y = std::sqrt(x.value);
        return {y, x.rate / (2 * y)};
    }
    friend Dual tanh(Dual x) {
        const S y = formula::tanh(x.value);
        return {y, (1 - y * y) * x.rate};
    }
    friend Dual sin(Dual x) { return {formula::sin(x.value), formula::cos(x.value) * x.rate}; }
    friend Dual cos(Dual x) { return {formula::cos(x.value), -formula::sin(x.value) * x.rate}; }
    friend Dual abs(Dual x) { return x.value < 0 ? -x : x; }
    friend Dual erf(Dual x) {
        const S two_over_root_pi = static_cast<S>(1.12837916709551257390);
        return {formula::erf(x.value), two_over_root_pi * formula::exp(-x.value * x.value) * x.rate};
    }
    friend Dual pow(Dual x, Dual p) {
        const S y = formula::pow(x.value, p.value);
        S change = p.value == 0 ? S(0) : p.value * formula::pow(x.value, p.value - 1) * x.rate;
        if (p.rate != 0) change += x.value == 0 && p.value >= 0 ? S(0) : y * formula::log(x.value) * p.rate;
        return {y, change};
    }
};

}  // namespace tally
