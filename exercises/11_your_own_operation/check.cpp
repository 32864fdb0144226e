// The answer and the check of exercise your-own-operation.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
Tensor64 softsign(const Tensor64& x) {
    const auto forward = [](const Array<double>& in) {
        std::vector<double> y = in.to_vector();
        for (double& v : y) v = v / (1 + std::abs(v));
        return Array<double>(in.shape(), y);
    };
    const auto backward = [](GradInputs<Array<double>> to, const Array<double>& dy, const Array<double>&,
                             const Array<double>& in) {
        std::vector<double> dx = in.to_vector();
        const std::vector<double> given = dy.to_vector();
        for (std::size_t i = 0; i < dx.size(); ++i) {
            const double below = 1 + std::abs(dx[i]);
            dx[i] = given[i] / (below * below);
        }
        if (to.needs_grad(0)) to.add(0, Array<double>(in.shape(), dx));
    };
    return custom("softsign", forward, backward, x);
}
}  // namespace right

#include "11_your_own_operation.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto array = [](const exercise::Numbers& values) {
        return Array<double>({static_cast<std::int64_t>(values.size())}, values);
    };
    const auto look_at = [&](const std::string& where, const exercise::Numbers& at,
                             const exercise::Numbers& weights) {
        look.with(where);
        exercise::Numbers wanted, value;
        for (std::size_t i = 0; i < at.size(); ++i) {
            wanted.push_back(weights[i] / ((1 + std::abs(at[i])) * (1 + std::abs(at[i]))));
            value.push_back(at[i] / (1 + std::abs(at[i])));
        }
        look.runs([&] {
            Tensor64 x = parameter(array(at));
            Tensor64 y = yours.softsign(x);
            look.equal("value", exercise::numbers(y.value()), value);
            sum(y * constant(array(weights))).backward();
            look.equal("gradient of x", exercise::gradient_of(x), wanted);
        });
    };
    look_at("x = [0 1 3], dy = [1 1 1]", {0, 1, 3}, {1, 1, 1});
    look_at("x = [0 1 3], dy = [1 2 -2]", {0, 1, 3}, {1, 2, -2});
    look_at("x = [-0.5 -3], dy = [1 1]", {-0.5, -3}, {1, 1});
    for (int draw = 0; draw < 3; ++draw) {
        const auto size = static_cast<std::size_t>(look.whole(2, 5));
        const auto at = look.uniforms(size, -4, 4);
        look_at("random x and dy", at, look.uniforms(size));
    }
    look.with("random x, tested by gradcheck");
    const auto at = array(look.uniforms(6, -2, 2));
    look.runs([&] {
        const auto found =
            gradcheck([&](const std::vector<Tensor64>& in) { return yours.softsign(in[0]); }, {at});
        look.holds(found.ok, "gradcheck says: " + found.report);
    });
}

const exercise::Add add(
    {.title = "an operation with a gradient, checked against finite differences",
     .minutes = 10,
     .lesson = "arrays",
     .hints = {"The task states the derivative of softsign, and the chain rule multiplies this derivative by "
               "dy. How does the result of the loop in backward differ from dy times this derivative?",
               "The loop in backward needs three changes: take the absolute value of x, square the "
               "denominator, and multiply by dy. The numbers of dy are in dy.to_vector().",
               "Before the loop, copy the numbers of dy to a vector. In the loop, let d be 1 plus the "
               "absolute value of an element of x, and divide the same element of dy by d * d."},
     .why = "A backward function computes dy, the gradient of the result, times the derivative, for positive "
            "and negative x. The function gradcheck, which computes finite differences, multiplies the "
            "operation's result by random numbers, so dy is not 1. Therefore, gradcheck finds a backward "
            "function that ignores dy."},
    examine, answers);

}  // namespace
