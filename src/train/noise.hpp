// The class `Noise` estimates the variance of single items' gradients from two gradient norms per update.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/var.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train/clip.hpp"
#include "tally/train/gradient_reducer.hpp"

namespace tally {

class StateReader;

namespace detail {
// The mean gradient of b items has the expected squared norm |G|^2 + tr(Sigma)/b. The norms for two values of
// b determine both terms (docs/mathematics.md, 8). One update's estimate is unbiased but has a large
// variance. A ratio of single estimates is biased, so `Noise` divides sums over many updates.
struct Noise {
    std::int64_t windows = 0;  // number of windows with an estimate
    // The number of updates without an estimate. An update has no estimate if only one micro-batch had a
    // count, or if the first micro-batch's gradient has at most as much expected noise as the whole gradient.
    std::int64_t without = 0;
    double traces = 0, squares = 0;  // sums over the windows

    double trace() const;   // tr(Sigma): the variances of the elements of one item's gradient, summed
    double square() const;  // |G|^2, the squared norm of the expected gradient; below 0 if noise dominates
    // Returns trace() / square(), the batch size at which the mean gradient has as much noise as signal.
    // Returns nothing if square() is not above 0. An estimate then needs more updates or larger updates.
    std::optional<double> scale() const;

    Noise& operator+=(const Noise& more);
};

[[noreturn]] void throw_noise_not_estimated();  // Window::Options::noise is false

// A `NoiseScaleEstimator` collects sums for one update. For weights w, sum(w^2) / sum(w)^2 replaces 1/b.
template <class S> class NoiseScaleEstimator {
public:
    using V = Var<Array<S>>;

    // `total` is the total count, or 0 if unknown in advance. `zero` is a 0 on the parameters' device.
    NoiseScaleEstimator(const std::vector<V>& parameters, double total, V zero);

    // Adds a micro-batch of count `counted` and item weight `each`. `so_far` is the count up to now.
    void add(const V& counted, double each, const V& so_far);
    void add_to(WindowTotals& here) const;
    // Sets the norm of the gradient before clipping. Later calls do nothing.
    void set_norm(double norm);
    // Returns the noise estimate of this update. `divided` is true if the gradient is a mean and not a sum.
    Noise estimate(const WindowTotals& all, bool divided);
    const Noise& noise() const { return noise_; }
    void restart();                                               // begins the next window
    [[noreturn]] void throw_noise_needs_single_backward() const;  // for a second backward() of a micro-batch

    void save(TrainingState& state, const std::string& prefix) const;
    struct Saved {
        Noise noise;
        NoiseParts first;
        V squares;
    };
    // Reads the state of an update with `micro_batches` micro-batches, which may lack an estimate.
    Saved read(StateReader& saved, std::int64_t micro_batches) const;
    void take(Saved saved);

private:
    const std::vector<V>& parameters_;
    double total_;
    V zero_, squares_;  // squares_ is sum(w^2), on the parameters' device
    NoiseParts first_;
    std::optional<double> norm_;
    Noise noise_;
};

extern template class NoiseScaleEstimator<float>;
extern template class NoiseScaleEstimator<double>;
}  // namespace detail
}  // namespace tally
