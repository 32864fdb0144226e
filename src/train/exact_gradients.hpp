// ExactGradients: what has come to a window of Sum::exact, added without rounding.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/array/exact_sum.hpp"
#include "tally/autograd/var.hpp"
#include "tally/io/training_state.hpp"

namespace tally {

class StateReader;

namespace detail {
// A sum for each parameter's gradient, one of the losses and one of what they count. The gradient's own place
// holds one micro-batch's at a time: the next one is set there, not added. The sums lie in the host's memory;
// what comes from a device is copied, and the host waits for it.
template <class S> class ExactGradients {
public:
    using V = Var<Array<S>>;
    using Sums = std::vector<ExactSum<S>>;

    explicit ExactGradients(const std::vector<V>& parameters);

    void begin();    // the parameters are untouched: what comes next is the first to arrive
    void take_in();  // what has arrived since
    void count(const V& loss, const V& counted);
    V loss() const { return total(0); }  // so far, rounded once
    V counted() const { return total(1); }
    void round();  // each sum becomes its parameter's gradient; inside UnlockScope
    void clear();

    // Those of the parameters, then that of the losses and that of the counts.
    Sums& sums() { return sums_; }

    void save(TrainingState& state, const std::string& under) const;
    // What was saved, of a window with so many micro-batches; then sums() can be exchanged for it.
    Sums read(StateReader& saved, std::int64_t micro_batches) const;

private:
    V total(std::size_t which) const;
    Sums empty_sums() const;

    const std::vector<V>& parameters_;
    Sums sums_;
};

extern template class ExactGradients<float>;
extern template class ExactGradients<double>;
}  // namespace detail
}  // namespace tally
