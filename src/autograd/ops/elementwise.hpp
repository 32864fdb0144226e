// The elementwise operations work on numbers and arrays. functors.hpp contains their formulas.
#pragma once

#include <limits>
#include <type_traits>
#include <utility>

#include "tally/array/op_options.hpp"
#include "tally/array/shape_checks.hpp"
#include "tally/autograd/record.hpp"

namespace tally {

namespace functor {  // here argument-dependent lookup finds apply()

template <detail::UnaryFunctor F, class T> inline Var<T> apply(F f, Var<T>&& x) {
    constexpr bool saves_x = F::keeps == detail::Keep::input;
    T y = !detail::Number<T> && !saves_x && x.is_last_handle() ? map_in_place(f, x.node()->value)
                                                               : map(f, x.value());
    if constexpr (detail::grad_a_is_dy<F>)
        return record<F::name>(
            std::move(y), save(), [](GradInputs<T> to, const T& dy) { to.try_pass_on(0, dy, true); },
            std::move(x));
    else if constexpr (F::keeps == detail::Keep::nothing)
        return record<F::name>(
            std::move(y), save(),
            [f](GradInputs<T> to, const T& dy) { map_back(f, dy, dy, to.into(0), to.can_reuse_dy()); },
            std::move(x));
    else
        return record<F::name>(
            std::move(y), save(F::keeps == detail::Keep::input ? x.value() : y),
            [f](GradInputs<T> to, const T& dy, const T& saved) {
                map_back(f, dy, saved, to.into(0), to.can_reuse_dy());
            },
            std::move(x));
}

// Saves only the values that the needed gradients read. For single numbers, saves each value that any
// gradient may read, because copying a number is faster than a test.
template <detail::BinaryFunctor F, class T> inline Var<T> apply(F f, Var<T>&& a, Var<T>&& b) {
    constexpr bool may_read_a = F::for_a.a || F::for_b.a, may_read_b = F::for_a.b || F::for_b.b,
                   may_read_y = F::for_a.y || F::for_b.y, is_number = detail::Number<T>;
    const bool needs_da = is_number || a.requires_grad(), needs_db = is_number || b.requires_grad();
    const bool saves_a = (F::for_a.a && needs_da) || (F::for_b.a && needs_db),
               saves_b = (F::for_a.b && needs_da) || (F::for_b.b && needs_db),
               saves_y = (F::for_a.y && needs_da) || (F::for_b.y && needs_db);
    T y = !is_number && !saves_a && a.is_last_handle() ? zip_in_place(f, a.node()->value, b.value())
                                                       : zip(f, a.value(), b.value());
    return record<F::name>(
        std::move(y),
        std::tuple(save_if<may_read_a, 0>(saves_a, a.value()), save_if<may_read_b, 1>(saves_b, b.value()),
                   save_if<may_read_y, 2>(saves_y, y)),
        [f](GradInputs<T> to, const T& dy, const T& saved_a, const T& saved_b, const T& saved_y) {
            const bool is_last = !to.needs_grad(1);  // whether no other gradient needs dy
            if (to.needs_grad(0) && !(detail::grad_a_is_dy<F> && to.try_pass_on(0, dy, is_last)))
                zip_back<0>(f, dy, saved_a, saved_b, saved_y, to.into(0), is_last && to.can_reuse_dy());
            if (to.needs_grad(1) && !(detail::grad_b_is_dy<F> && to.try_pass_on(1, dy, true)))
                zip_back<1>(f, dy, saved_a, saved_b, saved_y, to.into(1), to.can_reuse_dy());
        },
        std::move(a), std::move(b));
}

}  // namespace functor

namespace detail {
// An operand that is a plain array counts as a constant.
template <class T> using PlainArray = std::enable_if_t<!Number<T>, std::type_identity_t<T>>;
template <class T> Var<T> scalar_on_device_of(const Var<T>& x, double n) {
    if constexpr (Number<T>)
        return Var<T>(T(n));
    else
        return Var<T>(T::full({}, static_cast<typename T::scalar>(n), x.value().device()));
}
inline constexpr double unbounded = std::numeric_limits<double>::infinity();
}  // namespace detail

// clang-format off
// log1p(x) = log(1 + x), expm1(x) = exp(x) - 1, softplus(x) = log(1 + exp(x)), silu(x) = x sigmoid(x).
template <class T> Var<T> operator+(Var<T> x) { return x; }
template <class T> Var<T> operator-(Var<T> x) { return apply(functor::Neg{}, std::move(x)); }
template <class T> Var<T> exp(Var<T> x) { return apply(functor::Exp{}, std::move(x)); }
template <class T> Var<T> log(Var<T> x) { return apply(functor::Log{}, std::move(x)); }
template <class T> Var<T> log1p(Var<T> x) { return apply(functor::Log1p{}, std::move(x)); }
template <class T> Var<T> expm1(Var<T> x) { return apply(functor::Expm1{}, std::move(x)); }
template <class T> Var<T> sqrt(Var<T> x) { return apply(functor::Sqrt{}, std::move(x)); }
template <class T> Var<T> tanh(Var<T> x) { return apply(functor::Tanh{}, std::move(x)); }
template <class T> Var<T> sigmoid(Var<T> x) { return apply(functor::Sigmoid{}, std::move(x)); }
template <class T> Var<T> softplus(Var<T> x) { return apply(functor::Softplus{}, std::move(x)); }
template <class T> Var<T> silu(Var<T> x) { return apply(functor::Silu{}, std::move(x)); }
template <class T> Var<T> relu(Var<T> x) { return apply(functor::Relu{}, std::move(x)); }
template <class T> Var<T> gelu(Var<T> x) { return apply(functor::Gelu{}, std::move(x)); }
template <class T> Var<T> abs(Var<T> x) { return apply(functor::Abs{}, std::move(x)); }
template <class T> Var<T> sin(Var<T> x) { return apply(functor::Sin{}, std::move(x)); }
template <class T> Var<T> cos(Var<T> x) { return apply(functor::Cos{}, std::move(x)); }

// Operands broadcast as in NumPy. If elements are equal, maximum and minimum give half of dy to each operand.
template <class T> Var<T> operator+(Var<T> a, Var<T> b) { return apply(functor::Add{}, std::move(a), std::move(b)); }
template <class T> Var<T> operator-(Var<T> a, Var<T> b) { return apply(functor::Sub{}, std::move(a), std::move(b)); }
template <class T> Var<T> operator*(Var<T> a, Var<T> b) { return apply(functor::Mul{}, std::move(a), std::move(b)); }
template <class T> Var<T> operator/(Var<T> a, Var<T> b) { return apply(functor::Div{}, std::move(a), std::move(b)); }
template <class T> Var<T> pow(Var<T> a, Var<T> b) { return apply(functor::Pow{}, std::move(a), std::move(b)); }
template <class T> Var<T> maximum(Var<T> a, Var<T> b) { return apply(functor::Maximum{}, std::move(a), std::move(b)); }
template <class T> Var<T> minimum(Var<T> a, Var<T> b) { return apply(functor::Minimum{}, std::move(a), std::move(b)); }
namespace detail {
template <class T> Var<T> squared_difference(Var<T> a, Var<T> b) { return apply(functor::SquaredDifference{}, std::move(a), std::move(b)); }
}  // namespace detail

template <class T> Var<T> operator+(Var<T> a, detail::PlainArray<T> b) { return std::move(a) + Var<T>(std::move(b)); }
template <class T> Var<T> operator+(detail::PlainArray<T> a, Var<T> b) { return Var<T>(std::move(a)) + std::move(b); }
template <class T> Var<T> operator-(Var<T> a, detail::PlainArray<T> b) { return std::move(a) - Var<T>(std::move(b)); }
template <class T> Var<T> operator-(detail::PlainArray<T> a, Var<T> b) { return Var<T>(std::move(a)) - std::move(b); }
template <class T> Var<T> operator*(Var<T> a, detail::PlainArray<T> b) { return std::move(a) * Var<T>(std::move(b)); }
template <class T> Var<T> operator*(detail::PlainArray<T> a, Var<T> b) { return Var<T>(std::move(a)) * std::move(b); }
template <class T> Var<T> operator/(Var<T> a, detail::PlainArray<T> b) { return std::move(a) / Var<T>(std::move(b)); }
template <class T> Var<T> operator/(detail::PlainArray<T> a, Var<T> b) { return Var<T>(std::move(a)) / std::move(b); }

// Combines a variable with a plain number of any arithmetic type.
template <class T, detail::Arithmetic N> Var<T> operator+(Var<T> x, N n) { return apply(functor::AddNumber{double(n)}, std::move(x)); }
template <class T, detail::Arithmetic N> Var<T> operator+(N n, Var<T> x) { return apply(functor::AddNumber{double(n)}, std::move(x)); }
template <class T, detail::Arithmetic N> Var<T> operator-(Var<T> x, N n) { return apply(functor::AddNumber{-double(n)}, std::move(x)); }
template <class T, detail::Arithmetic N> Var<T> operator-(N n, Var<T> x) { return apply(functor::NumberMinus{double(n)}, std::move(x)); }
template <class T, detail::Arithmetic N> Var<T> operator*(Var<T> x, N n) { return apply(functor::MulNumber{double(n)}, std::move(x)); }
template <class T, detail::Arithmetic N> Var<T> operator*(N n, Var<T> x) { return apply(functor::MulNumber{double(n)}, std::move(x)); }
template <class T, detail::Arithmetic N> Var<T> operator/(Var<T> x, N n) { return apply(functor::DivNumber{double(n)}, std::move(x)); }
template <class T, detail::Arithmetic N> Var<T> operator/(N n, Var<T> x) { return apply(functor::NumberOver{double(n)}, std::move(x)); }
template <class T, detail::Arithmetic N> Var<T> pow(Var<T> x, N n) { return apply(functor::PowNumber{double(n)}, std::move(x)); }
template <class T, detail::Arithmetic N> Var<T> pow(N n, Var<T> x) { Var<T> base = detail::scalar_on_device_of(x, double(n)); return pow(std::move(base), std::move(x)); }
template <class T, detail::Arithmetic N> Var<T> maximum(Var<T> x, N n) { Var<T> other = detail::scalar_on_device_of(x, double(n)); return maximum(std::move(x), std::move(other)); }
template <class T, detail::Arithmetic N> Var<T> maximum(N n, Var<T> x) { return maximum(std::move(x), n); }
template <class T, detail::Arithmetic N> Var<T> minimum(Var<T> x, N n) { Var<T> other = detail::scalar_on_device_of(x, double(n)); return minimum(std::move(x), std::move(other)); }
template <class T, detail::Arithmetic N> Var<T> minimum(N n, Var<T> x) { return minimum(std::move(x), n); }
// clang-format on

// Limits each element to [low, high]. If low > high, the result is `high`.
template <class T> Var<T> clamp(Var<T> x, double low, double high = detail::unbounded) {
    if (low != low || high != high) [[unlikely]]
        detail::fail_clamp_bounds(low, high);
    return apply(functor::Clamp{low, high}, std::move(x));
}

}  // namespace tally
