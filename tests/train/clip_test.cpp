// Tests clip_grad_norm() and clip_grad_value(), also for shared, missing and non-finite gradients.
#include "tally/train/clip.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"
#include "tally/autograd/tensor.hpp"

namespace tally::test {
namespace {

template <class S> std::vector<Var<Array<S>>> with_gradients(const std::vector<std::vector<S>>& gradients) {
    std::vector<Var<Array<S>>> made;
    for (const std::vector<S>& g : gradients) {
        const Shape shape{static_cast<std::int64_t>(g.size())};
        made.push_back(parameter(Array<S>::zeros(shape)));
        made.back().backward(Array<S>(shape, g));
    }
    return made;
}

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEMPLATE_TEST_CASE("clip_grad_norm: the norm covers all gradients", "", float, double) {
    using S = TestType;
    const auto w = with_gradients<S>({{3, 0}, {}, {0, 4, 12}});
    const S* const place = w[2].grad().data();
    CHECK(detail::grad_norm(w) == 13);
    CHECK(clip_grad_norm(w, 14) == 13);
    CHECK(clip_grad_norm(w, inf) == 13);
    CHECK(w[2].grad().to_vector() == std::vector<S>{0, 4, 12});
    CHECK(clip_grad_norm(w, 6.5) == 13);
    CHECK(std::abs(detail::grad_norm(w) - 6.5) < 1e-5);
    CHECK(w[2].grad().data() == place);
    clip_grad_norm(w, 0);
    CHECK(detail::grad_norm(w) == 0);
}

TEMPLATE_TEST_CASE("clip_grad_value: values are limited in both directions", "", float, double) {
    using S = TestType;
    const auto w = with_gradients<S>({{-3, -0.5, 0.25, 7}});
    clip_grad_value(w, 0.5);
    CHECK(w[0].grad().to_vector() == std::vector<S>{S(-0.5), S(-0.5), S(0.25), S(0.5)});
}

TEST_CASE("clip_grad_norm: a copy of a gradient keeps its values") {
    const auto w = with_gradients<double>({{3, 4}, {1}});
    const Array<double> copy = w[0].grad();
    clip_grad_norm(w, 1);
    CHECK(copy.to_vector() == std::vector<double>{3, 4});
    CHECK(w[0].grad().to_vector() != copy.to_vector());
    const auto gradients = [] { return memory::report().in_use_by[static_cast<int>(MemoryClass::gradient)]; };
    CHECK(gradients() == 3 * 64);  // the gradients of both parameters, and the copy
    clip_grad_value(w, 0.1);
    CHECK(copy.to_vector() == std::vector<double>{3, 4});
}

TEST_CASE("clip_grad_norm: non-finite gradients are counted, and give the values of PyTorch") {
    const auto w = with_gradients<double>({{1, nan, inf}, {2}, {-inf}});
    CHECK(detail::count_non_finite(w) == 3);
    CHECK(w[1].grad().item() == 2);
    CHECK(std::isnan(clip_grad_norm(w, 1)));
    CHECK(std::isnan(w[1].grad().item()));  // the result is NaN, as in PyTorch
    const auto far = with_gradients<double>({{inf}, {2}});
    CHECK(clip_grad_norm(far, 1) == inf);
    CHECK(far[1].grad().item() == 0);
    const auto fine = with_gradients<double>({{1}, {2}});
    CHECK(detail::count_non_finite(fine) == 0);
    const auto large = with_gradients<float>({{3e30f, 4e30f}});  // the squares of these numbers overflow
    CHECK(std::abs(detail::grad_norm(large) / 5e30 - 1) < 1e-6);
    CHECK(detail::count_non_finite(large) == 0);
    const auto overflowing = with_gradients<double>({{1e200}});
    CHECK(detail::grad_norm(overflowing) == inf);
    CHECK(detail::count_non_finite(overflowing) == 0);
}

TEST_CASE("clip_grad_norm: parameters without a gradient are skipped") {
    auto w = with_gradients<double>({{3}, {4}});
    w[1].zero_grad();
    CHECK(detail::grad_norm(w) == 3);
    clip_grad_norm(w, 1.5);
    clip_grad_value(w, 1);
    CHECK_FALSE(w[1].has_grad());
    w[0].zero_grad();
    CHECK(detail::grad_norm(w) == 0);
    CHECK(clip_grad_norm(w, 1) == 0);
}

TEST_CASE("clip_grad_norm: invalid limits and parameters throw an Error") {
    const auto w = with_gradients<double>({{3}});
    CHECK_THROWS_WITH(clip_grad_norm(w, -1), "[clip_grad_norm] max_norm must be at least 0; -1 is not");
    CHECK_THROWS_WITH(clip_grad_norm(w, nan), contains("max_norm"));
    CHECK_THROWS_WITH(clip_grad_value(w, -1), contains("[clip_grad_value] limit"));
    CHECK_THROWS_WITH(detail::grad_norm<double>({}), contains("[grad_norm] the list of parameters is empty"));
    CHECK_THROWS_WITH(clip_grad_norm<double>({w[0], w[0]}, 1), contains("is listed twice"));
    CHECK(w[0].grad().item() == 3);
}

TEST_CASE("modify_grad: a gradient may change its values but not its shape") {
    const auto w = with_gradients<double>({{3, 4}});
    CHECK_THROWS_WITH(w[0].modify_grad([](Array<double>& g) { g = Array<double>{1}; }),
                      "[modify_grad] a parameter of shape (2) was given a gradient of shape (1)");
    CHECK_FALSE(w[0].has_grad());
    CHECK_THROWS_WITH(w[0].modify_value([](Array<double>& value) { value = Array<double>{1}; }),
                      "[modify_value] a parameter of shape (2) was given a value of shape (1)");
    CHECK_THROWS_WITH(constant<double>({1}).modify_grad([](Array<double>&) {}),
                      contains("[modify_grad] requires a parameter; this variable is a constant"));
}

}  // namespace tally::test
