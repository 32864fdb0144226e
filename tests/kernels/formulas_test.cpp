// Tests each formula of functors.hpp at arguments for which the value and the derivative are known.
#include "tally/kernels/functors.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "catch.hpp"
#include "tally/kernels/dual.hpp"

using namespace tally;
using namespace tally::detail;
using namespace tally::functor;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

bool close(double a, double b) { return a == b || std::abs(a - b) <= 1e-14 * std::max(1.0, std::abs(b)); }

// Checks the value of f at x, the gradient for dy = 3, and the derivative that dual numbers compute.
template <class F> void check(const F& f, double x, double value, double slope) {
    INFO(static_cast<const char*>(F::name) << " at " << x);
    const double y = f.value(x), kept = F::keeps == Keep::input    ? x
                                        : F::keeps == Keep::output ? y
                                                                   : std::nan("");
    CHECK(close(y, value));
    CHECK(close(f.back(3.0, kept), 3 * slope));
    const Dual<double> dual = f.value(Dual<double>(x, 1));  // dual numbers give the same derivative
    CHECK(close(dual.value, value));
    if (x != 0) CHECK(close(dual.rate, slope));
}

template <class F> void check(const F& f, double a, double b, double value, double slope_a, double slope_b) {
    INFO(static_cast<const char*>(F::name) << " at " << a << ", " << b);
    const double y = f.value(a, b), nan = std::nan("");
    const auto kept = [&](bool needed, double x) { return needed ? x : nan; };
    CHECK(close(y, value));
    CHECK(close(f.back_a(3.0, kept(F::for_a.a, a), kept(F::for_a.b, b), kept(F::for_a.y, y)), 3 * slope_a));
    CHECK(close(f.back_b(3.0, kept(F::for_b.a, a), kept(F::for_b.b, b), kept(F::for_b.y, y)), 3 * slope_b));
}

}  // namespace

TEST_CASE("formulas of one operand: values and derivatives are as expected") {
    const double e = std::exp(0.5), t = std::tanh(0.5), root_two_pi = std::sqrt(2 * std::acos(-1.0));
    check(Neg{}, 2, -2, -1);
    check(Exp{}, 0.5, e, e);
    check(Log{}, 4, std::log(4.0), 0.25);
    check(Sqrt{}, 4, 2, 0.25);
    check(Log1p{}, 1, std::log(2.0), 0.5);
    check(Log1p{}, 1e-10, 1e-10, 1 - 1e-10);
    check(Expm1{}, 0.5, e - 1, e);
    check(Expm1{}, 1e-10, 1e-10, 1 + 1e-10);
    check(Expm1{}, 2, std::exp(2.0) - 1, std::exp(2.0));
    // The relative error is below 1e-15, although the result is small.
    CHECK(std::abs(Log1p{}.value(1e-10) / 9.9999999995e-11 - 1) < 1e-15);
    CHECK(std::abs(Expm1{}.value(1e-10) / 1.00000000005e-10 - 1) < 1e-15);
    check(Softplus{}, std::log(3.0), std::log(4.0), 0.75);
    check(Softplus{}, -std::log(3.0), std::log(4.0 / 3), 0.25);
    check(Softplus{}, 800, 800, 1);
    check(Silu{}, std::log(3.0), 0.75 * std::log(3.0), 0.75 + std::log(3.0) * 0.1875);
    check(Silu{}, -std::log(3.0), -0.25 * std::log(3.0), 0.25 - std::log(3.0) * 0.1875);
    // The derivative at x = 0 is also correct, although the functions switch between two formulas at 0.
    CHECK(Dual<double>(Silu{}.value(Dual<double>(0, 1))).rate == 0.5);
    CHECK(Softplus{}.value(Dual<double>(0, 1)).rate == 0.5);
    check(Tanh{}, 0.5, t, 1 - t * t);
    check(Sigmoid{}, 0, 0.5, 0.25);
    check(Sigmoid{}, std::log(3.0), 0.75, 0.1875);
    check(Relu{}, 2, 2, 1);
    check(Relu{}, -2, 0, 0);
    check(Relu{}, 0, 0, 0);
    check(Gelu{}, 0, 0, 0.5);
    check(Gelu{}, 1, 0.5 * (1 + std::erf(std::sqrt(0.5))),
          0.5 * (1 + std::erf(std::sqrt(0.5))) + std::exp(-0.5) / root_two_pi);
    check(Abs{}, -2, 2, -1);
    check(Abs{}, 2, 2, 1);
    check(Abs{}, 0, 0, 0);
    check(Sin{}, 0.5, std::sin(0.5), std::cos(0.5));
    check(Cos{}, 0.5, std::cos(0.5), -std::sin(0.5));
}

