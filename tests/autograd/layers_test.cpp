// Tests the operations that layers call. Masks and convolutions do not depend on the split of a batch, and
// each commit() updates the running statistics once.
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/tally.hpp"

using namespace tally;
using namespace tally::test;

namespace {

using Numbers = std::vector<double>;

Tensor64 numbers(const Shape& shape, const Numbers& values) {
    return parameter(Array<double>(shape, values));
}

bool near(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance; }

}  // namespace

// ---- embedding ----

TEST_CASE("embedding: adds the gradients of a row used twice, and none for the padding") {
    const Tensor64 table = numbers({3, 2}, {1, 2, 3, 4, 5, 6});
    const Array<std::int32_t> indices({2, 2}, {2, 0, 2, 1});
    const Tensor64 y = embedding(table, indices, -2);
    CHECK(y.shape() == Shape{2, 2, 2});
    CHECK(y.value().to_vector() == Numbers{5, 6, 1, 2, 5, 6, 3, 4});
    sum(y).backward();
    CHECK(table.grad().to_vector() == Numbers{1, 1, 0, 0, 2, 2});
}

TEST_CASE("embedding: rows of the table may be numbers or matrices") {
    const Array<std::int32_t> indices({2}, {1, 0});
    CHECK(same_bits(embedding(numbers({2}, {1, 2}), indices).value(), Array<double>{2, 1}));
    CHECK(same_bits(embedding(numbers({2, 2, 1}, {1, 2, 3, 4}), indices).value(),
                    Array<double>({2, 2, 1}, {3, 4, 1, 2})));
}

TEST_CASE("embedding: throws Error with the index when it is outside the table") {
    const Tensor64 table = numbers({3, 2}, {1, 2, 3, 4, 5, 6});
    CHECK(message_of([&] {
              embedding(table, Array<std::int32_t>({1, 2}, {0, 3}));
          }) == "[embedding] index 3 at position 1 is outside the rows of (3, 2)");
    CHECK(message_of([&] {
              embedding(table, Array<std::int32_t>({2}, {-1, 0}));
          }) == "[embedding] index -1 at position 0 is outside the rows of (3, 2)");
    CHECK(message_of([&] { embedding(table, Array<std::int32_t>({1}, {0}), 3); }) ==
          "[embedding] the padding 3 is outside the rows of (3, 2)");
    CHECK(message_of([&] { embedding(Tensor64(Array<double>({}, {1})), Array<std::int32_t>({1}, {0})); }) ==
          "[embedding] a single number has no rows");
}

// ---- dropout ----

TEMPLATE_TEST_CASE("invariant 11: an item's dropout mask does not depend on the split of the batch", "",
                   float, double) {
    using S = TestType;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        Random random(seed);
        INFO("seed " << seed);
        const std::int64_t items = random.whole(1, 7), cut = random.whole(0, items);
        const Shape shape{items, random.whole(1, 5), random.whole(1, 9)};
        const double p = random.between(0, 1);
        const std::uint64_t layer = static_cast<std::uint64_t>(random.whole(0, 5)), start = 1000 * seed;
        const Array<S> x = random.array<S>(shape, 0.5, 2);
        const Var<Array<S>> whole = parameter(x.clone()), parts = parameter(x.clone());
        const Var<Array<S>> full = dropout(whole, p, {seed, layer, start});
        sum(full).backward();
        std::vector<Var<Array<S>>> pieces;
        for (const auto& [from, to] : {std::pair{std::int64_t(0), cut}, std::pair{cut, items}})
            pieces.push_back(dropout(slice(parts, 0, from, to), p,
                                     {seed, layer, start + static_cast<std::uint64_t>(from)}));
        const Var<Array<S>> joined = concat(pieces);
        REQUIRE(same_bits(joined.value(), full.value()));
        sum(joined).backward();
        REQUIRE(same_bits(parts.grad(), whole.grad()));
    }
}

