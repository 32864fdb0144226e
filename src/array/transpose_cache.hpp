// Matrices turned, and weights that are kept so while they are the same: dy · Wᵀ of few rows would else turn
// them each time.
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

// The copies come from the ledger; where memory is short, or has a budget, there are none.
template <class S> class TransposeCache {
public:
    // By the copy of b, if there is one; says whether. It is made when a weight has been used often enough: a window
    // may have few micro-batches.
    bool multiply(const Product& p, const Array<S>& a, const Array<S>& b, Into<S[]> c);
    void clear() { all_.clear(); }  // before weights step: who writes copies what others hold

private:
    struct Kept {
        Array<S> weight;  // held, so that no other one can come to lie where it lies
        std::uint32_t version;
        std::size_t rows;  // as a product read it, which may have been given another shape of it
        std::size_t uses = 0;
        Array<S> transposed_copy = {};
    };
    // Element (l, j) of the product's b lies there at l * n + j; null: there is no copy.
    const S* of(const Array<S>& b, const Product& p);
    std::vector<Kept> all_;
};

extern template Array<float> transposed(const Array<float>&);
extern template Array<double> transposed(const Array<double>&);
extern template class TransposeCache<float>;
extern template class TransposeCache<double>;

// Whom a product of this thread asks, inside UseTransposeCache.
template <class S> inline constinit thread_local TransposeCache<S>* transpose_cache = nullptr;

template <class S> struct UseTransposeCache : private ScopedValue<TransposeCache<S>*> {
    explicit UseTransposeCache(TransposeCache<S>& weights)
        : ScopedValue<TransposeCache<S>*>(transpose_cache<S>, &weights) {}
};

template <class S>
bool try_cached_transpose(const Product& p, const Array<S>& a, const Array<S>& b, Into<S[]> c) {
    if constexpr (std::is_floating_point_v<S>)
        if (p.transpose_b && transpose_cache<S>) [[unlikely]]
            return transpose_cache<S>->multiply(p, a, b, c);
    return false;
}

}  // namespace tally::detail
