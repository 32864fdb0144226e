// The extents of an array: up to six axes, kept inline so that making one never allocates.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "autograd/max_rank.hpp"

namespace tally {

class Shape {
public:
    Shape() { words() = Words{0, 0, 0, 1 << 4}; }  // rank 0: one element, no axes
    Shape(const Shape& other) { words() = other.words(); }
    Shape& operator=(const Shape& other) {
        words() = other.words();
        return *this;
    }
    Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
    explicit Shape(std::span<const std::int64_t> extents);

    int rank() const { return static_cast<int>(size_and_rank_ & 15); }
    std::size_t size() const { return size_and_rank_ >> 4; }  // number of elements
    std::int64_t operator[](int axis) const { return extents_[axis]; }

    const std::int32_t* begin() const { return extents_; }
    const std::int32_t* end() const { return extents_ + rank(); }

    friend bool operator==(const Shape& a, const Shape& b) {
        const Words &x = a.words(), &y = b.words();
        return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) == 0;
    }

private:
    // Made, copied and compared as one vector: shapes are copied all the time, and a processor waits when it
    // reads at once what was just written in pieces. (Only a reference to Words may alias the members.)
    using Words [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = std::uint64_t;
    Words& words() { return *reinterpret_cast<Words*>(this); }
    const Words& words() const { return *reinterpret_cast<const Words*>(this); }

    std::int32_t extents_[max_rank];  // 0 where there is no axis
    std::uint64_t size_and_rank_;     // the rank in the last four bits
};
static_assert(sizeof(Shape) == 32 && std::endian::native == std::endian::little);

std::string to_string(const Shape& shape);  // "(6, 3)", "(4)", "()"

// The axis counted from the front; axis -1 is the last. Out of range is an error that names `op`.
int checked_axis(const char* op, std::int64_t axis, const Shape& shape);

// The shape that `a` and `b` broadcast to, by NumPy's rules; an error that names `op` when they cannot.
Shape broadcast(const char* op, const Shape& a, const Shape& b);

}  // namespace tally
