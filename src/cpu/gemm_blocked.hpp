// multiply_in_blocks() multiplies large matrices, and adds in the order that kernels.hpp defines.
#pragma once

#include <cstddef>

#include "tally/kernels/into.hpp"

namespace tally::cpu {

// The element in row i and column j is at[i * row_stride + j * col_stride]. One stride is 1.
template <class S> struct Matrix {
    const S* at;
    std::size_t row_stride, col_stride;

    Matrix from(std::size_t i, std::size_t j) const {
        return {at + i * row_stride + j * col_stride, row_stride, col_stride};
    }
};

// Describes where a product is written. Sums begin with the numbers at `start`, or with -0 if it is null.
template <class S> struct Sums {
    S* at;
    std::size_t pitch;  // from row to row
    const S* start;     // or null
    std::size_t start_pitch;

    static Sums into(Into<S[]> c, std::size_t pitch) {
        return {c.dst, pitch, c.how == Write::set ? nullptr : c.dst, pitch};
    }
    Sums from(std::size_t i, std::size_t j) const {
        return {at + i * pitch + j, pitch, start ? start + i * start_pitch + j : nullptr, start_pitch};
    }
    Sums go_on() const { return {at, pitch, at, pitch}; }
};

// The memory of a thread for packed operands. The memory report includes this memory.
class Workspace {
public:
    Workspace() = default;
    ~Workspace();
    void allocate();  // unless it already has memory
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    // Packed `a` fits into an L2 cache of 512 KiB: 43 strips of 6 rows in float, or 16 in double, with their gaps.
    static constexpr std::size_t bytes_of_a = std::size_t{264} << 10, bytes_of_b = std::size_t{1} << 20,
                                 bytes = bytes_of_a + bytes_of_b;
    template <class S> S* a() const { return static_cast<S*>(memory_); }
    template <class S> S* b() const {
        return reinterpret_cast<S*>(static_cast<unsigned char*>(memory_) + bytes_of_a);
    }

private:
    void* memory_ = nullptr;
};

// Computes c (m, n) = c.start + a (m, k) · b (k, n). m, n and k must not be 0.
template <class S> void multiply_in_blocks(std::size_t m, std::size_t n, std::size_t k, Matrix<S> a,
                                           Matrix<S> b, Sums<S> c, const Workspace& workspace);

}  // namespace tally::cpu
