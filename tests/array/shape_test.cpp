// Tests the size, the printed form and the errors of a Shape. Also tests negative axes and broadcasting.
#include "tally/array/shape.hpp"

#include <limits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/base/error.hpp"

using namespace tally;

namespace {

constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

[[gnu::noinline]] std::int64_t first_then_replaced(Shape& a, const Shape& b) {
    const std::int64_t before = a[0];
    a = b;
    return before * 1000 + a[0];
}
[[gnu::noinline]] std::int64_t first_then_moved(Array<float>& x, Array<float>&& y) {
    const std::int64_t before = x.shape()[0];
    x = std::move(y);
    return before * 1000 + x.shape()[0];
}

}  // namespace

TEST_CASE("Shape: an assignment replaces the extents even when the old ones have just been read") {
    Shape a{7, 2};
    CHECK(first_then_replaced(a, Shape{9}) == 7009);
    Array<float> x = Array<float>::zeros({7, 2});
    CHECK(first_then_moved(x, Array<float>::zeros({9})) == 7009);
    std::vector<Shape> shapes{{1}, {2}, {3}};
    std::int64_t sum = 0;
    for (int i = 0; i < 3; ++i) {
        sum += shapes[0][0];
        shapes[0] = Shape(shapes[1]);
        shapes[1] = shapes[2];
    }
    CHECK(sum == 1 + 2 + 3);
}

TEST_CASE("Shape: a shape may be at an address that is not a multiple of 32") {
    alignas(32) std::byte room[8 + sizeof(Shape)];
    auto* const shape = new (room + 8) Shape{2, 3};
    const Shape copy = *shape;
    *shape = Shape{5};
    CHECK(copy == Shape{2, 3});
    CHECK(*shape == Shape{5});
}

TEST_CASE("Shape: along() returns the shape of a vector") {
    const Shape shape{2, 3, 0};
    CHECK(shape.along(0) == Shape{2});
    CHECK(shape.along(-2) == Shape{3});
    CHECK(shape.along(2) == Shape{0});
    CHECK_THROWS_AS(shape.along(3), Error);
}

TEST_CASE("Shape: has rank, extents and size") {
    const Shape matrix{6, 3};
    CHECK(matrix.rank() == 2);
    CHECK(matrix.size() == 18);
    CHECK(matrix[0] == 6);
    CHECK(matrix[1] == 3);
    CHECK(std::vector<std::int64_t>(matrix.begin(), matrix.end()) == std::vector<std::int64_t>{6, 3});
    CHECK(Shape{}.rank() == 0);
    CHECK(Shape{}.size() == 1);
    CHECK(Shape{4, 0, 2}.size() == 0);
    CHECK(Shape{1, 2, 3, 4, 5, 6}.size() == 720);
}

TEST_CASE("Shape: shapes are equal when ranks and extents are equal") {
    CHECK(Shape{2, 3} == Shape{2, 3});
    CHECK_FALSE(Shape{2, 3} == Shape{3, 2});
    CHECK_FALSE(Shape{2} == Shape{2, 1});
    CHECK_FALSE(Shape{} == Shape{0});
    CHECK_FALSE(Shape{2} == Shape{2, 0});
}

TEST_CASE("to_string: prints a shape") {
    CHECK(to_string(Shape{6, 3}) == "(6, 3)");
    CHECK(to_string(Shape{4}) == "(4)");
    CHECK(to_string(Shape{}) == "()");
    CHECK(to_string(Shape{0, 1}) == "(0, 1)");
}

TEST_CASE("Shape: throws Error with the extents when a shape is impossible") {
    CHECK_THROWS_WITH((Shape{3, -1}), "[shape] negative extent: (3, -1)");
    CHECK_THROWS_WITH((Shape{0, -1}), "[shape] negative extent: (0, -1)");
    CHECK_THROWS_WITH((Shape{1, 2, 3, 4, 5, 6, 7}), "[shape] more than 6 axes: (1, 2, 3, 4, 5, 6, 7)");
    CHECK_THROWS_WITH(Shape{2147483648},
                      "[shape] an axis is too long: (2147483648); the limit is 2147483647");
    CHECK_THROWS_AS((Shape{huge, 0}), Error);
    // A shape may have at most 2^59 - 1 elements, so that sizes in bytes do not overflow. The limit ignores
    // axes of extent 0.
    CHECK_NOTHROW(Shape{1 << 30, 1 << 28});
    CHECK_THROWS_WITH((Shape{1 << 30, 1 << 29}),
                      test::contains("[shape] too many elements: (1073741824, 536870912)"));
    CHECK_THROWS_WITH((Shape{1 << 30, 0, 1 << 30}),
                      test::contains("too many elements: (1073741824, 0, 1073741824)"));
}

TEST_CASE("Shape: axes count from both ends") {
    const Shape shape{2, 3, 4};
    CHECK(detail::checked_axis("sum", 0, shape) == 0);
    CHECK(detail::checked_axis("sum", 2, shape) == 2);
    CHECK(detail::checked_axis("sum", -1, shape) == 2);
    CHECK(detail::checked_axis("sum", -3, shape) == 0);
    CHECK_THROWS_WITH(detail::checked_axis("sum", 3, shape),
                      "[sum] axis 3 is out of range for (2, 3, 4): valid are -3 to 2");
    CHECK_THROWS_WITH(detail::checked_axis("max", -4, shape),
                      "[max] axis -4 is out of range for (2, 3, 4): valid are -3 to 2");
    CHECK_THROWS_WITH(detail::checked_axis("sum", 0, Shape{}),
                      "[sum] axis 0 is out of range for (): it has no axes");
    CHECK_THROWS_AS(detail::checked_axis("sum", (std::int64_t{1} << 32), shape),
                    Error);  // the extent must not be truncated to 0
}

TEST_CASE("Shape: broadcasting follows NumPy") {
    CHECK(detail::broadcast("add", Shape{3, 2}, Shape{3, 2}) == Shape{3, 2});
    CHECK(detail::broadcast("add", Shape{3, 2}, Shape{2}) == Shape{3, 2});
    CHECK(detail::broadcast("add", Shape{2}, Shape{3, 2}) == Shape{3, 2});
    CHECK(detail::broadcast("add", Shape{3, 1}, Shape{1, 4}) == Shape{3, 4});
    CHECK(detail::broadcast("add", Shape{}, Shape{5, 1}) == Shape{5, 1});
    CHECK(detail::broadcast("add", Shape{8, 1, 6, 1}, Shape{7, 1, 5}) == Shape{8, 7, 6, 5});
    CHECK(detail::broadcast("add", Shape{0, 3}, Shape{1, 3}) == Shape{0, 3});
    CHECK(detail::broadcast("add", Shape{1}, Shape{0}) == Shape{0});
    CHECK_THROWS_WITH(detail::broadcast("add", Shape{3, 2}, Shape{4}),
                      "[add] cannot broadcast (3, 2) with (4)");
    CHECK_THROWS_WITH(detail::broadcast("mul", Shape{0}, Shape{2}), "[mul] cannot broadcast (0) with (2)");
    CHECK_THROWS_WITH(detail::broadcast("add", Shape{1 << 30, 1}, Shape{1, 1 << 30}),
                      test::contains("too many elements: (1073741824, 1073741824)"));
}