TEST_CASE("formulas of one operand and a number: values and derivatives are as expected") {
    check(AddNumber{5}, 2, 7, 1);
    check(NumberMinus{5}, 2, 3, -1);
    check(MulNumber{5}, 2, 10, 5);
    check(DivNumber{5}, 2, 0.4, 0.2);
    check(NumberOver{5}, 2, 2.5, -1.25);
    check(PowNumber{3}, 2, 8, 12);
    check(PowNumber{0}, 0, 1, 0);
    check(PowNumber{1}, 0, 0, 1);
    check(PowNumber{2}, 0, 0, 0);
    check(Clamp{-1, 1}, 0.5, 0.5, 1);
    check(Clamp{-1, 1}, -2, -1, 0);
    check(Clamp{-1, 1}, 2, 1, 0);
    CHECK(Clamp{-1, 1}.back(3.0, -1.0) == 3);  // both bounds belong to the interval
    CHECK(Clamp{-1, 1}.back(3.0, 1.0) == 3);
    CHECK(DivNumber{3}.value(5.0f) == 5.0f / 3.0f);  // a rounded reciprocal would give different bits
    CHECK(DivNumber{3}.back(5.0f, 0.0f) == 5.0f / 3.0f);
}

TEST_CASE("formulas of two operands: values and derivatives are as expected") {
    const double log_two = std::log(2.0);
    check(Add{}, 2, 3, 5, 1, 1);
    check(Sub{}, 2, 3, -1, 1, -1);
    check(Mul{}, 2, 3, 6, 3, 2);
    check(Div{}, 3, 2, 1.5, 0.5, -0.75);
    check(Pow{}, 2, 3, 8, 12, 8 * log_two);
    check(Pow{}, 0, 2, 0, 0, 0);
    check(Pow{}, 0, 0, 1, 0, 0);
    CHECK(Pow{}.back_b(3.0, 0.0, -1.0, inf) == -inf);
    check(Maximum{}, 2, 3, 3, 0, 1);
    check(Maximum{}, 3, 2, 3, 1, 0);
    check(Maximum{}, 2, 2, 2, 0.5, 0.5);
    check(Minimum{}, 2, 3, 2, 1, 0);
    check(Minimum{}, 3, 2, 2, 0, 1);
    check(Minimum{}, 2, 2, 2, 0.5, 0.5);
    check(SquaredDifference{}, 5, 2, 9, 6, -6);
    check(BinaryCrossEntropy{}, 0.5, 1, log_two, -2, 0);
    check(BinaryCrossEntropy{}, 0.5, 0, log_two, 2, 0);
    check(BinaryCrossEntropy{}, 0.25, 0.5, -0.5 * std::log(0.1875), -4.0 / 3, std::log(3.0));
    CHECK(BinaryCrossEntropy{}.value(0.0, 1.0) == 100);  // the logarithm is limited to -100
    CHECK(BinaryCrossEntropy{}.value(1.0, 0.0) == 100);
    CHECK(std::isfinite(BinaryCrossEntropy{}.back_a(1.0, 0.0, 1.0, 0.0)));
}

TEST_CASE("formulas: NaN stays NaN, and infinities have their limits") {
    const double nan = std::nan("");
    CHECK(std::isnan(Relu{}.value(nan)));
    CHECK(std::isnan(Clamp{-1, 1}.value(nan)));
    for (const auto& [a, b] : {std::pair(nan, 1.0), std::pair(1.0, nan)}) {
        CHECK(std::isnan(Maximum{}.value(a, b)));
        CHECK(std::isnan(Minimum{}.value(a, b)));
    }
    CHECK(Sigmoid{}.value(inf) == 1);
    CHECK(Sigmoid{}.value(-inf) == 0);
    CHECK(Tanh{}.value(inf) == 1);
    CHECK(Log1p{}.value(inf) == inf);
    CHECK(Log1p{}.value(-1.0) == -inf);
    CHECK(std::isnan(Log1p{}.value(-1.5)));
    CHECK(std::signbit(Log1p{}.value(-0.0)));
    CHECK(Expm1{}.value(inf) == inf);
    CHECK(Expm1{}.value(-inf) == -1);
    CHECK(Expm1{}.back(1.0, -40.0) > 0);  // computed as exp(x), not as y + 1
    CHECK(std::signbit(Expm1{}.value(-0.0)));
    CHECK(Softplus{}.value(inf) == inf);
    CHECK(Softplus{}.value(-inf) == 0);
    CHECK(Silu{}.value(inf) == inf);
    CHECK(std::isnan(Silu{}.value(-inf)));  // -inf * 0 is NaN, as in PyTorch
    CHECK(Silu{}.value(-89.f) < -1e-37f);   // exp(89) would be infinite
    for (const double value :
         {Log1p{}.value(nan), Expm1{}.value(nan), Softplus{}.value(nan), Silu{}.value(nan)})
        CHECK(std::isnan(value));
    CHECK(Relu{}.value(inf) == inf);
    CHECK(Clamp{-1, inf}.value(inf) == inf);
}

TEST_CASE("slot: each formula has its own place in the list") {
    CHECK(slot<Neg, UnaryOps> == 0);
    CHECK(slot<Exp, UnaryOps> == 1);
    CHECK(slot<Clamp, UnaryOps> == std::tuple_size_v<UnaryOps> - 1);
    CHECK(slot<Add, BinaryOps> == 0);
    CHECK(slot<BinaryCrossEntropy, BinaryOps> == std::tuple_size_v<BinaryOps> - 1);
}
