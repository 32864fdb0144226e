// Defines elementwise functions and their derivatives for float, double, Dual, a SIMD batch and a GPU thread.
//
// A functor has a function value(x...) and, for each operand, a function that returns the operand's gradient.
// A functor declares which values its derivatives read, so that an operation saves only these values. To add
// a functor, define it in this file, and add its name to a list at the end of the file. All functions
// are constexpr, so that GPU code can call the functions.
#pragma once

#include <cmath>
#include <cstddef>
#include <tuple>

#include "tally/base/fixed_name.hpp"
#include "tally/kernels/formulas.hpp"

namespace tally {

namespace detail {
// The enum Keep names the value that the derivative of a one-operand function reads.
enum class Keep { nothing, input, output };

// The struct Keeps names the values that the derivatives of a two-operand function read.
struct Keeps {
    bool a = false, b = false, y = false;
};

// grad_a_is_dy is true if the gradient of operand a is dy itself, so that no kernel computes the gradient.
template <class F> inline constexpr bool grad_a_is_dy = requires { F::identity_grad_a; };
template <class F> inline constexpr bool grad_b_is_dy = requires { F::identity_grad_b; };

// Returns dy times the derivative with respect to operand 0 (a) or 1 (b).
template <std::size_t operand, class F, class T> constexpr T slope(const F& f, T dy, T a, T b, T y) {
    if constexpr (operand == 0)
        return f.back_a(dy, a, b, y);
    else
        return f.back_b(dy, a, b, y);
}
}  // namespace detail

namespace functor {

using detail::as, detail::FixedName, detail::Keep, detail::Keeps, detail::select;
using formula::cos, formula::erf, formula::exp, formula::log, formula::pow, formula::sin, formula::tanh;
using std::abs, std::sqrt;

// Returns -x, and -0 for 0. (Some SIMD libraries compute 0 - x, which is 0 for 0.)
template <class T> constexpr T negated(T x) { return as<T>(-0.0) - x; }

// These functions are not named log1p and expm1, because xsimd defines functions with these names.
template <class T> constexpr T log_of_one_plus(T x) { return formula::log1p(x); }
template <class T> constexpr T exp_less_one(T x) { return formula::expm1(x); }

// Returns 1 / (1 + exp(-x)) without overflow.
template <class T> constexpr T logistic(T x) {
    const T power = exp(-abs(x));
    return select(x >= as<T>(0), as<T>(1), power) / (as<T>(1) + power);
}

// ---- one operand: y = value(x), dx = back(dy, saved value) ----

struct Neg {
    static constexpr FixedName name = "neg";
    static constexpr Keep keeps = Keep::nothing;
    template <class T> constexpr T value(T x) const {
        return as<T>(-0.0) - x;
    }  // a batch's -x gives 0, not -0, for 0
    template <class T> constexpr T back(T dy, T) const { return negated(dy); }
};

struct Exp {
    static constexpr FixedName name = "exp";
    static constexpr Keep keeps = Keep::output;
    template <class T> constexpr T value(T x) const { return exp(x); }
    template <class T> constexpr T back(T dy, T y) const { return dy * y; }
};

struct Log {
    static constexpr FixedName name = "log";
    static constexpr Keep keeps = Keep::input;
    template <class T> constexpr T value(T x) const { return log(x); }
    template <class T> constexpr T back(T dy, T x) const { return dy / x; }
};

struct Log1p {
    static constexpr FixedName name = "log1p";
    static constexpr Keep keeps = Keep::input;
    template <class T> constexpr T value(T x) const { return log_of_one_plus(x); }
    template <class T> constexpr T back(T dy, T x) const { return dy / (as<T>(1) + x); }
};

struct Expm1 {  // saves x, because y + 1 loses the digits of exp(x) if y is nearly -1
    static constexpr FixedName name = "expm1";
    static constexpr Keep keeps = Keep::input;
    template <class T> constexpr T value(T x) const { return exp_less_one(x); }
    template <class T> constexpr T back(T dy, T x) const { return dy * exp(x); }
};

struct Sqrt {
    static constexpr FixedName name = "sqrt";
    static constexpr Keep keeps = Keep::output;
    template <class T> constexpr T value(T x) const { return sqrt(x); }
    template <class T> constexpr T back(T dy, T y) const { return dy / (as<T>(2) * y); }
};

struct Tanh {
    static constexpr FixedName name = "tanh";
    static constexpr Keep keeps = Keep::output;
    template <class T> constexpr T value(T x) const { return tanh(x); }
    template <class T> constexpr T back(T dy, T y) const { return dy * (as<T>(1) - y * y); }
};

struct Sigmoid {
    static constexpr FixedName name = "sigmoid";
    static constexpr Keep keeps = Keep::output;
    template <class T> constexpr T value(T x) const { return as<T>(1) / (as<T>(1) + exp(-x)); }
    template <class T> constexpr T back(T dy, T y) const { return dy * (as<T>(1) - y) * y; }
};

struct Softplus {  // log(1 + exp(x))
    static constexpr FixedName name = "softplus";
    static constexpr Keep keeps = Keep::input;
    template <class T> constexpr T value(T x) const {
        return select(x >= as<T>(0), x, as<T>(0)) + log_of_one_plus(exp(-abs(x)));
    }
    template <class T> constexpr T back(T dy, T x) const { return dy * logistic(x); }
};

struct Silu {  // x * sigmoid(x)
    static constexpr FixedName name = "silu";
    static constexpr Keep keeps = Keep::input;
    template <class T> constexpr T value(T x) const { return x * logistic(x); }
    template <class T> constexpr T back(T dy, T x) const {
        return dy * (logistic(x) * (as<T>(1) + x * logistic(-x)));
    }
};

struct Relu {
    static constexpr FixedName name = "relu";
    static constexpr Keep keeps = Keep::output;
    template <class T> constexpr T value(T x) const {
        return select(x <= as<T>(0), as<T>(0), x);
    }  // NaN stays
    template <class T> constexpr T back(T dy, T y) const { return select(y <= as<T>(0), as<T>(0), dy); }
};

struct Gelu {
    static constexpr FixedName name = "gelu";
    static constexpr Keep keeps = Keep::input;
    template <class T> static constexpr T below(T x) {  // the normal distribution function
        return as<T>(0.5) * (as<T>(1) + erf(x * as<T>(0.70710678118654752440)));
    }
    template <class T> constexpr T value(T x) const { return x * below(x); }
    template <class T> constexpr T back(T dy, T x) const {
        const T density = exp(as<T>(-0.5) * x * x) * as<T>(0.39894228040143267794);
        return dy * (below(x) + x * density);
    }
};

struct Abs {
    static constexpr FixedName name = "abs";
    static constexpr Keep keeps = Keep::input;
    template <class T> constexpr T value(T x) const { return abs(x); }
    template <class T> constexpr T back(T dy, T x) const {
        return select(x > as<T>(0), dy, select(x < as<T>(0), negated(dy), dy * as<T>(0)));
    }
};

struct Sin {
    static constexpr FixedName name = "sin";
    static constexpr Keep keeps = Keep::input;
    template <class T> constexpr T value(T x) const { return sin(x); }
    template <class T> constexpr T back(T dy, T x) const { return dy * cos(x); }
};

struct Cos {
    static constexpr FixedName name = "cos";
    static constexpr Keep keeps = Keep::input;
    template <class T> constexpr T value(T x) const { return cos(x); }
    template <class T> constexpr T back(T dy, T x) const { return dy * negated(sin(x)); }
};

// ---- one operand and a number ----

struct AddNumber {
    static constexpr FixedName name = "add_number";
    static constexpr Keep keeps = Keep::nothing;
    static constexpr bool identity_grad_a = true;
    double number;
    template <class T> constexpr T value(T x) const { return x + as<T>(number); }
    template <class T> constexpr T back(T dy, T) const { return dy; }
};

struct NumberMinus {
    static constexpr FixedName name = "number_minus";
    static constexpr Keep keeps = Keep::nothing;
    double number;
    template <class T> constexpr T value(T x) const { return as<T>(number) - x; }
    template <class T> constexpr T back(T dy, T) const { return negated(dy); }
};

struct MulNumber {
    static constexpr FixedName name = "mul_number";
    static constexpr Keep keeps = Keep::nothing;
    double number;
    template <class T> constexpr T value(T x) const { return x * as<T>(number); }
    template <class T> constexpr T back(T dy, T) const { return dy * as<T>(number); }
};

struct DivNumber {  // divides, because a product with the reciprocal would have other bits
    static constexpr FixedName name = "div_number";
    static constexpr Keep keeps = Keep::nothing;
    double number;
    template <class T> constexpr T value(T x) const { return x / as<T>(number); }
    template <class T> constexpr T back(T dy, T) const { return dy / as<T>(number); }
};

struct NumberOver {
    static constexpr FixedName name = "number_over";
    static constexpr Keep keeps = Keep::input;
    double number;
    template <class T> constexpr T value(T x) const { return as<T>(number) / x; }
    template <class T> constexpr T back(T dy, T x) const { return negated(dy) * ((as<T>(number) / x) / x); }
};

struct PowNumber {
    static constexpr FixedName name = "pow_number";
    static constexpr Keep keeps = Keep::input;
    double number;
    template <class T> constexpr T value(T x) const {
        if (number == 2) return x * x;  // the same bits on every device
        return pow(x, as<T>(number));
    }
    template <class T> constexpr T back(T dy, T x) const {
        if (number == 0) return as<T>(0);
        return dy * (as<T>(number) * pow(x, as<T>(number - 1)));
    }
};

struct Clamp {  // the gradient at the bounds is dy
    static constexpr FixedName name = "clamp";
    static constexpr Keep keeps = Keep::input;
    double low, high;
    template <class T> constexpr T value(T x) const {
        const T raised = select(x < as<T>(low), as<T>(low), x);
        return select(raised > as<T>(high), as<T>(high), raised);
    }
    template <class T> constexpr T back(T dy, T x) const {
        return select(x >= as<T>(low), select(x <= as<T>(high), dy, as<T>(0)), as<T>(0));
    }
};

// ---- two operands: y = value(a, b), da = back_a(dy, a, b, y), db = back_b(dy, a, b, y) ----

struct Add {
    static constexpr FixedName name = "add";
    static constexpr Keeps for_a{}, for_b{};
    static constexpr bool identity_grad_a = true, identity_grad_b = true;
    template <class T> constexpr T value(T a, T b) const { return a + b; }
    template <class T> constexpr T back_a(T dy, T, T, T) const { return dy; }
    template <class T> constexpr T back_b(T dy, T, T, T) const { return dy; }
};

struct Sub {
    static constexpr FixedName name = "sub";
    static constexpr Keeps for_a{}, for_b{};
    static constexpr bool identity_grad_a = true;
    template <class T> constexpr T value(T a, T b) const { return a - b; }
    template <class T> constexpr T back_a(T dy, T, T, T) const { return dy; }
    template <class T> constexpr T back_b(T dy, T, T, T) const { return negated(dy); }
};

struct Mul {
    static constexpr FixedName name = "mul";
    static constexpr Keeps for_a{.b = true}, for_b{.a = true};
    template <class T> constexpr T value(T a, T b) const { return a * b; }
    template <class T> constexpr T back_a(T dy, T, T b, T) const { return dy * b; }
    template <class T> constexpr T back_b(T dy, T a, T, T) const { return dy * a; }
};

struct Div {
    static constexpr FixedName name = "div";
    static constexpr Keeps for_a{.b = true}, for_b{.a = true, .b = true};
    template <class T> constexpr T value(T a, T b) const { return a / b; }
    template <class T> constexpr T back_a(T dy, T, T b, T) const { return dy / b; }
    template <class T> constexpr T back_b(T dy, T a, T b, T) const { return negated(dy) * ((a / b) / b); }
};

struct Pow {
    static constexpr FixedName name = "pow";
    static constexpr Keeps for_a{.a = true, .b = true}, for_b{.a = true, .b = true, .y = true};
    template <class T> constexpr T value(T a, T b) const { return pow(a, b); }
    template <class T> constexpr T back_a(T dy, T a, T b, T) const {
        return select(b == as<T>(0), as<T>(0), dy * (b * pow(a, b - as<T>(1))));
    }
    template <class T>
    constexpr T back_b(T dy, T a, T b, T y) const {  // 0 to the power of b >= 0 has the derivative 0
        const T slope = dy * (y * log(a));
        return select(a == as<T>(0), select(b >= as<T>(0), as<T>(0), slope), slope);
    }
};

struct Maximum {  // equal operands get half of the gradient each; NaN and a number give NaN
    static constexpr FixedName name = "maximum";
    static constexpr Keeps for_a{.a = true, .b = true}, for_b{.a = true, .b = true};
    template <class T> constexpr T value(T a, T b) const { return select(a == a, select(a > b, a, b), a); }
    template <class T> constexpr T back_a(T dy, T a, T b, T) const {
        return select(a == b, dy / as<T>(2), select(a < b, as<T>(0), dy));
    }
    template <class T> constexpr T back_b(T dy, T a, T b, T y) const { return back_a(dy, b, a, y); }
};

struct Minimum {
    static constexpr FixedName name = "minimum";
    static constexpr Keeps for_a{.a = true, .b = true}, for_b{.a = true, .b = true};
    template <class T> constexpr T value(T a, T b) const { return select(a == a, select(a < b, a, b), a); }
    template <class T> constexpr T back_a(T dy, T a, T b, T) const {
        return select(a == b, dy / as<T>(2), select(a > b, as<T>(0), dy));
    }
    template <class T> constexpr T back_b(T dy, T a, T b, T y) const { return back_a(dy, b, a, y); }
};

struct SquaredDifference {
    static constexpr FixedName name = "squared_difference";
    static constexpr Keeps for_a{.a = true, .b = true}, for_b{.a = true, .b = true};
    template <class T> constexpr T value(T a, T b) const { return (a - b) * (a - b); }
    template <class T> constexpr T back_a(T dy, T a, T b, T) const { return dy * (as<T>(2) * (a - b)); }
    template <class T> constexpr T back_b(T dy, T a, T b, T) const { return dy * (as<T>(2) * (b - a)); }
};

struct BinaryCrossEntropy {  // of a probability a and a target b; logarithms are at least -100, as in PyTorch
    static constexpr double smallest = 1e-12f;  // a float, as in PyTorch
    static constexpr FixedName name = "binary_cross_entropy";
    static constexpr Keeps for_a{.a = true, .b = true}, for_b{.a = true};
    template <class T> static constexpr T stopped_log(T x) {
        const T y = log(x);
        return select(y < as<T>(-100), as<T>(-100), y);
    }
    template <class T> constexpr T value(T a, T b) const {
        return (b - as<T>(1)) * stopped_log(as<T>(1) - a) - b * stopped_log(a);
    }
    template <class T> constexpr T back_a(T dy, T a, T b, T) const {
        const T width = (as<T>(1) - a) * a;
        return dy * (a - b) / select(width < as<T>(smallest), as<T>(smallest), width);
    }
    template <class T> constexpr T back_b(T dy, T a, T, T) const { return dy * (log(as<T>(1) - a) - log(a)); }
};

}  // namespace functor

namespace detail {
// Each device instantiates its kernels from these lists. A functor and its kernel have equal indices.
using UnaryOps = std::tuple<functor::Neg, functor::Exp, functor::Log, functor::Sqrt, functor::Tanh,
                            functor::Sigmoid, functor::Relu, functor::Gelu, functor::Abs, functor::Sin,
                            functor::Cos, functor::Log1p, functor::Expm1, functor::Softplus, functor::Silu,
                            functor::AddNumber, functor::NumberMinus, functor::MulNumber, functor::DivNumber,
                            functor::NumberOver, functor::PowNumber, functor::Clamp>;

using BinaryOps =
    std::tuple<functor::Add, functor::Sub, functor::Mul, functor::Div, functor::Pow, functor::Maximum,
               functor::Minimum, functor::SquaredDifference, functor::BinaryCrossEntropy>;

template <class F, class List> inline constexpr std::size_t slot = 0;  // the index of F in the list

template <class F, class First, class... Rest>
inline constexpr std::size_t slot<F, std::tuple<First, Rest...>> = 1 + slot<F, std::tuple<Rest...>>;

template <class F, class... Rest> inline constexpr std::size_t slot<F, std::tuple<F, Rest...>> = 0;

template <class F>
concept UnaryFunctor = requires {
    F::keeps;
};

template <class F>
concept BinaryFunctor = requires {
    F::for_a, F::for_b;
};
}  // namespace detail

}  // namespace tally