TEST_CASE("invariant 11: an element's dropout mask does not depend on the length of its item") {
    const Tensor64 ones = constant(Array<double>::full({3, 6}, 1));
    const Tensor64 whole = dropout(ones, 0.5, {1, 2, 3}),
                   start = dropout(slice(ones, 1, 0, 4), 0.5, {1, 2, 3});
    CHECK(same_bits(slice(whole, 1, 0, 4).value(), start.value()));
}

TEST_CASE("dropout: seed, layer and item each change the mask, and float and double have the same mask") {
    const Array<double> ones = Array<double>::full({1, 200}, 1);
    const auto mask = [&](const detail::DropoutKey& of) {
        return dropout(Tensor64(ones), 0.5, of).value().to_vector();
    };
    const Numbers first = mask({1, 2, 3});
    CHECK(mask({1, 2, 3}) == first);
    CHECK(mask({2, 2, 3}) != first);
    CHECK(mask({1, 3, 3}) != first);
    CHECK(mask({1, 2, 4}) != first);
    const Tensor single = dropout(Tensor(Array<float>::full({1, 200}, 1)), 0.5, {1, 2, 3});
    CHECK(Numbers(single.value().span().begin(), single.value().span().end()) == first);
}

TEST_CASE("dropout: throws Error when the probability or the item number is out of range") {
    const Tensor64 x = numbers({2, 2}, {1, 2, 3, 4});
    for (const double p : {-0.1, 1.1, std::nan("")})
        CHECK_THAT(message_of([&] { dropout(x, p, {}); }),
                   contains("[dropout] the probability must be between 0 and 1"));
    CHECK_THAT(
        message_of([&] {
            dropout(x, 0.5, {0, 0, (std::uint64_t{1} << 32) - 1});
        }),
        contains("[dropout] the indices of the items, and the number of elements in one item, must not "
                 "exceed 2^32; the first item is 4294967295, x is (2, 2)"));
    CHECK(message_of([&] { dropout(x, 0.5, {0, 0, (std::uint64_t{1} << 32) - 2}); }) == "no error");
    CHECK(message_of([] { dropout(Tensor64(Array<double>({}, {1})), 0.5, {}); }) ==
          "[dropout] a single number has no items");
}

// ---- losses ----

TEST_CASE("losses: throw Error when smoothing, shapes or temperature are invalid") {
    const Tensor64 x = numbers({2, 2}, {1, 2, 3, 4});
    CHECK_THAT(message_of([&] {
                   cross_entropy(x, Array<std::int32_t>({2}, {0, 1}), {.smoothing = 1.5});
               }),
               contains("[cross_entropy] the smoothing must be between 0 and 1; it is 1.5"));
    CHECK_THAT(message_of([&] {
                   info_nce(x, numbers({2, 1}, {1, 2}));
               }),
               contains("[info_nce] requires queries and keys of the same shape (rows, width); they are (2, "
                        "2) and (2, 1)"));
    CHECK_THAT(message_of([&] { info_nce(x, x, 0); }),
               contains("[info_nce] the temperature must be above 0"));
    CHECK(info_nce(x, x).count.item() == 2);
}

// ---- batch norm ----

TEST_CASE("pooled_with: statistics of parts equal those of the whole") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Random random(seed);
        INFO("seed " << seed);
        const std::int64_t features = random.whole(1, 5), space = random.whole(2, 4);
        std::vector<Tensor64> parts;
        RunningStatistics<double>::Batch pool;
        const Tensor64 gain = constant(Array<double>::full({features}, 1)),
                       bias = constant(Array<double>::zeros({features}));
        for (std::int64_t left = random.whole(1, 5); left > 0; --left) {
            parts.push_back(constant(random.array<double>({random.whole(0, 3), features, space, 1})));
            pool = pool.pooled_with(batch_norm(parts.back(), gain, bias).statistics);
        }
        const Tensor64 whole = concat(parts);
        if (whole.value().size() == 0) continue;
        const auto want = batch_norm(whole, gain, bias).statistics;
        REQUIRE(pool.count == want.count);
        for (std::size_t f = 0; f < gain.value().size(); ++f) {
            REQUIRE(near(pool.mean.span()[f], want.mean.span()[f], 1e-14));
            REQUIRE(near(pool.variance.span()[f], want.variance.span()[f], 1e-14));
        }
    }
}

