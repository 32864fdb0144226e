// Tests the first calls of a new user, who creates, prints and indexes tensors, mixes arrays with variables,
// and names an axis.
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tally/tally.hpp"

using namespace tally;

namespace {

template <class T> std::string printed(const T& x) {
    std::ostringstream out;
    out << x;
    return out.str();
}

using V = std::vector<double>;
using F = std::vector<float>;

}  // namespace

TEST_CASE("factories: create tensors from a shape, a type and a seed") {
    CHECK(zeros({2, 3}).value().to_vector() == F(6, 0.f));
    CHECK(ones<double>({2}).value().to_vector() == V{1, 1});
    CHECK(full({2, 1}, 0.5).value().to_vector() == F{0.5f, 0.5f});
    CHECK(full({}, 3).item() == 3);
    CHECK(arange(4).value().to_vector() == F{0, 1, 2, 3});
    CHECK(arange(0).shape() == Shape{0});
    CHECK(eye<double>(2).value().to_vector() == V{1, 0, 0, 1});
    CHECK(eye(0).shape() == Shape{0, 0});
    CHECK(randn<double>({5}, {.seed = 7}).value().to_vector() ==
          detail::normal_array<double>({5}, {.seed = 7, .stream = 0}).to_vector());
    CHECK(randn({5}, {.seed = 7}).value().to_vector() != randn({5}, {.seed = 8}).value().to_vector());
    CHECK(uniform({9}, 2, 3, {.seed = 1, .stream = 4}).value().to_vector() ==
          detail::uniform_array<float>({9}, {.seed = 1, .stream = 4}, 2, 3).to_vector());
    CHECK_FALSE(zeros({2}).requires_grad());
    CHECK_THROWS_WITH(eye(-1), "[shape] negative extent: (-1, -1)");
    CHECK_THROWS_AS(eye(std::int64_t{1} << 33), Error);
    CHECK_THROWS_WITH(arange(-3), "[shape] negative extent: (-3)");
    CHECK_FALSE(constant(parameter(ones({2}))).requires_grad());
}

TEST_CASE("parameter: copies the numbers of a tensor") {
    const Tensor start = ones({2});
    Tensor w = parameter(start);
    CHECK(w.requires_grad());
    sum(w * w).backward();
    sgd_step({w}, 0.5f);
    CHECK(w.value().to_vector() == F{0, 0});
    CHECK(start.value().to_vector() == F{1, 1});
}

TEST_CASE("Var: prints value, shape and operation") {
    Tensor w = parameter({0.5f, -1.25f, 0.75f});
    CHECK(printed(w) == "[ 0.5000 -1.2500  0.7500] (3), parameter");
    const Tensor loss = mean(w);
    CHECK(printed(loss) == "0.0000, made by mean");
    loss.backward();
    CHECK(printed(w) == "[ 0.5000 -1.2500  0.7500] (3), parameter, with a gradient");
    CHECK(printed(zeros({2})) == "[0.0000 0.0000] (2), constant");
    CHECK(printed(Scalar(parameter(2.0)) * 3) == "6, made by mul_number");
    CHECK(printed(Tensor()) == "empty variable");
}

TEST_CASE("Var: prints the operation that made the tensor even when it shares a buffer") {
    const Tensor x = parameter(ones({3, 1}));
    CHECK(printed(x[1]) == "[1.0000] (1), made by at");
    CHECK(printed(squeeze(x)) == "[1.0000 1.0000 1.0000] (3), made by squeeze");
    CHECK(x[1].node()->op() == std::string("at"));
    CHECK(unsqueeze(x, 0).node()->op() == std::string("unsqueeze"));
    CHECK(reshape(x, {3}).node()->op() == std::string("reshape"));
}

TEST_CASE("Shape, Device, Dual: can be printed") {
    CHECK(printed(Shape{6, 3}) == "(6, 3)");
    CHECK(printed(Shape{}) == "()");
    CHECK(printed(Device::cpu) + printed(Device::cuda) == "cpucuda");
    CHECK(printed(Dual<double>(2, -0.5)) == "2 at rate -0.5");
}

TEST_CASE("Var::operator[]: x[i] selects along the first axis and gets the gradient there") {
    const Tensor64 x = parameter(Array<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
    CHECK(x[1].shape() == Shape{2});
    CHECK(x[1].value().to_vector() == V{3, 4});
    CHECK(x[-1][0].item() == 5);
    (x[1][0] * 10 + sum(x[-1])).backward();
    CHECK(x.grad().to_vector() == V{0, 0, 10, 0, 1, 1});
    CHECK_THROWS_WITH(x[3], "[at] index 3 is outside the first axis of (3, 2)");
    CHECK_THROWS_WITH(x[-4], "[at] index -4 is outside the first axis of (3, 2)");
    CHECK_THROWS_WITH(x[0][0][0], "[at] index 0 is outside the first axis of ()");
}

TEST_CASE("Var::t: swaps the last two axes") {
    const Tensor64 x = parameter(Array<double>({2, 3}, {1, 2, 3, 4, 5, 6}));
    CHECK(x.t().value().to_vector() == V{1, 4, 2, 5, 3, 6});
    sum(x.t() * Array<double>({3, 2}, {1, 2, 3, 4, 5, 6})).backward();
    CHECK(x.grad().to_vector() == V{1, 3, 5, 2, 4, 6});
}

TEST_CASE("operators: a plain array is a constant on either side of every operator") {
    const Array<double> a{1, 2};
    const Tensor64 w = parameter({4.0, 8.0});
    CHECK((w + a).value().to_vector() == V{5, 10});
    CHECK((a + w).value().to_vector() == V{5, 10});
    CHECK((w - a).value().to_vector() == V{3, 6});
    CHECK((a - w).value().to_vector() == V{-3, -6});
    CHECK((w * a).value().to_vector() == V{4, 16});
    CHECK((a * w).value().to_vector() == V{4, 16});
    CHECK((w / a).value().to_vector() == V{4, 4});
    CHECK((a / w).value().to_vector() == V{0.25, 0.25});
    sum(a * w).backward();
    CHECK(w.grad().to_vector() == V{1, 2});
}

TEST_CASE("reductions: one axis can be given as a number") {
    const Tensor64 x = parameter(Array<double>({2, 3}, {1, 2, 3, 4, 5, 6}));
    CHECK(sum(x, 0).value().to_vector() == V{5, 7, 9});
    CHECK(mean(x, -1).value().to_vector() == V{2, 5});
    CHECK(max(x, 1, {.keepdims = true}).shape() == Shape{2, 1});
    CHECK(sum(x, std::size_t{1}).value().to_vector() == V{6, 15});
    CHECK(logsumexp(x, 0).value().to_vector() == logsumexp(x, detail::Axes{0}).value().to_vector());
    CHECK(sum(x, {}).item() == 21);  // no axes means all axes
}
