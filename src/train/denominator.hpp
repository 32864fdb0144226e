// The class Denominator counts the terms of a window's losses. divide() divides the gradients by this count.
#pragma once

#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/instances/core_ops.hpp"

namespace tally {

enum class Reduction { mean, sum };  // with `sum` gradients are not divided

// The option Weigh gives equal weights to the counted terms (items, tokens) of losses, or to micro-batches.
enum class Weigh { counted, micro_batches };

namespace detail {
// Each micro-batch contributes its count and the gradient of its summed loss. If the caller announces the
// total count, each summed loss is divided by the total before backward(). If the total is 0, divide()
// divides the gradients by the sum of the counts at the end.
template <class S> class Denominator {
public:
    using V = Var<Array<S>>;

    Denominator(Reduction reduction, Weigh weigh, double total, Device device);

    // Returns the sum and the count that a micro-batch contributes, both multiplied by `weight`.
    Loss<Array<S>> contribution(const Loss<Array<S>>& loss, double weight) const;
    // Returns the weight of each counted term in this contribution.
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