TEST_CASE("invariant 11: forward does not change running statistics, and a commit changes them once") {
    const Tensor64 x = numbers({4, 1}, {0, 2, 4, 6}), gain = numbers({1}, {1}), bias = numbers({1}, {0});
    RunningStatistics<double> running(1);
    const auto first = batch_norm(x, gain, bias), again = batch_norm(x, gain, bias);
    CHECK(same_bits(first.y.value(), again.y.value()));
    CHECK(running.mean.to_vector() == Numbers{0});
    CHECK(running.variance.to_vector() == Numbers{1});
    running.commit(first.statistics);
    CHECK(near(running.mean.item(), 0.3, 1e-15));
    CHECK(near(running.variance.item(), 0.9 + 0.1 * 20 / 3, 1e-15));  // 20 / 3, because the divisor is 4 - 1

    running.commit(first.statistics, 1);
    const Tensor64 y = batch_norm(x, gain, bias, running, 0);
    CHECK(near(y.value().span()[3], 3 / std::sqrt(20.0 / 3), 1e-15));
    sum(y).backward();
    for (double slope : x.grad().span()) CHECK(near(slope, 1 / std::sqrt(20.0 / 3), 1e-15));
}

TEST_CASE("batch_norm: gradients stay the same when statistics are committed between forward and backward") {
    const Tensor64 x = numbers({2, 1}, {1, 3}), gain = numbers({1}, {2}), bias = numbers({1}, {0});
    RunningStatistics<double> running(1);
    const Tensor64 y = batch_norm(x, gain, bias, running, 0);
    running.commit(batch_norm(x, gain, bias).statistics);
    sum(y).backward();
    CHECK(x.grad().to_vector() == Numbers{2, 2});
}

TEST_CASE("batch_norm: throws Error when the variance is undefined or the number of features differs") {
    const Tensor64 x = numbers({1, 2}, {1, 2}), two = numbers({2}, {1, 1}), one = numbers({1}, {1});
    CHECK(
        message_of([&] { batch_norm(x, two, two); }) ==
        "[batch_norm] x (1, 2) has one value per feature, which has no variance; use a larger batch, or pass "
        "running statistics for evaluation");
    CHECK_THAT(
        message_of([&] {
            batch_norm(numbers({2, 2}, {1, 2, 3, 4}), two, one);
        }),
        contains("[batch_norm] gain and bias for x (2, 2) must have the shape (2); they have (2) and (1)"));
    CHECK_THAT(
        message_of([&] { batch_norm(x, two, two, RunningStatistics<double>(3)); }),
        contains("[batch_norm] the running mean and variance for x (1, 2) must have the shape (2); they "
                 "have (3) and (3)"));
    CHECK_THAT(message_of([&] { batch_norm(two, two, two); }),
               contains("[batch_norm] requires (items, features, ...); x is (2)"));
    const RunningStatistics<double>::Batch empty = batch_norm(numbers({0, 2}, {}), two, two).statistics;
    CHECK(message_of([&] { RunningStatistics<double>(2).commit(empty); }) ==
          "[batch_norm] the batch has 0 values per feature; a variance needs at least 2");
}

// ---- windows over images ----

TEST_CASE("invariant 9: conv2d adds to the weights' gradient in place") {
    const Tensor64 x = constant(Array<double>::full({3, 64, 2, 2}, 0.5)),
                   weight = parameter(Array<double>::full({64, 64, 2, 2}, 0.5)),
                   bias = parameter(Array<double>::zeros({64}));
    const std::size_t parameter_bytes = weight.value().size() * sizeof(double);
    const auto micro = [&] { mean(conv2d(x, weight, bias, 2)).backward(); };
    micro();
    const double* home = weight.grad().data();
    const Numbers once = weight.grad().to_vector();
    memory::reset_peak();
    const std::size_t before = memory::in_use();
    micro();
    CHECK(memory::peak() - before < parameter_bytes);
    CHECK(memory::in_use() == before);
    CHECK(weight.grad().data() == home);
    CHECK(near(weight.grad().span()[0], 2 * once[0], 1e-15));
}

