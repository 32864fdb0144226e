// Tests as_xtensor(), as_writable_xtensor() and array_of(), which share or copy memory and check versions.
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/sgd_step.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/memory/memory.hpp"
#include "tally/tools/check_rules.hpp"
#include "tally/xtensor.hpp"

using namespace tally;
using namespace tally::test;

namespace {

template <class S> Array<S> random_numbers(Random& random, const Shape& shape) {
    if constexpr (std::is_integral_v<S>)
        return random.integers(shape, -9, 9);
    else
        return random.array<S>(shape);
}

template <class S, class View> void expect_shape(const Array<S>& array, const View& view) {
    REQUIRE(view.dimension() == static_cast<std::size_t>(array.shape().rank()));
    for (int axis = 0; axis < array.shape().rank(); ++axis)
        REQUIRE(view.shape()[static_cast<std::size_t>(axis)] ==
                static_cast<std::size_t>(array.shape()[axis]));
    REQUIRE(view.size() == array.size());
}

std::uint64_t allocations() { return memory::report().allocations; }

template <class S> void round_trip(std::uint64_t seed, const Shape& shape) {
    INFO("seed " << seed << ", " << to_string(shape) << ", " << sizeof(S) << " bytes");
    Random random(seed);
    const Array<S> a = random_numbers<S>(random, shape);
    const auto view = as_xtensor(a);
    expect_shape(a, view);
    CHECK(view.data() == a.data());
    CHECK(memory::detail::ref_count(a.storage()) == 2);
    std::vector<S> in_order;
    for (const S number : view) in_order.push_back(number);
    CHECK(in_order == a.to_vector());

    const std::uint64_t before = allocations();
    const Array<S> back = array_of(view);
    CHECK(allocations() == before + (a.size() > 0));
    CHECK(same_bits(back, a));
    CHECK(back.storage() != a.storage());

    const Array<S> sums = array_of(view + view * view);
    for (std::size_t i = 0; i < a.size(); ++i)
        REQUIRE(sums.span()[i] == a.span()[i] + a.span()[i] * a.span()[i]);

    const Array<S> transposed = array_of(xt::transpose(view));
    CHECK(transposed.size() == a.size());
    CHECK(same_bits(array_of(xt::transpose(as_xtensor(transposed))), a));
    if (shape.rank() == 2)
        for (std::int64_t i = 0; i < shape[0]; ++i)
            for (std::int64_t j = 0; j < shape[1]; ++j)
                REQUIRE(transposed.span()[static_cast<std::size_t>(j * shape[0] + i)] ==
                        a.span()[static_cast<std::size_t>(i * shape[1] + j)]);
    const xt::xarray<S, xt::layout_type::column_major> by_columns = view;
    CHECK(same_bits(array_of(by_columns), a));

    Array<S> written = Array<S>::full(shape, S(7));
    as_writable_xtensor(written) = view;
    CHECK(same_bits(written, a));
}

}  // namespace

TEST_CASE("as_xtensor, array_of: a view has the array's memory, and results become arrays") {
    const Poison poison;
    int numbers = 0, empties = 0, ones = 0, deep = 0;
    for (std::uint64_t seed = 0; seed < 80; ++seed) {
        Random random(seed);
        const Shape shape = random.shape(6, 3);
        numbers += shape.rank() == 0;
        empties += shape.size() == 0;
        ones += shape.rank() > 0 && shape.size() == 1;
        deep += shape.rank() > 4;
        round_trip<float>(seed, shape);
        round_trip<double>(seed, shape);
        round_trip<std::int32_t>(seed, shape);
    }
    CHECK((numbers > 0 && empties > 0 && ones > 0 && deep > 0));
}

