// An `ExactGradients` sums gradients without rounding, for a `Window` with the option Sum::exact.
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
// An `ExactGradients` stores a sum for each parameter's gradient, and the sums of the losses and of their
// counts. Each backward() overwrites the gradients with the gradients of one micro-batch. The sums are in
// host memory, so the host waits for gradients on a device and copies the gradients.
template <class S> class ExactGradients {
public:
    using V = Var<Array<S>>;
    using Sums = std::vector<ExactSum<S>>;

    explicit ExactGradients(const std::vector<V>& parameters);

    void begin();          // clears the gradients, so that the next backward() overwrites them
    void add_gradients();  // adds the gradients since begin() to the sums
    void count(const V& loss, const V& counted);
    V loss() const { return total(0); }  // the sum so far, rounded once
    V counted() const { return total(1); }
    void round();  // writes each sum to its parameter's gradient; call inside UnlockScope
    void clear();

    // Returns the sums of the gradients, then the sum of the losses and the sum of the counts.
    Sums& sums() { return sums_; }

    void save(TrainingState& state, const std::string& prefix) const;
    // Reads the saved sums of `micro_batches` micro-batches. The caller assigns the result to sums().
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
