// A TransposeCache stores transposed weights, so that a product dy · Wᵀ with few rows need not transpose W.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/base/scoped_value.hpp"
#include "tally/kernels/into.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::detail {

template <class S> Array<S> transposed(const Array<S>& matrix);

// A TransposeCache makes no copies if a budget limits the memory, or if memory runs out.
template <class S> class TransposeCache {
public:
    // If b has a transposed copy, multiplies by the copy and returns true. The cache copies b only after
    // several uses, because the copy would not pay in a Window with few micro-batches.
    bool multiply(const Product& p, const Array<S>& a, const Array<S>& b, Into<S[]> c);
    // Call this before an optimizer's step: the step copies shared buffers, and entries share the weights' buffers.
    void clear() { entries_.clear(); }

private:
    struct Entry {
        Array<S> weight;  // shares the buffer, so that no other array gets the same address
        std::uint32_t version;
        std::size_t rows;  // of the matrix in the product; the weight may have another shape
        std::size_t uses = 0;
        Array<S> transposed_copy = {};
    };
    // Returns a row-major copy (k, n) of b, which is stored as (n, k), or null if b has no copy yet.
    const S* find_or_add(const Array<S>& b, const Product& p);
    std::vector<Entry> entries_;
};

extern template Array<float> transposed(const Array<float>&);
extern template Array<double> transposed(const Array<double>&);
extern template class TransposeCache<float>;
extern template class TransposeCache<double>;

// The cache that products of this thread use inside a UseTransposeCache scope.
template <class S> inline constinit thread_local TransposeCache<S>* transpose_cache = nullptr;

template <class S> struct UseTransposeCache : private ScopedValue<TransposeCache<S>*> {
    explicit UseTransposeCache(TransposeCache<S>& cache)
        : ScopedValue<TransposeCache<S>*>(transpose_cache<S>, &cache) {}
};

template <class S>
bool try_multiply_by_cached_transpose(const Product& p, const Array<S>& a, const Array<S>& b, Into<S[]> c) {
    if constexpr (std::is_floating_point_v<S>)
        if (p.transpose_b && transpose_cache<S>) [[unlikely]]
            return transpose_cache<S>->multiply(p, a, b, c);
    return false;
}

}  // namespace tally::detail
