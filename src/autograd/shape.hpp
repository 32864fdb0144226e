// The extents of an array: up to six axes, kept inline so that making one never allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace tally {

inline constexpr int max_rank = 6;

class Shape {
public:
    Shape() = default;  // rank 0: one element, no axes
    Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
    explicit Shape(std::span<const std::int64_t> extents);

    int rank() const { return rank_; }
    std::size_t size() const {  // number of elements
        std::size_t product = 1;
        for (int axis = 0; axis < rank_; ++axis)
            product *= static_cast<std::size_t>(extents_[static_cast<std::size_t>(axis)]);
        return product;
    }
    std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }

    const std::int32_t* begin() const { return extents_.data(); }
    const std::int32_t* end() const { return extents_.data() + rank_; }

    friend bool operator==(const Shape& a, const Shape& b) {
        if (a.rank_ != b.rank_) return false;
        for (std::size_t i = 0; i < static_cast<std::size_t>(a.rank_); ++i)
            if (a.extents_[i] != b.extents_[i]) return false;
        return true;
    }

private:
    std::array<std::int32_t, max_rank> extents_{};  // small, because shapes are copied all the time
    std::int32_t rank_ = 0;
};

std::string to_string(const Shape& shape);  // "(6, 3)", "(4)", "()"

// The axis counted from the front; axis -1 is the last. Out of range is an error that names `op`.
int checked_axis(const char* op, std::int64_t axis, const Shape& shape);

// The shape that `a` and `b` broadcast to, by NumPy's rules; an error that names `op` when they cannot.
Shape broadcast(const char* op, const Shape& a, const Shape& b);

}  // namespace tally
