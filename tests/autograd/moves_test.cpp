// Tests operations that only move numbers, such as transpose and concat.
#include "tally/autograd/ops/shape_ops.hpp"

#include <vector>

#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/where.hpp"
#include "tally/autograd/tensor.hpp"

using namespace tally;

namespace {

using V = std::vector<double>;
using I = Array<std::int32_t>;

Tensor64 matrix() { return parameter(Array<double>({2, 3}, {1, 2, 3, 4, 5, 6})); }

// Checks the values of f(x) and the gradient of x. In the second round the gradient must be twice as large,
// because gradients accumulate.
void check(const Tensor64& x, Tensor64 (*f)(const Tensor64&), const Shape& shape, const V& values,
           const V& gradient) {
    for (int round = 1; round <= 2; ++round) {
        const Tensor64 y = f(x);
        REQUIRE(y.shape() == shape);
        CHECK(y.value().to_vector() == values);
        V seed;
        for (std::size_t i = 0; i < values.size(); ++i) seed.push_back(10.0 * static_cast<double>(i + 1));
        y.backward(Array<double>(shape, seed));
        V expected = gradient;
        for (double& each : expected) each *= round;
        CHECK(x.grad().to_vector() == expected);
    }
}

}  // namespace

TEST_CASE("reshape, permute, transpose: move numbers and gradients") {
    check(matrix(),
          [](const Tensor64& x) {
              return reshape(x, {3, 2});
          },
          {3, 2}, {1, 2, 3, 4, 5, 6}, {10, 20, 30, 40, 50, 60});
    check(matrix(), [](const Tensor64& x) { return reshape(x, {-1}); }, {6}, {1, 2, 3, 4, 5, 6},
          {10, 20, 30, 40, 50, 60});
    check(matrix(), [](const Tensor64& x) { return transpose(x); }, {3, 2}, {1, 4, 2, 5, 3, 6},
          {10, 30, 50, 20, 40, 60});
    check(matrix(),
          [](const Tensor64& x) {
              return permute(x, {-1, 0});
          },
          {3, 2}, {1, 4, 2, 5, 3, 6}, {10, 30, 50, 20, 40, 60});
    check(parameter(Array<double>({2, 1, 2}, {1, 2, 3, 4})),
          [](const Tensor64& x) {
              return permute(x, {2, 0, 1});
          },
          {2, 2, 1}, {1, 3, 2, 4}, {10, 30, 20, 40});
    check(parameter(Array<double>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})),
          [](const Tensor64& x) { return transpose(x, 0, 1); }, {2, 2, 2}, {1, 2, 5, 6, 3, 4, 7, 8},
          {10, 20, 50, 60, 30, 40, 70, 80});
}

TEST_CASE("broadcast_to: repeats values and adds their gradients") {
    check(parameter({1.0, 2.0}),
          [](const Tensor64& x) {
              return broadcast_to(x, {2, 2});
          },
          {2, 2}, {1, 2, 1, 2}, {40, 60});
    check(parameter(Array<double>({2, 1}, {1, 2})),
          [](const Tensor64& x) {
              return broadcast_to(x, {2, 2});
          },
          {2, 2}, {1, 1, 2, 2}, {30, 70});
}

TEST_CASE("slice: the gradient is zero outside the slice") {
    check(matrix(), [](const Tensor64& x) { return slice(x, 0, 1, 2); }, {1, 3}, {4, 5, 6},
          {0, 0, 0, 10, 20, 30});
    check(matrix(), [](const Tensor64& x) { return slice(x, 1, 1, 3); }, {2, 2}, {2, 3, 5, 6},
          {0, 10, 20, 0, 30, 40});
    check(matrix(), [](const Tensor64& x) { return slice(x, -1, 0, 1); }, {2, 1}, {1, 4},
          {10, 0, 0, 20, 0, 0});
    check(matrix(), [](const Tensor64& x) { return slice(x, 1, 2, 2); }, {2, 0}, {}, {0, 0, 0, 0, 0, 0});
}

TEST_CASE("concat: joins arrays, also the same array twice") {
    check(matrix(),
          [](const Tensor64& x) {
              return concat<double>({x, x}, 1);
          },
          {2, 6}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}, {50, 70, 90, 170, 190, 210});
    const Tensor64 x = matrix(), y = parameter(Array<double>({1, 3}, {7, 8, 9}));
    const Tensor64 both = concat<double>({y, x, constant(Array<double>({1, 3}, {0, 0, 0}))});
    CHECK(both.value().to_vector() == V{7, 8, 9, 1, 2, 3, 4, 5, 6, 0, 0, 0});
    both.backward(both.value());
    CHECK(x.grad().to_vector() == V{1, 2, 3, 4, 5, 6});
    CHECK(y.grad().to_vector() == V{7, 8, 9});
}

TEST_CASE("split: returns the rows in order") {
    const Tensor64 x = parameter(Array<double>({5, 1}, {1, 2, 3, 4, 5}));
    const auto parts = split(x, 2);
    REQUIRE(parts.size() == 3);
    CHECK(parts[1].value().to_vector() == V{3, 4});
    CHECK(parts[2].value().to_vector() == V{5});
    CHECK(parts[1].value().data() == x.value().data() + 2);  // split() does not copy
    const auto uneven = split(x, {1, 0, 4});
    CHECK(uneven[2].value().to_vector() == V{2, 3, 4, 5});
    uneven[2].backward(uneven[2].value());
    CHECK(x.grad().to_vector() == V{0, 2, 3, 4, 5});
    CHECK(split(x, 9).size() == 1);
}

TEST_CASE("rows: selects rows in any order and more than once") {
    check(parameter(Array<double>({3, 2}, {1, 2, 3, 4, 5, 6})),
          [](const Tensor64& x) {
              return rows(x, I{2, 0, 2});
          },
          {3, 2}, {5, 6, 1, 2, 5, 6}, {30, 40, 0, 0, 60, 80});
    check(parameter({1.0, 2.0}), [](const Tensor64& x) { return rows(x, I{1}); }, {1}, {2}, {0, 10});
    check(parameter({1.0, 2.0}),
          [](const Tensor64& x) {
              return rows(x, I{-1, -2, 1});
          },
          {3}, {2, 1, 2}, {20, 40});
    const I from_the_end{-1};
    (void)rows(parameter({1.0, 2.0}), from_the_end);
    CHECK(from_the_end.to_vector() == std::vector<std::int32_t>{-1});
}

TEST_CASE("where: selects values, and passes the gradient to the selected operand") {
    const Tensor64 a = parameter({1.0, 2.0}), b = parameter(Array<double>({2, 1}, {30, 40}));
    const Tensor64 y = where(I({2, 2}, {1, 0, 0, 7}), a, b);
    CHECK(y.value().to_vector() == V{1, 30, 40, 2});
    y.backward(Array<double>({2, 2}, {1, 10, 100, 1000}));
    CHECK(a.grad().to_vector() == V{1, 1000});
    CHECK(b.grad().to_vector() == V{10, 100});
}
