// Denominator: by what the gradients of a window are divided, and when.
#pragma once

#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/instances/core_ops.hpp"

namespace tally {

enum class Reduction { mean, sum };  // sum: nothing is divided

// What weighs the same: each thing that a loss counts (an item, a token), or each micro-batch
// whatever its size.
enum class Weigh { counted, micro_batches };

namespace detail {
// Each micro-batch contributes the gradient of its loss's sum, and its count. With a total that is announced
// each sum is divided by it before it goes backward; without one (0) the gradients are divided by what has
// been counted, once, at the end.
template <class S> class Denominator {
public:
    using V = Var<Array<S>>;

    Denominator(Reduction reduction, Weigh weigh, double total, Device device);

    // What a micro-batch contributes: its sum and its count, `weight` times.
    Loss<Array<S>> contribution(const Loss<Array<S>>& loss, double weight) const;
    // What each thing that the loss counts weighs in its share.
    double item_weight(const Loss<Array<S>>& loss, double weight) const;
    V divided(const V& sum) const;
    void count(const V& counted);
    const V& counted() const { return counted_; }
    void restart(V counted) { counted_ = std::move(counted); }

    bool announced() const { return total_ > 0; }
    bool reached(double counted) const;  // the total
    double tolerance() const;            // by how much a count may miss it
    void divide(const std::vector<V>& parameters, double counted) const;

private:
    Reduction reduction_;
    Weigh weigh_;
    double total_;
    V counted_;  // on the parameters' device, so that adding to it makes nobody wait
};

extern template class Denominator<float>;
extern template class Denominator<double>;
}  // namespace detail

}  // namespace tally
