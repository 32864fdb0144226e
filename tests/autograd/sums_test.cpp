// Tests reductions, products, losses and norms on small numbers whose results are known exactly.
#include <cmath>
#include <vector>

#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/batch_norm.hpp"
#include "tally/autograd/ops/layer_norm.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/tensor.hpp"

using namespace tally;

namespace {

using Values = std::vector<double>;

Tensor64 matrix(const Shape& shape, const Values& values) { return parameter(Array<double>(shape, values)); }

Values gradient(const Tensor64& y, const Values& seed, const Tensor64& x) {
    x.zero_grad();
    y.backward(Array<double>(y.shape(), seed));
    return x.grad().to_vector();
}

bool close(const Values& a, const Values& b) {
    bool same = a.size() == b.size();
    for (std::size_t i = 0; same && i < a.size(); ++i) same = std::abs(a[i] - b[i]) <= 1e-14;
    return same;
}

}  // namespace

TEST_CASE("sum, mean: reduce over axes") {
    const Tensor64 x = matrix({2, 3}, {1, 2, 3, 4, 5, 6});
    CHECK(sum(x).item() == 21);
    CHECK(sum(x, {0}).value().to_vector() == Values{5, 7, 9});
    CHECK(sum(x, {-1}, {.keepdims = true}).shape() == Shape{2, 1});
    CHECK(mean(x).item() == 3.5);
    CHECK(mean(x, {1}).value().to_vector() == Values{2, 5});
    CHECK(gradient(sum(x, {0}), {1, 2, 3}, x) == Values{1, 2, 3, 1, 2, 3});
    CHECK(gradient(sum(x, {1}), {1, 2}, x) == Values{1, 1, 1, 2, 2, 2});
    CHECK(gradient(mean(x, {1}, {.keepdims = true}), {3, 6}, x) == Values{1, 1, 1, 2, 2, 2});
    CHECK(gradient(mean(x), {6}, x) == Values(6, 1));
    const Tensor64 cube = matrix({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    CHECK(sum(cube, {0, 2}).value().to_vector() == Values{14, 22});  // these axes are not adjacent
    CHECK(gradient(sum(cube, {0, 2}), {1, 2}, cube) == Values{1, 1, 2, 2, 1, 1, 2, 2});
    CHECK(mean(cube, {0, 2}).value().to_vector() == Values{3.5, 5.5});
    // Multiplying the sum by a rounded 1/3 would give a different mean.
    const Tensor64 third = parameter({5.0, 0.0, 0.0});
    CHECK(mean(third).item() == 5.0 / 3);
    CHECK(gradient(mean(third), {5}, third) == Values(3, 5.0 / 3));
}

TEST_CASE("sum, mean: keep their digits over millions of floats") {
    constexpr std::int64_t many = 10'000'000, rows = 1'000'000;
    const auto off = [](const Tensor& y, double want) { return std::abs(y.item() / want - 1); };
    const NoGrad no_graph;
    const Tensor tenths = constant(Array<float>::full({many}, 0.1f)),
                 drawn = uniform<float>({many}, 0, 1, {.seed = 3});
    double sum_of_drawn = 0, squares = 0;
    for (const float x : drawn.value().span()) sum_of_drawn += x, squares += double(x) * x;
    const double average = sum_of_drawn / many, spread = squares / many - average * average;
    CHECK(off(sum(tenths), 0.1f * double(many)) < 1e-6);
    CHECK(off(mean(tenths), 0.1f) < 1e-6);
    CHECK(var(tenths).item() < 1e-12);
    CHECK(off(sum(drawn), sum_of_drawn) < 1e-6);
    CHECK(off(var(drawn, {}, {.unbiased = false}), spread) < 1e-6);
    CHECK(off(mse(drawn, constant(Array<float>::full({many}, 0))).mean(), squares / many) < 1e-6);
    CHECK(off(sum(logsumexp(reshape(tenths, {1, many}), 1)), 0.1f + std::log(double(many))) < 1e-6);

    const Tensor table = reshape(tenths, {rows, 10});
    CHECK(off(max(mean(table, 0)), 0.1f) < 3e-6);  // the kernel sums in blocks of rows
    const Array<float> ones = Array<float>::full({10}, 1);
    CHECK(off(max(constant(detail::batch_statistics(table, ones, ones).mean)), 0.1f) < 3e-6);
    const Array<std::int32_t> labels = Array<std::int32_t>::full({rows}, 3);
    CHECK(off(cross_entropy(table, labels).mean(), std::log(10.0)) < 1e-6);
}

TEST_CASE("max: equal largest elements share the gradient") {
    const Tensor64 x = matrix({2, 3}, {1, 7, 7, 4, 3, 2});
    CHECK(max(x, {1}).value().to_vector() == Values{7, 4});
    CHECK(gradient(max(x, {1}), {10, 5}, x) == Values{0, 5, 5, 5, 0, 0});
    CHECK(max(x, {0, 1}, {.keepdims = true}).shape() == Shape{1, 1});
    CHECK(gradient(max(x), {4}, x) == Values{0, 2, 2, 0, 0, 0});
}

TEST_CASE("var: divides by n - 1 by default, and subtracts the mean first") {
    const Tensor64 x = matrix({2, 3}, {1, 2, 6, 4, 4, 4});
    CHECK(var(x, 1).value().to_vector() == Values{7, 0});
    CHECK(var(x, 1, {.unbiased = false}).value().to_vector() == Values{14.0 / 3, 0});
    CHECK(var(x, 0, {.unbiased = false, .keepdims = true}).shape() == Shape{1, 3});
    CHECK(gradient(var(x, 1), {1, 1}, x) == Values{-2, -1, 3, 0, 0, 0});
    CHECK(var(x, {0, 1}).item() == var(x).item());
    const Tensor64 far = matrix({3}, {1e9, 1e9 + 1, 1e9 + 2});  // sums of squares would lose all digits
    CHECK(var(far).item() == 1);
    CHECK(std::isnan(var(slice(far, 0, 0, 1)).item()));
    CHECK(std::isnan(var(slice(far, 0, 0, 0)).item()));
}

TEST_CASE("prod: each element's gradient is the product of all others, also among zeros") {
    const Tensor64 x = matrix({2, 3}, {1, 2, 3, 4, 0, 5});
    CHECK(prod(x, 1).value().to_vector() == Values{6, 0});
    CHECK(gradient(prod(x, 1), {1, 1}, x) == Values{6, 3, 2, 0, 20, 0});
    CHECK(gradient(prod(x), {1}, x) == Values{0, 0, 0, 0, 120, 0});
    const Tensor64 zeros = matrix({3}, {0, 5, 0});
    CHECK(gradient(prod(zeros), {1}, zeros) == Values{0, 0, 0});
    CHECK(prod(slice(x, 1, 0, 0), 1).value().to_vector() == Values{1, 1});
    const Tensor64 wide = matrix({4}, {1e200, 1e-200, 1e200, 1e-200});  // quotients of these numbers overflow
    CHECK(prod(wide, 0, {.keepdims = true}).shape() == Shape{1});
    const Tensor64 small = matrix({3}, {1e-200, 1e-200, 2});  // the product underflows, its gradient does not
    CHECK(gradient(prod(small), {1}, small) == Values{2e-200, 2e-200, 1e-200 * 1e-200});
}

TEST_CASE("cumsum: adds along an axis, and its gradient adds from the end") {
    const Tensor64 x = matrix({2, 3}, {1, 2, 3, 4, 5, 6});
    CHECK(cumsum(x, 1).value().to_vector() == Values{1, 3, 6, 4, 9, 15});
    CHECK(cumsum(x, 0).value().to_vector() == Values{1, 2, 3, 5, 7, 9});
    CHECK(gradient(cumsum(x, -1), {1, 10, 100, 2, 20, 200}, x) == Values{111, 110, 100, 222, 220, 200});
    CHECK(std::signbit(cumsum(matrix({2}, {-0.0, -0.0}), 0).value().to_vector()[1]));
}

TEST_CASE("argmax: returns the first largest element, and treats NaN as largest") {
    const Tensor64 x = matrix({3, 3}, {1, 7, 7, 4, 3, 4, -1, std::nan(""), std::nan("")});
    CHECK(argmax(x, 1).to_vector() == std::vector<std::int32_t>{1, 0, 1});
    CHECK(argmax(x, 0).to_vector() == std::vector<std::int32_t>{1, 2, 2});
    CHECK(argmax(x, -1, {.keepdims = true}).shape() == Shape{3, 1});
    CHECK(rows(x, argmax(x, 1)).shape() == Shape{3, 3});  // results of argmax are valid indices for rows()
}

TEST_CASE("stack, squeeze, unsqueeze: move axes of extent 1") {
    const Tensor64 a = matrix({2}, {1, 2}), b = matrix({2}, {3, 4});
    CHECK(stack<double>({a, b}).value().to_vector() == Values{1, 2, 3, 4});
    CHECK(stack<double>({a, b}, -1).value().to_vector() == Values{1, 3, 2, 4});
    CHECK(gradient(stack<double>({a, b}, 1), {1, 10, 100, 1000}, a) == Values{1, 100});
    CHECK(unsqueeze(a, 0).shape() == Shape{1, 2});
    CHECK(unsqueeze(a, -1).shape() == Shape{2, 1});
    CHECK(squeeze(unsqueeze(unsqueeze(a, 0), -1)).shape() == Shape{2});
    CHECK(squeeze(unsqueeze(unsqueeze(a, 0), -1), {0}).shape() == Shape{2, 1});
}

TEST_CASE("logsumexp, softmax, log_softmax: values and gradients") {
    const double log3 = std::log(3.0);
    const Tensor64 x = matrix({1, 2}, {0, log3});
    CHECK(std::abs(logsumexp(x).item() - std::log(4.0)) < 1e-15);
    CHECK(close(gradient(logsumexp(x), {4}, x), {1, 3}));
    CHECK(close(softmax(x).value().to_vector(), {0.25, 0.75}));
    CHECK(close(gradient(softmax(x), {16, 0}, x), {3, -3}));
    CHECK(close(log_softmax(x).value().to_vector(), {std::log(0.25), std::log(0.75)}));
    CHECK(close(gradient(log_softmax(x), {4, 0}, x), {3, -3}));
    CHECK(softmax(x, 0).value().to_vector() == Values{1, 1});  // here the sum runs along the other axis
    CHECK(log_softmax(x, 0).value().to_vector() == Values{0, 0});
}

TEST_CASE("matmul: values and gradients with either operand transposed") {
    const Tensor64 a = matrix({2, 2}, {1, 2, 3, 4}), b = matrix({2, 2}, {5, 6, 7, 8});
    const Values seed{1, 10, 100, 1000};
    CHECK(matmul(a, b).value().to_vector() == Values{19, 22, 43, 50});
    CHECK(gradient(matmul(a, b), seed, a) == Values{65, 87, 6500, 8700});
    CHECK(gradient(matmul(a, b), seed, b) == Values{301, 3010, 402, 4020});
    CHECK(matmul(a, b, {.transpose_a = true}).value().to_vector() == Values{26, 30, 38, 44});
    CHECK(gradient(matmul(a, b, {.transpose_a = true}), seed, a) == Values{65, 6500, 87, 8700});
    CHECK(gradient(matmul(a, b, {.transpose_a = true}), seed, b) == Values{201, 2010, 403, 4030});
    CHECK(matmul(a, b, {.transpose_b = true}).value().to_vector() == Values{17, 23, 39, 53});
    CHECK(gradient(matmul(a, b, {.transpose_b = true}), seed, a) == Values{75, 86, 7500, 8600});
    CHECK(gradient(matmul(a, b, {.transpose_b = true}), seed, b) == Values{301, 402, 3010, 4020});
    CHECK(matmul(a, b, {.transpose_a = true, .transpose_b = true}).value().to_vector() ==
          Values{23, 31, 34, 46});
    CHECK(gradient(matmul(a, b, {.transpose_a = true, .transpose_b = true}), seed, a) ==
          Values{75, 7500, 86, 8600});
    CHECK(gradient(matmul(a, b, {.transpose_a = true, .transpose_b = true}), seed, b) ==
          Values{201, 403, 2010, 4030});
}

TEST_CASE("matmul: multiplies vectors and batches") {
    const Tensor64 a = matrix({2, 2}, {1, 2, 3, 4}), v = parameter({5.0, 6.0});
    CHECK(matmul(a, v).value().to_vector() == Values{17, 39});
    CHECK(matmul(v, a).value().to_vector() == Values{23, 34});
    CHECK(matmul(v, v).shape() == Shape{});
    CHECK(gradient(matmul(v, v), {1}, v) == Values{10, 12});
    const Tensor64 batch = matrix({2, 1, 2}, {1, 2, 3, 4}), pair = matrix({2, 2, 1}, {5, 6, 7, 8});
    CHECK(matmul(batch, pair).value().to_vector() == Values{17, 53});
    CHECK(gradient(matmul(batch, pair), {1, 10}, batch) == Values{5, 6, 70, 80});
    CHECK(gradient(matmul(batch, pair), {1, 10}, pair) == Values{1, 2, 30, 40});
    const Tensor64 one = matrix({2, 1}, {5, 6});
    CHECK(matmul(batch, one).value().to_vector() == Values{17, 39});
    CHECK(gradient(matmul(batch, one), {1, 10}, one) ==
          Values{31, 42});  // the gradient is added over the batch
    CHECK(gradient(matmul(matrix({1, 2}, {1, 2}), pair), {1, 10}, pair) == Values{1, 2, 10, 20});
    const Tensor64 left = matrix({1, 2}, {1, 2});
    CHECK(gradient(matmul(left, pair), {1, 10}, left) == Values{75, 86});
}

TEST_CASE("linear: values and three gradients") {
    const Tensor64 x = matrix({2, 2}, {1, 2, 3, 4}), w = matrix({2, 1}, {5, 6}), b = parameter({7.0});
    CHECK(linear(x, w, b).value().to_vector() == Values{24, 46});
    CHECK(gradient(linear(x, w, b), {1, 10}, x) == Values{5, 6, 50, 60});
    CHECK(gradient(linear(x, w, b), {1, 10}, w) == Values{31, 42});
    CHECK(gradient(linear(x, w, b), {1, 10}, b) == Values{11});
    CHECK(linear(x, w).value().to_vector() == Values{17, 39});
    CHECK(gradient(linear(x, w), {1, 10}, x) == Values{5, 6, 50, 60});
    CHECK(gradient(linear(x, w), {1, 10}, w) == Values{31, 42});
}

TEST_CASE("layer_norm: values and three gradients") {
    const Tensor64 x = matrix({1, 2}, {1, 3}), gain = parameter({2.0, 3.0}), bias = parameter({10.0, 20.0});
    // x has the mean 2 and the standard deviation 1.
    CHECK(layer_norm(x, gain, bias, 0).value().to_vector() == Values{8, 23});
    CHECK(gradient(layer_norm(x, gain, bias, 0), {1, 10}, gain) == Values{-1, 10});
    CHECK(gradient(layer_norm(x, gain, bias, 0), {1, 10}, bias) == Values{1, 10});
    CHECK(gradient(layer_norm(x, gain, bias, 3), {1, 10}, gain) == Values{-0.5, 5});
    CHECK(close(gradient(layer_norm(x, gain, bias, 3), {8, 8}, x), {-1.5, 1.5}));
}

TEST_CASE("losses: have sum, count and mean") {
    const Tensor64 x = matrix({2, 2}, {0, std::log(3.0), 5, 5});
    const Array<std::int32_t> labels{0, 1};
    const auto loss = cross_entropy(x, labels);
    CHECK(std::abs(loss.sum.item() - std::log(8.0)) < 1e-15);
    CHECK(loss.count.item() == 2);
    CHECK(close(gradient(loss.mean(), {4}, x), {-1.5, 1.5, 1, -1}));
    const Tensor64 p = parameter({1.0, 2.0}), t = constant({4.0, 4.0});
    CHECK(mse(p, t).mean().item() == 6.5);
    CHECK(gradient(mse(p, t).mean(), {1}, p) == Values{-3, -2});
    const Tensor64 half = parameter({0.5, 0.5});
    CHECK(binary_cross_entropy(half, constant({0.0, 1.0})).mean().item() == std::log(2.0));
    CHECK(gradient(binary_cross_entropy(half, constant({0.0, 1.0})).mean(), {1}, half) == Values{1, -1});
}
