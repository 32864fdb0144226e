// Tests custom operations whose forward and backward functions are expressions of xtensor.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/custom.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/checkpoint/checkpoint.hpp"
#include "tally/memory/memory.hpp"
#include "tally/tools/check_rules.hpp"
#include "tally/tools/gradcheck.hpp"
#include "tally/xtensor.hpp"

using namespace tally;
using namespace tally::test;

namespace {

template <class S> Var<Array<S>> swish(Var<Array<S>> x) {
    const auto forward = [](const Array<S>& in) {
        return array_of(as_xtensor(in) / (S(1) + xt::exp(-as_xtensor(in))));
    };
    const auto backward = [](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>& y,
                             const Array<S>& in) {
        if (!to.needs_grad(0)) return;
        const auto share = S(1) / (S(1) + xt::exp(-as_xtensor(in)));
        accumulate_into(to.into(0), as_xtensor(dy) * (share + as_xtensor(y) * (S(1) - share)));
    };
    return custom("swish", forward, backward, std::move(x));
}

// Computes sqrt(1 + a² + b²) and a gradient for each of the inputs a and b.
Tensor64 length(Tensor64 a, Tensor64 b) {
    using A = Array<double>;
    const auto forward = [](const A& x, const A& y) {
        return array_of(xt::sqrt(1 + xt::square(as_xtensor(x)) + xt::square(as_xtensor(y))));
    };
    const auto backward = [](GradInputs<A> to, const A& dy, const A& out, const A& x, const A& y) {
        if (to.needs_grad(0)) accumulate_into(to.into(0), as_xtensor(dy) * as_xtensor(x) / as_xtensor(out));
        if (to.needs_grad(1)) accumulate_into(to.into(1), as_xtensor(dy) * as_xtensor(y) / as_xtensor(out));
    };
    return custom("length", forward, backward, std::move(a), std::move(b));
}

}  // namespace

TEST_CASE("custom: an operation of xtensor expressions passes gradcheck at random shapes") {
    int numbers = 0, empties = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        Random random(seed);
        const Shape shape = random.shape(5, 3);
        INFO("seed " << seed << ", " << to_string(shape));
        numbers += shape.rank() == 0;
        empties += shape.size() == 0;
        const auto of_both = [](const std::vector<Tensor64>& in) {  // sets and adds gradients
            return length(swish(in[0]), in[1]) + swish(in[0] * 2.0) + in[1] * length(in[1], in[0]);
        };
        const auto check = gradcheck(of_both, {random.array<double>(shape), random.array<double>(shape)});
        INFO(check.report);
        CHECK(check.ok);
    }
    CHECK((numbers > 0 && empties > 0));
}

TEST_CASE("custom: the gradient equals that of tally's own operation with float and double") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        Random random(seed);
        const Shape shape = random.shape(3);
        INFO("seed " << seed << ", " << to_string(shape));
        const auto check_difference = [&]<class S>(S bound) {
            const Var<Array<S>> x = parameter(random.array<S>(shape));
            const Array<S> ours = grad(sum(silu(x) + silu(x * S(2))), {x})[0];
            const Array<S> theirs = grad(sum(swish(x) + swish(x * S(2))), {x})[0];
            for (std::size_t i = 0; i < ours.size(); ++i)
                REQUIRE(std::abs(ours.span()[i] - theirs.span()[i]) <= bound);
        };
        check_difference(1e-5f);
        check_difference(1e-14);
    }
}

TEST_CASE("accumulate_into: it writes in place, and adds if requested") {
    const Poison poison;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        Random random(seed);
        const Shape shape = random.shape(5, 3);
        INFO("seed " << seed << ", " << to_string(shape));
        const Array<double> first = random.array<double>(shape), second = random.array<double>(shape);
        Array<double> gradient = detail::like_without_memory(first);
        accumulate_into(Into<Array<double>>{gradient, Write::set}, as_xtensor(first) * 1.0);
        CHECK(same_bits(gradient, first));
        const double* const home = gradient.data();
        const std::uint64_t before = memory::report().allocations;
        accumulate_into(Into<Array<double>>{gradient, Write::add}, as_xtensor(second) * 3.0);
        CHECK(memory::report().allocations == before);
        CHECK(gradient.data() == home);
        for (std::size_t i = 0; i < first.size(); ++i)
            REQUIRE(gradient.span()[i] == first.span()[i] + second.span()[i] * 3.0);
        const Array<double> shared = gradient;  // a copy, so that set needs new memory
        accumulate_into(Into<Array<double>>{gradient, Write::set}, as_xtensor(second) * 1.0);
        CHECK(same_bits(gradient, second));
        CHECK(shared.data() == home);
    }
}

TEST_CASE("custom: micro-batches add in place, and a checkpoint has the same bits") {
    const CheckRules check;
    const Tensor64 w = parameter({0.5, -1.0, 2.0});
    sum(swish(w)).backward();
    const Array<double> once = w.grad().clone();
    const double* const home = w.grad().data();
    sum(swish(w)).backward();
    CHECK(w.grad().data() == home);
    for (std::size_t i = 0; i < 3; ++i) CHECK(w.grad().span()[i] == 2 * once.span()[i]);
    w.zero_grad();
    const std::function<Tensor64(const Tensor64&)> block = [](const Tensor64& x) { return swish(swish(x)); };
    sum(swish(swish(w))).backward();
    const Array<double> plain = w.grad().clone();
    w.zero_grad();
    sum(checkpoint(block, w)).backward();
    CHECK(same_bits(w.grad(), plain));
}

TEST_CASE("accumulate_into: a gradient of another shape throws an Error with both shapes") {
    const auto wrong = [](Tensor of, auto gradient_of) {
        return custom(
            "wrong", [](const Array<float>& x) { return array_of(as_xtensor(x) * 1.0f); },
            [=](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&,
                const Array<float>&) { accumulate_into(to.into(0), gradient_of(as_xtensor(dy))); },
            std::move(of));
    };
    const Tensor x = parameter(Array<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
    const Tensor scalar = wrong(x, [](auto dy) { return xt::sum(dy); });
    const std::string error = message_of([&] { sum(scalar).backward(); });
    CHECK(error.find("(2, 3)") != std::string::npos);
    CHECK(error.find("()") != std::string::npos);
    const Tensor transposed = wrong(x, [](auto dy) { return xt::transpose(dy); });
    CHECK_THROWS_WITH(sum(transposed).backward(), contains("(3, 2)"));
}