TEST_CASE("array_of: the element type is the expression's or the caller's") {
    const Array<float> a{1, 2};
    const auto view = as_xtensor(a);
    STATIC_REQUIRE(std::is_same_v<decltype(array_of(view)), Array<float>>);
    STATIC_REQUIRE(std::is_same_v<decltype(array_of(view * 2.0)), Array<double>>);
    STATIC_REQUIRE(std::is_same_v<decltype(array_of<float>(view * 2.0)), Array<float>>);
    STATIC_REQUIRE(!std::is_assignable_v<decltype(view(0)), float>);
    CHECK(array_of<float>(view > 1.0f).to_vector() == std::vector<float>{0, 1});
    CHECK(array_of<std::int32_t>(view > 1.0f).to_vector() == std::vector<std::int32_t>{0, 1});
    CHECK(array_of<std::int32_t>(view * 3.0).to_vector() == std::vector<std::int32_t>{3, 6});
    const xt::xarray<double> ends{-2147483648.0, 2147483647.0, -0.0};
    CHECK(array_of<std::int32_t>(ends).to_vector() ==
          std::vector<std::int32_t>{-2147483647 - 1, 2147483647, 0});
    const auto message = [](double number) {
        return std::string("[array_of] element 1 is ") + detail::to_text(number) +
               ", which is not a whole number from -2147483648 to 2147483647; round it with xt::rint, or "
               "write array_of<double>(expression)";
    };
    for (const double number : {3e9, -2147483649.0, 2147483648.0, 0.5, double(NAN), double(INFINITY)})
        CHECK_THROWS_WITH(array_of<std::int32_t>(xt::xarray<double>{1, number}), message(number));
    CHECK_THROWS_WITH(array_of<std::int32_t>(xt::xarray<std::int64_t>{1, 4294967297}), message(4294967297));
    CHECK_THROWS_WITH(array_of<std::int32_t>(xt::xarray<std::uint32_t>{1, 4294967295}), message(4294967295));
    const Tensor x = array_of(view * 2.0f), w = parameter(array_of(view));
    CHECK(!x.requires_grad());
    sum(x * w).backward();
    CHECK(w.grad().to_vector() == std::vector<float>{2, 4});
    const Array<float> total = array_of(xt::sum(view));
    CHECK(total.shape() == Shape{});
    CHECK(total.item() == 3);
}

TEST_CASE("as_xtensor: a view holds the array's buffer like a copy") {
    Array<double> a{1, 2, 3};
    auto view = std::make_optional(as_xtensor(a));
    const double* const address = a.data();
    a.writable()[0] = 10;  // copies, because the view holds the buffer
    CHECK(a.data() != address);
    CHECK((*view)(0) == 1);
    CHECK(view->data() == address);
    view.reset();
    const double* const now = a.data();
    a.writable()[0] = 20;
    CHECK(a.data() == now);

    const std::size_t before = memory::in_use();
    {
        const auto outlives = [] { return 2.0 * as_xtensor(Array<double>{1, 2}) + 1.0; }();
        CHECK(memory::in_use() > before);
        CHECK(outlives(1) == 5);
    }
    CHECK(memory::in_use() == before);

    Tensor64 y = constant({0.0, 1.0}) * 1.0;
    const auto of_y = as_xtensor(y.value());
    const Tensor64 z = exp(std::move(y));  // does not overwrite the buffer of the view
    CHECK(of_y(0) == 0);
    CHECK(z.value().span()[0] == 1);
}

TEST_CASE("as_writable_xtensor: a shared buffer is copied, and the version is raised") {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        Random random(seed);
        const Shape shape = random.shape(4);
        INFO("seed " << seed << ", " << to_string(shape));
        Array<double> a = random.array<double>(shape);
        const std::vector<double> before = a.to_vector();
        const Array<double> copy = a, view_of_it = a.reshaped({static_cast<std::int64_t>(a.size())});
        const std::uint32_t first_version = detail::version_of(a);
        auto view = as_writable_xtensor(a);
        expect_shape(a, view);
        CHECK(detail::version_of(a) == first_version + 1);
        CHECK(view.data() == a.data());
        CHECK(a.storage() != copy.storage());
        const double* const address = a.data();
        view += 1;
        xt::noalias(view) = view * 2;
        view = xt::exp(view * 0) + view;
        CHECK(a.data() == address);
        for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(a.span()[i] == 1 + (before[i] + 1) * 2);
        CHECK(copy.to_vector() == before);
        CHECK(view_of_it.to_vector() == before);
        as_writable_xtensor(a) *= 0;  // not shared, so the write is in place
        CHECK(a.data() == address);
        CHECK(detail::version_of(a) == first_version + 2);
    }
}

