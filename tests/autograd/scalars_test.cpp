// Every operator and function of scalars applies its own formula, to the right operand.
#include <cmath>

#include "catch.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/values/array.hpp"

using namespace tally;

namespace {

// f at (3, 2), and its two derivatives.
void check(const char* name, Scalar (*f)(Scalar, Scalar), double value, double slope_x, double slope_w) {
    INFO(name);
    const Scalar x = parameter(3.0), w = parameter(2.0);
    (x * 0 + w * 0).backward();  // what comes is added
    const Scalar y = f(x, w);
    CHECK(std::abs(y.item() - value) < 1e-15);
    y.backward();
    CHECK(std::abs(x.grad() - slope_x) < 1e-15);
    CHECK(std::abs(w.grad() - slope_w) < 1e-15);
}

}  // namespace

TEST_CASE("operators of two scalars") {
    check(
        "x + w", [](Scalar x, Scalar w) { return x + w; }, 5, 1, 1);
    check(
        "x - w", [](Scalar x, Scalar w) { return x - w; }, 1, 1, -1);
    check(
        "x * w", [](Scalar x, Scalar w) { return x * w; }, 6, 2, 3);
    check(
        "x / w", [](Scalar x, Scalar w) { return x / w; }, 1.5, 0.5, -0.75);
    check(
        "pow", [](Scalar x, Scalar w) { return pow(w, x); }, 8, 8 * std::log(2.0), 12);
    check(
        "maximum", [](Scalar x, Scalar w) { return maximum(x, w); }, 3, 1, 0);
    check(
        "minimum", [](Scalar x, Scalar w) { return minimum(x, w); }, 2, 0, 1);
    check(
        "squared_difference", [](Scalar x, Scalar w) { return squared_difference(x, w); }, 1, 2, -2);
}

TEST_CASE("operators of a scalar and a number") {
    check(
        "x + 2", [](Scalar x, Scalar) { return x + 2; }, 5, 1, 0);
    check(
        "2 + x", [](Scalar x, Scalar) { return 2 + x; }, 5, 1, 0);
    check(
        "x - 2", [](Scalar x, Scalar) { return x - 2; }, 1, 1, 0);
    check(
        "2 - x", [](Scalar x, Scalar) { return 2 - x; }, -1, -1, 0);
    check(
        "x * 2", [](Scalar x, Scalar) { return x * 2; }, 6, 2, 0);
    check(
        "2 * x", [](Scalar x, Scalar) { return 2 * x; }, 6, 2, 0);
    check(
        "x / 2", [](Scalar x, Scalar) { return x / 2; }, 1.5, 0.5, 0);
    check(
        "6 / w", [](Scalar, Scalar w) { return 6 / w; }, 3, 0, -1.5);
    check(
        "pow(x, 2)", [](Scalar x, Scalar) { return pow(x, 2); }, 9, 6, 0);
    check(
        "-x", [](Scalar x, Scalar) { return -x; }, -3, -1, 0);
    check(
        "clamp", [](Scalar x, Scalar w) { return clamp(x, 0, 2.5) + clamp(w, 1); }, 4.5, 0, 1);
}

TEST_CASE("functions of a scalar") {
    const double s = 1 / (1 + std::exp(-3.0)), t = std::tanh(3.0);
    check(
        "exp", [](Scalar, Scalar w) { return exp(w); }, std::exp(2.0), 0, std::exp(2.0));
    check(
        "log", [](Scalar x, Scalar) { return log(x); }, std::log(3.0), 1.0 / 3, 0);
    check(
        "sqrt", [](Scalar x, Scalar) { return sqrt(x + 1); }, 2, 0.25, 0);
    check(
        "tanh", [](Scalar x, Scalar) { return tanh(x); }, t, 1 - t * t, 0);
    check(
        "sigmoid", [](Scalar x, Scalar) { return sigmoid(x); }, s, s * (1 - s), 0);
    check(
        "relu", [](Scalar x, Scalar w) { return relu(x) + relu(-w); }, 3, 1, 0);
    check(
        "gelu", [](Scalar x, Scalar) { return gelu(x - 3); }, 0, 0.5, 0);
    check(
        "abs", [](Scalar x, Scalar w) { return abs(-x) + abs(w); }, 5, 1, 1);
    check(
        "sin", [](Scalar x, Scalar) { return sin(x); }, std::sin(3.0), std::cos(3.0), 0);
    check(
        "cos", [](Scalar x, Scalar) { return cos(x); }, std::cos(3.0), -std::sin(3.0), 0);
}