TEST_CASE("conv2d: throws Error when the operands do not fit") {
    const Tensor64 x = constant(Array<double>::zeros({1, 2, 3, 3})),
                   w = constant(Array<double>::zeros({1, 2, 2, 2}));
    CHECK(message_of([&] {
              conv2d(x, constant(Array<double>::zeros({1, 1, 2, 2})));
          }) ==
          "[conv2d] requires x (items, channels, height, width) and weight (out, channels, kernel height, "
          "kernel width); they are (1, 2, 3, 3) and (1, 1, 2, 2)");
    CHECK(message_of([&] {
              conv2d(x, constant(Array<double>::zeros({1, 2, 6, 6})), 1, 1);
          }) == "[conv2d] a window of 6 x 6 does not fit into the padded images of 5 x 5; x is (1, 2, 3, 3)");
    CHECK_THAT(message_of([&] { conv2d(x, w, 0); }), contains("the stride must be at least 1, not 0"));
    CHECK_THAT(message_of([&] { conv2d(x, w, 1, -1); }),
               contains("the padding must be between 0 and 2147483647, not -1"));
    CHECK_THAT(message_of([&] {
                   conv2d(x, w, numbers({2}, {1, 2}));
               }),
               contains("[conv2d] the bias of weight (1, 2, 2, 2) must be (1); it is (2)"));
    CHECK_THAT(message_of([&] {
                   max_pool2d(numbers({2}, {1, 2}), 2);
               }),
               contains("[max_pool2d] requires x (items, channels, height, width); it is (2)"));
    CHECK_THAT(message_of([&] { max_pool2d(x, 0); }), contains("a window of 0 x 0 is empty"));
}

TEST_CASE("conv2d, max_pool2d: throw Error with the operands when windows or paddings are too large") {
    const Tensor64 x = constant(Array<double>::zeros({1, 2, 3, 3})),
                   w = constant(Array<double>::zeros({1, 2, 2, 2}));
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t far : {std::int64_t{1} << 62, most, most / 2, std::int64_t{1} << 31}) {
        CAPTURE(far);
        CHECK(message_of([&] { conv2d(x, w, 1, far); }) ==
              "[conv2d] the padding must be between 0 and 2147483647, not " + std::to_string(far) +
                  "; x is (1, 2, 3, 3)");
        CHECK(conv2d(x, w, far).shape() == Shape{1, 1, 1, 1});
        CHECK(max_pool2d(x, 2, far).shape() == Shape{1, 2, 1, 1});
        CHECK_THAT(message_of([&] { max_pool2d(x, far); }),
                   contains("a window of " + std::to_string(far) + " x ") &&
                       contains("does not fit into the padded images of 3 x 3; x is (1, 2, 3, 3)"));
    }
    CHECK_THAT(message_of([&] { conv2d(x, w, 1, (std::int64_t{1} << 31) - 1); }),
               contains("[conv2d] the result (items, channels, 4294967296, 4294967296) is too large; x is "
                        "(1, 2, 3, 3), the padding is 2147483647: [shape] an axis is too long"));
    CHECK_THAT(message_of([&] { conv2d(x, w, 1, std::int64_t{1} << 28); }),
               contains("[conv2d] the windows of one image hold more than 2147483647 numbers: ") &&
                   contains("windows of weight (1, 2, 2, 2); x is (1, 2, 3, 3)"));
}

TEST_CASE("RunningStatistics: commit throws Error when the features differ") {
    const auto features = [](std::int64_t n) {
        return RunningStatistics<double>::Batch{Array<double>::zeros({n}), Array<double>::zeros({n}), 4};
    };
    RunningStatistics<double> running(3);
    CHECK_THROWS_WITH(
        running.commit(features(1)),
        "[batch_norm] statistics of shape (3) cannot be combined with a mean of (1) and a variance of (1)");
    CHECK_THROWS_WITH(running.commit(features(3), 1.5),
                      contains("[batch_norm] the momentum must be between 0 and 1; it is 1.5"));
}