TEST_CASE("as_writable_xtensor: a parameter changed between forward and backward throws an Error") {
    const Tensor w = parameter({1.0f, 2.0f}), x = parameter({3.0f, 4.0f});
    const Tensor loss = sum(w * x);
    w.modify_value([](Array<float>& value) { as_writable_xtensor(value) *= 2; });
    CHECK(w.value().to_vector() == std::vector<float>{2, 4});
    CHECK_THROWS_WITH(loss.backward(),
                      contains("'mul' saved version 0 of an array of (2), which is now at version"));
    const Array<float> kept = w.value();
    w.modify_value([](Array<float>& value) { as_writable_xtensor(value) += 1; });
    CHECK(kept.to_vector() == std::vector<float>{2, 4});
    CHECK(w.value().to_vector() == std::vector<float>{3, 5});
    CHECK(memory::detail::memory_class(w.value().storage()) == MemoryClass::parameter);
}

TEST_CASE("as_writable_xtensor: values saved for backward are not overwritten") {
    Array<float> numbers{1, 2};
    const Tensor x = numbers, w = parameter({3.0f, 4.0f});
    const Tensor loss = sum(x * w);
    as_writable_xtensor(numbers) = xt::zeros<float>({2});
    CHECK(numbers.to_vector() == std::vector<float>{0, 0});
    loss.backward();
    CHECK(w.grad().to_vector() == std::vector<float>{1, 2});
}

TEST_CASE("CheckRules: a writable view kept while a graph saves the array throws an Error") {
    const CheckRules check;
    Array<float> numbers{1, 2};
    auto kept = as_writable_xtensor(numbers);
    const Tensor w = parameter({3.0f, 4.0f});
    const Tensor loss = sum(Tensor(numbers) * w);
    kept += 1;
    CHECK_THROWS_WITH(loss.backward(), contains("'mul'"));
}

TEST_CASE("as_xtensor, array_of: arrays without memory and invalid shapes throw") {
    CHECK_THROWS_WITH(
        as_xtensor(Array<float>()),
        "[as_xtensor] an array of () has no memory: nothing was assigned to it, or it was freed "
        "or moved away");
    Array<float> a({2, 3}, {1, 2, 3, 4, 5, 6});
    const Array<float> taken = std::move(a);
    CHECK_THROWS_WITH(as_xtensor(a), contains("[as_xtensor] an array of (2, 3) has no memory"));  // NOLINT
    CHECK_THROWS_WITH(as_writable_xtensor(a),
                      contains("[as_writable_xtensor] an array of (2, 3) has no memory"));
    const std::size_t before = memory::in_use();
    CHECK_THROWS_WITH(array_of(xt::ones<float>({1, 2, 1, 2, 1, 2, 1})),
                      "[shape] more than 6 axes: (1, 2, 1, 2, 1, 2, 1)");
    CHECK_THROWS_AS(array_of(as_xtensor(taken) + xt::ones<float>({2})), xt::broadcast_error);
    Array<float> written = taken.clone();
    CHECK_THROWS_AS(as_writable_xtensor(written) = xt::ones<float>({3}), std::runtime_error);
    CHECK(same_bits(written, taken));
    memory::detail::fail_allocation(1);
    CHECK_THROWS_AS(array_of(as_xtensor(taken) * 2), OutOfMemory);
    memory::detail::fail_allocation(0);
    written = Array<float>();
    CHECK(memory::in_use() == before);
    CHECK(memory::detail::ref_count(taken.storage()) == 1);
}
