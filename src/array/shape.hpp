// A Shape is the list of the extents of an array.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>

#include "tally/kernels/max_rank.hpp"

namespace tally {

// A Shape stores the extents of up to six axes inline, so that no Shape allocates memory.
class Shape {
public:
    Shape() : Shape(0, 0, 0, 1 << 4) {}  // rank 0: one element, no axes
    Shape(const Shape& other) { whole().words = other.whole().words; }
    Shape& operator=(const Shape& other) {
        whole().words = other.whole().words;
        return *this;
    }
    Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
    explicit Shape(std::span<const std::int64_t> extents);
    Shape along(std::int64_t axis) const {  // the shape of a vector with the extent of the axis
        const auto extent = static_cast<std::uint64_t>((*this)[axis]);
        return Shape(extent, 0, 0, extent << 4 | 1);
    }
    Shape with_rows(std::int64_t rows) const;  // with `rows` as the first extent, which must not grow

    int rank() const { return static_cast<int>(size_and_rank_ & 15); }
    std::size_t size() const { return size_and_rank_ >> 4; }  // number of elements
    std::int64_t operator[](std::int64_t axis) const {        // -1 is the last
        if (static_cast<std::uint64_t>(axis) >= (size_and_rank_ & 15)) [[unlikely]]
            axis = axis_from_the_end(axis);
        return extents_[axis];
    }

    const std::int32_t* begin() const { return extents_; }
    const std::int32_t* end() const { return extents_ + rank(); }

    friend bool operator==(const Shape& a, const Shape& b) {
#ifdef __AVX__  // 4 instructions; compilers generate 15 for memcmp(), and shapes are compared often
        using Signed [[gnu::vector_size(32)]] = long long;
        const auto differs = reinterpret_cast<Signed>(a.whole().words ^ b.whole().words);
        return __builtin_ia32_ptestz256(differs, differs);
#else
        return std::memcmp(&a, &b, sizeof a) == 0;
#endif
    }

private:
    [[gnu::cold]] std::int64_t axis_from_the_end(std::int64_t axis) const;
    // Copies access a shape as a whole, because a load right after several smaller stores would stall.
    using Words [[gnu::vector_size(32)]] = std::uint64_t;
    struct [[gnu::packed, gnu::may_alias]] Whole {  // without the alignment of Words
        Words words;
    };
    const Whole& whole() const { return reinterpret_cast<const Whole&>(*this); }
    Whole& whole() { return reinterpret_cast<Whole&>(*this); }
    Shape(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
        whole().words = Words{a, b, c, d};
    }

    std::int32_t extents_[detail::max_rank];  // unused ones are 0
    std::uint64_t size_and_rank_;             // the rank is in the lowest four bits
};
static_assert(sizeof(Shape) == 32 && std::endian::native == std::endian::little);

std::string to_string(const Shape& shape);  // "(6, 3)", "(4)", "()"
std::ostream& operator<<(std::ostream& out, const Shape& shape);
namespace detail {
std::string to_text(std::span<const std::int64_t> extents);  // also for extents that no Shape can have

// Returns the index of an axis, where axis -1 is the last axis. Throws Error if the axis does not exist.
int checked_axis(const char* op, std::int64_t axis, const Shape& shape);

// Returns whether `a` and `b` broadcast by NumPy's rules, and sets `together` to their common shape.
bool broadcasts(const Shape& a, const Shape& b, Shape& together);
Shape broadcast(const char* op, const Shape& a, const Shape& b);  // returns the common shape or throws

// The arguments of fail_gradient_shape() are descriptions that describe() returns.
[[noreturn]] void fail_gradient_shape(const std::string& value, const std::string& gradient);
}  // namespace detail

}  // namespace tally
