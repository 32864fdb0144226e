// The extents of an array: up to six axes, kept inline so that making one never allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "autograd/max_rank.hpp"

namespace tally {

class Shape {
public:
    Shape() = default;  // rank 0: one element, no axes
    // Not defaulted: so a shape is passed in memory, whatever instructions caller and library were compiled
    // for.
    Shape(const Shape& other) : words_(other.words_) {}
    Shape& operator=(const Shape& other) {
        words_ = other.words_;
        return *this;
    }
    Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
    explicit Shape(std::span<const std::int64_t> extents);

    int rank() const { return static_cast<int>(words_[3] & 15); }
    std::size_t size() const { return words_[3] >> 4; }  // number of elements
    std::int64_t operator[](int axis) const { return begin()[axis]; }

    const std::int32_t* begin() const { return reinterpret_cast<const std::int32_t*>(&words_); }
    const std::int32_t* end() const { return begin() + rank(); }

    friend bool operator==(const Shape& a, const Shape& b) {
        const Words& x = a.words_;
        const Words& y = b.words_;
        return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) == 0;
    }

private:
    // Six extents (0 where there is no axis), then the size and, in four bits, the rank. One vector, because
    // shapes are copied all the time, and a processor waits when it reads at once what was just written in
    // pieces.
    using Words [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = std::uint64_t;
    Words words_{0, 0, 0, 1 << 4};
};

std::string to_string(const Shape& shape);  // "(6, 3)", "(4)", "()"

// The axis counted from the front; axis -1 is the last. Out of range is an error that names `op`.
int checked_axis(const char* op, std::int64_t axis, const Shape& shape);

// The shape that `a` and `b` broadcast to, by NumPy's rules; an error that names `op` when they cannot.
Shape broadcast(const char* op, const Shape& a, const Shape& b);

}  // namespace tally
