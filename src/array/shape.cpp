#include "tally/array/shape.hpp"

#include <algorithm>
#include <limits>
#include <ostream>
#include <vector>

#include "tally/base/error.hpp"

namespace tally {
namespace {

// The size of an array in bytes must fit into std::ptrdiff_t. An element has up to 16 bytes (Dual<double>).
constexpr std::size_t max_elements = std::numeric_limits<std::ptrdiff_t>::max() / 16;

[[noreturn]] void fail_extent(std::span<const std::int64_t> extents, std::int64_t extent) {
    if (extent < 0) throw Error("[shape] negative extent: " + detail::to_text(extents));
    throw Error("[shape] an axis is too long: " + detail::to_text(extents) + "; the limit is " +
                std::to_string(std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

std::string detail::to_text(std::span<const std::int64_t> extents) {
    constexpr std::size_t shown = 2 * detail::max_rank;
    std::string text = "(";
    for (const std::int64_t extent : extents.first(std::min(extents.size(), shown))) {
        if (text.size() > 1) text += ", ";
        text += std::to_string(extent);
    }
    if (extents.size() > shown) text += ", ... " + std::to_string(extents.size()) + " in all";
    return text + ")";
}

Shape::Shape(std::span<const std::int64_t> extents) {
    if (extents.size() > static_cast<std::size_t>(detail::max_rank)) {
        throw Error("[shape] more than " + std::to_string(detail::max_rank) +
                    " axes: " + detail::to_text(extents));
    }
    std::uint64_t pairs[3] = {}, size = 1;
    std::size_t product = 1;  // without extents of 0, so that huge extents next to a 0 throw, too
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
        const auto extent = static_cast<std::uint64_t>(extents[axis]);
        if (extent > std::numeric_limits<std::int32_t>::max()) fail_extent(extents, extents[axis]);
        if (extent > 0 && (__builtin_mul_overflow(product, extent, &product) || product > max_elements))
            throw Error("[shape] too many elements: " + detail::to_text(extents) + "; the limit is " +
                        std::to_string(max_elements));
        pairs[axis / 2] |= extent << axis % 2 * 32;
        size *= extent;
    }
    *this = Shape(pairs[0], pairs[1], pairs[2], size << 4 | extents.size());
}

std::int64_t Shape::axis_from_the_end(std::int64_t axis) const {
    return detail::checked_axis("shape", axis, *this);
}

Shape Shape::with_rows(std::int64_t rows) const {
    std::uint64_t words[4], size = static_cast<std::uint64_t>(rows);
    std::memcpy(words, static_cast<const void*>(this), sizeof words);
    for (int axis = 1; axis < rank(); ++axis) size *= static_cast<std::uint64_t>(extents_[axis]);
    return Shape(words[0] >> 32 << 32 | static_cast<std::uint64_t>(rows), words[1], words[2],
                 size << 4 | static_cast<std::uint64_t>(rank()));
}

std::string to_string(const Shape& shape) {
    return detail::to_text(std::vector<std::int64_t>(shape.begin(), shape.end()));
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }

namespace detail {
int checked_axis(const char* op, std::int64_t axis, const Shape& shape) {
    const int rank = shape.rank();
    if (axis < -rank || axis >= rank) {
        const std::string valid =
            rank == 0 ? "it has no axes"
                      : "valid are " + std::to_string(-rank) + " to " + std::to_string(rank - 1);
        throw Error("[" + std::string(op) + "] axis " + std::to_string(axis) + " is out of range for " +
                    to_string(shape) + ": " + valid);
    }
    return static_cast<int>(axis < 0 ? axis + rank : axis);
}

bool broadcasts(const Shape& a, const Shape& b, Shape& together) {
    const int rank = std::max(a.rank(), b.rank());
    std::array<std::int64_t, max_rank> extents{};
    for (int axis = 0; axis < rank; ++axis) {  // a missing leading axis counts as 1
        const int axis_a = axis - (rank - a.rank()), axis_b = axis - (rank - b.rank());
        const std::int64_t extent_a = axis_a < 0 ? 1 : a.begin()[axis_a],
                           extent_b = axis_b < 0 ? 1 : b.begin()[axis_b];
        if (extent_a != extent_b && extent_a != 1 && extent_b != 1) return false;
        extents[static_cast<std::size_t>(axis)] = extent_a == 1 ? extent_b : extent_a;
    }
    together = Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(rank)));
    return true;
}

Shape broadcast(const char* op, const Shape& a, const Shape& b) {
    if (a == b) return a;
    Shape together;
    if (!broadcasts(a, b, together))
        throw Error("[" + std::string(op) + "] cannot broadcast " + to_string(a) + " with " + to_string(b));
    return together;
}

void fail_gradient_shape(const std::string& value, const std::string& gradient) {
    throw Error("[gradient] a gradient must have the shape and device of its value; the value has " + value +
                ", the gradient has " + gradient);
}
}  // namespace detail

}  // namespace tally
