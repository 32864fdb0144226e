// Tests that the error message of an operation gives the call, the operands and a way to correct the call.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/layer_norm.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/ops/where.hpp"
#include "tally/autograd/sgd_step.hpp"
#include "tally/autograd/tensor.hpp"

using namespace tally;
using namespace tally::test;

namespace {

Tensor zeros(const Shape& shape) { return parameter(Array<float>::zeros(shape)); }
Array<std::int32_t> integers(std::initializer_list<std::int32_t> values) {
    return Array<std::int32_t>(values);
}
constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("operations: an Error has the operation and the shapes when shapes do not match") {
    CHECK_THROWS_WITH(matmul(zeros({16, 784}), zeros({512, 10})),
                      "[matmul] inner sizes differ: (16, 784) x (512, 10)");
    CHECK_THROWS_WITH(matmul(zeros({784, 16}), zeros({10, 512}), {.transpose_a = true, .transpose_b = true}),
                      "[matmul] inner sizes differ: (784, 16) transposed x (10, 512) transposed");
    CHECK_THROWS_WITH(matmul(zeros({}), zeros({4})), "[matmul] a single number is not a matrix: () x (4)");
    CHECK_THROWS_WITH(matmul(zeros({4}), zeros({4, 2}), {.transpose_a = true}),
                      "[matmul] a vector has no transpose: (4) transposed x (4, 2)");
    CHECK_THROWS_WITH(matmul(zeros({2, 3, 4}), zeros({3, 4, 2})),
                      "[matmul] batches of (2) and (3) do not broadcast: (2, 3, 4) x (3, 4, 2)");
    CHECK_THROWS_WITH(zeros({3, 2}) + zeros({4}), "[add] cannot broadcast (3, 2) with (4)");
    CHECK_THROWS_WITH(mse(zeros({4, 1}), zeros({4})),
                      "[mse] prediction and target must have the same shape; they are (4, 1) and (4): write "
                      "reshape(prediction, {4})");
    CHECK_THROWS_WITH(
        mse(zeros({3}), zeros({})),
        "[mse] prediction and target must have the same shape; they are (3) and (): if a target should "
        "repeat, write broadcast_to(target, {3})");
    CHECK_THROWS_WITH(
        binary_cross_entropy(zeros({2, 3}), zeros({3})),
        "[binary_cross_entropy] prediction and target must have the same shape; they are (2, 3) and "
        "(3): if a target should repeat, write broadcast_to(target, {2, 3})");
    CHECK_THROWS_WITH(
        cross_entropy(zeros({2, 3}), Array<std::int32_t>({2, 1}, {0, 1})),
        "[cross_entropy] requires logits (rows, classes) and labels (rows); they are (2, 3) and "
        "(2, 1): write labels.reshaped({2})");
    CHECK_THROWS_WITH(where(integers({1, 0}), zeros({2}), zeros({3})),
                      "[where] cannot broadcast the condition (2) with (2) and (3)");
    CHECK_THROWS_WITH(linear(zeros({2, 3}), zeros({4, 5})), "[linear] inner sizes differ: (2, 3) x (4, 5)");
    CHECK_THROWS_WITH(linear(zeros({2, 3}), zeros({3})),
                      "[linear] the weights must be a matrix (in, out); they are (3), x is (2, 3)");
    CHECK_THROWS_WITH(linear(zeros({2, 3}), zeros({3, 4}), zeros({3})),
                      "[linear] the bias of weights (3, 4) must be (4); it is (3)");
    CHECK_THROWS_WITH(layer_norm(zeros({2, 3}), zeros({2}), zeros({3})),
                      "[layer_norm] gain and bias of (2, 3) must be (3); they are (2) and (3)");
    CHECK_THROWS_WITH(layer_norm(zeros({2, 3}), zeros({3}), zeros({1})),
                      "[layer_norm] gain and bias of (2, 3) must be (3); they are (3) and (1)");
    CHECK_THROWS_WITH(layer_norm(zeros({}), zeros({1}), zeros({1})),
                      "[layer_norm] a single number has no row to normalise");
    CHECK_THROWS_WITH(reshape(zeros({2, 3}), {4, 2}), "[reshape] (2, 3) has 6 elements, but (4, 2) has 8");
    CHECK_THROWS_WITH(reshape(zeros({2, 3}), {4, -1}),
                      "[reshape] the extent -1 of (4, -1) cannot be computed for (2, 3)");
    CHECK_THROWS_WITH(broadcast_to(zeros({2, 3}), Shape{2}),
                      contains("[broadcast_to] cannot broadcast (2, 3) with (2)"));
    CHECK_THROWS_WITH(broadcast_to(zeros({2, 3}), Shape{3}), "[broadcast_to] (2, 3) does not fit into (3)");
    CHECK_THROWS_WITH(concat<float>({zeros({2, 3}), zeros({2, 4})}),
                      "[concat] cannot put (2, 4) next to (2, 3) along axis 0");
    CHECK_THROWS_WITH(concat<float>({}), "[concat] there is nothing to put together");
}

TEST_CASE("reductions, permute, slice: throw Error when an axis is out of range, repeated or missing") {
    CHECK_THROWS_WITH(sum(zeros({2, 3}), {2}), "[sum] axis 2 is out of range for (2, 3): valid are -2 to 1");
    CHECK_THROWS_WITH(max(zeros({}), {0}), "[max] axis 0 is out of range for (): it has no axes");
    CHECK_THROWS_WITH(sum(zeros({2, 3}), {1, -1}), "[sum] axis -1 is named twice for (2, 3)");
    CHECK_THROWS_WITH(permute(zeros({2, 3}), {0, 0}),
                      "[permute] the order (0, 0) does not name every axis of (2, 3) once");
    CHECK_THROWS_WITH(slice(zeros({2, 3}), 1, 1, 4), "[slice] 1 to 4 is not within axis 1 of (2, 3)");
    CHECK_THROWS_WITH(slice(zeros({2, 3}), 1, -1, 2),
                      "[slice] -1 to 2 is not within axis 1 of (2, 3); slice() does not count from the end: "
                      "write slice(x, 1, 2, 2)");
    CHECK_THROWS_WITH(slice(zeros({5, 3}), 0, -2, 0), contains("write slice(x, 0, 3, 5)"));
    CHECK_THROWS_WITH(slice(zeros({5, 3}), 0, 1, -1), contains("write slice(x, 0, 1, 4)"));
    CHECK_THROWS_WITH(slice(zeros({5, 3}), 0, -1, 1), "[slice] -1 to 1 is not within axis 0 of (5, 3)");
    CHECK_THROWS_WITH(slice(zeros({2, 3}), -2, 2, 1), "[slice] 2 to 1 is not within axis 0 of (2, 3)");
}

TEST_CASE("split, rows, cross_entropy: throw Error when parts, indices or labels do not fit") {
    CHECK_THROWS_WITH(split(zeros({6, 3}), 0), "[split] a part of (6, 3) cannot have 0 rows");
    CHECK_THROWS_WITH(split(zeros({}), 1), "[split] a single number has no rows");
    CHECK_THROWS_WITH(split(zeros({6, 3}), {4, 1}), "[split] the parts hold 5 rows, the array (6, 3) has 6");
    CHECK_THROWS_WITH(split(zeros({6, 3}), {4, 3}),
                      "[split] a part of 3 rows begins at row 4, but (6, 3) has 6 rows");
    CHECK_THROWS_WITH(split(zeros({6, 3}), {1, huge}),
                      "[split] a part of 9223372036854775807 rows begins at row 1, but (6, 3) has 6 rows");
    CHECK_THROWS_WITH(split(zeros({6, 3}), {6, -1}), "[split] a part of (6, 3) cannot have -1 rows");
    CHECK(split(zeros({6, 3}), 4).size() == 2);
    CHECK(split(zeros({6, 3}), 4)[1].shape() == Shape{2, 3});
    CHECK(split(zeros({6, 3}), {1, 2, 3})[2].shape() == Shape{3, 3});
    CHECK_THROWS_WITH(rows(zeros({4, 2}), integers({0, 4})),
                      "[rows] index 4 at position 1 is outside the rows of (4, 2)");
    CHECK_THROWS_WITH(rows(zeros({}), integers({0})), "[rows] a single number has no rows");
    CHECK_THROWS_WITH(rows(zeros({4, 2}), Array<std::int32_t>({1, 1}, {0})),
                      "[rows] the index must have one axis; its shape is (1, 1), and x is (4, 2)");
    CHECK_THROWS_WITH(
        cross_entropy(zeros({2, 3}), integers({0})),
        "[cross_entropy] requires logits (rows, classes) and labels (rows); they are (2, 3) and (1)");
    CHECK_THROWS_WITH(cross_entropy(zeros({2}), integers({0, 1})), contains("they are (2) and (2)"));
    const std::string wrong = message_of([] { cross_entropy(zeros({2, 3}), integers({1, 3})); });
    CHECK_THAT(wrong, contains("[cross_entropy]") && contains("3") && contains("1"));
    CHECK_THROWS_AS(cross_entropy(zeros({2, 3}), integers({0, -1})), Error);
    CHECK_THROWS_AS(cross_entropy(zeros({1, 0}), integers({0})), Error);
    CHECK_NOTHROW(cross_entropy(zeros({2, 3}), integers({0, -1}), {.ignore = -1}));
}

TEST_CASE("backward: throws Error when a seed or a parameter is missing") {
    const Tensor w = zeros({2, 3});
    CHECK_THROWS_WITH((w * 2).backward(),
                      "[backward] needs a seed, because the result has shape (2, 3); only a result with one "
                      "element needs none");
    CHECK_THROWS_WITH(w.backward(), contains("[backward] needs a seed"));
    CHECK_THROWS_WITH(Var<double>(2.0).backward(),
                      contains("this value of shape () depends on no parameter"));
    CHECK_THROWS_WITH(sum(slice(w, 0, 0, 0), {1}).backward(),
                      contains("needs a seed, because the result has shape (0)"));
    CHECK_THROWS_WITH(Tensor(Array<float>({1}, {1})).backward(),
                      "[backward] nothing to differentiate: this value of shape (1) depends on no parameter; "
                      "was it made inside NoGrad, or detached?");
    CHECK_THROWS_WITH(grad(w * 2, {w}), contains("[grad] needs a seed, because the result has shape (2, 3)"));
    CHECK_NOTHROW((w * 2).backward(Array<float>::zeros({2, 3})));
    CHECK_NOTHROW(reshape(slice(slice(w, 0, 0, 1), 1, 0, 1), {1, 1, 1}).backward());
}

TEST_CASE("Var::grad: throws Error when no gradient has arrived") {
    const Tensor w = zeros({2});
    CHECK_THROWS_WITH(w.grad(),
                      "[grad] no gradient has arrived at this 'parameter' of shape (2); call backward() on a "
                      "result that uses it");
    CHECK_THROWS_WITH(
        Tensor(Array<float>{1}).grad(),
        "[grad] no gradient has arrived at this 'constant' of shape (1); only parameters keep one");
    const Tensor y = sum(w * w);
    CHECK_THROWS_WITH(y.grad(),
                      "[grad] no gradient has arrived at this 'sum' of shape (); only parameters keep one");
    CHECK(grad(sum(w), {}).empty());
}

TEST_CASE("Var: an empty variable throws Error") {
    const Tensor none;
    const Tensor w = zeros({2});
    CHECK_FALSE(static_cast<bool>(none));
    CHECK_FALSE(none.has_grad());
    CHECK_THROWS_WITH(none.value(), "[value] this variable is empty: nothing was assigned to it");
    CHECK_THROWS_WITH(none.grad(), "[grad] this variable is empty: nothing was assigned to it");
    CHECK_THROWS_WITH(none.backward(), "[backward] this variable is empty: nothing was assigned to it");
    CHECK_THROWS_WITH(none.zero_grad(), contains("[zero_grad] this variable is empty"));
    CHECK_THROWS_WITH(none.free_grad(), contains("[free_grad] this variable is empty"));
    CHECK_THROWS_WITH(w + none, contains("this variable is empty"));
    CHECK_THROWS_WITH(matmul(none, w), contains("this variable is empty"));
    CHECK_THROWS_WITH(sum(none), contains("this variable is empty"));
    CHECK_THROWS_WITH(sgd_step({none}, 0.1), contains("[sgd_step] this variable is empty"));
    CHECK_THROWS_WITH(grad(sum(w), {none}), contains("[grad] this variable is empty"));
    CHECK_THROWS_WITH(none.detach(), contains("this variable is empty"));
}

TEST_CASE("Var: a parameter rejects a value or a seed of another shape") {
    const Tensor w = zeros({2});
    sum(w).backward();
    CHECK_THROWS_WITH(
        w.update([](Array<float>& value, const Array<float>&) { value = Array<float>({1.0f}); }),
        "[update] a parameter of shape (2) was given a value of shape (1)");
    CHECK_FALSE(w.has_grad());
    sum(w).backward();
    CHECK(w.grad().shape() == Shape{1});
    const Tensor other = zeros({2});
    Array<float> gone = Array<float>::zeros({2});
    const Array<float> taken = std::move(gone);
    CHECK_THROWS_WITH((other * 2).backward(gone), contains("[seed] an array has no memory"));
    CHECK_THROWS_WITH(grad(other * 2, Array<float>({1.0f}), {other}),
                      contains("[grad] the seed has shape (1)"));
}

TEST_CASE("sgd_step: throws Error for results and constants") {
    const Tensor w = zeros({2});
    CHECK_THROWS_WITH(sgd_step({w * 2}, 0.1),
                      "[update] requires a parameter; this variable is the result of 'mul_number'");
    CHECK_THROWS_WITH(sgd_step({constant({1.0f})}, 0.1),
                      "[update] requires a parameter; this variable is a constant");
}

TEST_CASE("Shape: throws Error when the size overflows") {
    constexpr std::int64_t longest = std::numeric_limits<std::int32_t>::max();
    CHECK_THROWS_WITH((Array<float>::zeros({huge, 1})),
                      "[shape] an axis is too long: (9223372036854775807, 1); the limit is 2147483647");
    CHECK_THROWS_WITH((Array<float>::zeros({longest, longest})),
                      contains("[shape] too many elements: (2147483647, 2147483647); the limit is "));
    const Tensor empty_rows = zeros({1, 0});
    CHECK_THROWS_AS(broadcast_to(empty_rows, Shape{huge, 0}), Error);
    CHECK_THROWS_WITH(matmul(zeros({longest, 0}), zeros({0, longest})),
                      contains("[shape] too many elements"));
    CHECK_THROWS_WITH(zeros({longest, 1, 0}) * zeros({1, longest, 0}), contains("[shape] too many elements"));
    CHECK_THROWS_WITH(reshape(zeros({1}), {1, 1, 1, 1, 1, 1, 1}), contains("[shape] more than 6 axes"));
    CHECK_THROWS_WITH(reshape(zeros({2}), {-2}), "[reshape] for (2): [shape] negative extent: (-2)");
}

TEST_CASE("operations on empty arrays: return a result where one is defined, else throw Error") {
    const Tensor none = zeros({0, 3});
    CHECK(sum(none).item() == 0);
    CHECK(sum(none, {0}).value().to_vector() == std::vector<float>{0, 0, 0});
    CHECK(sum(none, {1}).shape() == Shape{0});
    CHECK_THROWS_WITH(max(none), "[max] an empty set has no largest element: (0, 3)");
    CHECK_THROWS_WITH(max(none, {0}), "[max] an empty set has no largest element: (0, 3)");
    CHECK(max(none, {1}).shape() == Shape{0});  // the result has no elements, so no maximum is computed
    CHECK(max(zeros({0, 0}), {0}).shape() == Shape{0});
    CHECK(std::isnan(mean(none).item()));
    CHECK(logsumexp(none).item() == -std::numeric_limits<float>::infinity());
    CHECK(softmax(none).shape() == Shape{0, 3});
    CHECK(softmax(none, 0).shape() == Shape{0, 3});
    CHECK((none + zeros({1, 3})).shape() == Shape{0, 3});
    CHECK(matmul(none, zeros({3, 2})).shape() == Shape{0, 2});
    CHECK(rows(none, Array<std::int32_t>({0}, {})).shape() == Shape{0, 3});
    CHECK_THROWS_WITH(rows(none, integers({0})), contains("[rows] index 0 at position 0 is outside"));
    CHECK(split(none, 2).empty());
    const auto loss = cross_entropy(none, Array<std::int32_t>({0}, {}));
    CHECK(loss.sum.item() == 0);
    CHECK(loss.count.item() == 0);
    sum(tanh(none) * 2).backward();
    CHECK(none.grad().shape() == Shape{0, 3});
    CHECK(none.has_grad());
}
