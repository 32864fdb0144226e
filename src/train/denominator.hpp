// The class `Denominator` counts the loss terms of an update, and divides the gradients by this count.
#pragma once

#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/instances/core_ops.hpp"

namespace tally {

enum class Reduction { mean, sum };  // with `sum` gradients are not divided

// The option `Weigh` gives equal weights to all counted terms of losses (items, tokens), or to micro-batches.
enum class Weigh { counted, micro_batches };

namespace detail {
// Each micro-batch contributes its count and the gradient of its summed loss. If the caller passes the total
// count in advance, each summed loss is divided by the total before backward(). If the total is 0, divide()
// divides the gradients by the sum of all counts.
template <class S> class Denominator {
public:
    using V = Var<Array<S>>;

    Denominator(Reduction reduction, Weigh weigh, double total, Device device);

    // Returns the loss sum and the count of a micro-batch, both multiplied by `weight`.
    Loss<Array<S>> contribution(const Loss<Array<S>>& loss, double weight) const;
    // Returns the weight of each counted term in a micro-batch.
    double item_weight(const Loss<Array<S>>& loss, double weight) const;
    V divided(const V& sum) const;
    void count(const V& counted);
    const V& counted() const { return counted_; }
    void restart(V counted) { counted_ = std::move(counted); }

    bool announced() const { return total_ > 0; }
    bool reached(double counted) const;  // whether the count equals the total within the tolerance
    double tolerance() const;            // permitted rounding error of the count
    void divide(const std::vector<V>& parameters, double counted) const;

private:
    Reduction reduction_;
    Weigh weigh_;
    double total_;
    V counted_;  // on the parameters' device, so that additions do not make the host wait
};

extern template class Denominator<float>;
extern template class Denominator<double>;
}  // namespace detail

}  // namespace tally
