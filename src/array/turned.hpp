// Matrices turned, and weights that are kept so while they are the same: dy · Wᵀ of few rows would else turn
// them each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/base/meanwhile.hpp"
#include "tally/kernels/into.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::detail {

template <class S> Array<S> transposed(const Array<S>& matrix);

// The copies come from the ledger; where memory is short, or has a budget, there are none.
template <class S> class TurnedWeights {
public:
    // By the copy of b, if there is one; says whether. It is made when a weight has been used often enough: a window
    // may have few micro-batches.
    bool multiply(const Product& p, const Array<S>& a, const Array<S>& b, Into<S[]> c);
    void forget() { all_.clear(); }  // before weights step: who writes copies what others hold

private:
    struct Kept {
        Array<S> weight;  // held, so that no other one can come to lie where it lies
        std::uint32_t version;
        std::size_t rows;  // as a product read it, which may have been given another shape of it
        std::size_t uses = 0;
        Array<S> turned = {};
    };
    // Element (l, j) of the product's b lies there at l * n + j; null: there is no copy.
    const S* of(const Array<S>& b, const Product& p);
    std::vector<Kept> all_;
};

extern template Array<float> transposed(const Array<float>&);
extern template Array<double> transposed(const Array<double>&);
extern template class TurnedWeights<float>;
extern template class TurnedWeights<double>;

// Whom a product of this thread asks, inside Turning.
template <class S> inline constinit thread_local TurnedWeights<S>* turned_weights = nullptr;

template <class S> struct Turning : private Meanwhile<TurnedWeights<S>*> {
    explicit Turning(TurnedWeights<S>& weights) : Meanwhile<TurnedWeights<S>*>(turned_weights<S>, &weights) {}
};

template <class S>
bool multiplied_turned(const Product& p, const Array<S>& a, const Array<S>& b, Into<S[]> c) {
    if constexpr (std::is_floating_point_v<S>)
        if (p.transpose_b && turned_weights<S>) [[unlikely]]
            return turned_weights<S>->multiply(p, a, b, c);
    return false;
}

}  // namespace tally::detail
