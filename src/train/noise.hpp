// Noise estimates the variance of single items' gradients from the norms of two gradients of each window.
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
// A mean gradient of b items has the expected square |G|^2 + tr(Sigma)/b, so the squares for two numbers of
// items determine both terms (docs/mathematics.md, 8). The estimate of each window is unbiased and has a
// large variance. Ratios of such estimates are biased, so these calls sum over many windows and then divide.
struct Noise {
    std::int64_t windows = 0;  // number of windows with an estimate
    // Number of windows without an estimate, because the first micro-batch was all that counted, or had no
    // more variance than the whole.
    std::int64_t without = 0;
    double traces = 0, squares = 0;  // sums over the windows

    double trace() const;   // tr(Sigma): the variance of one item's gradient, summed over its elements
    double square() const;  // |G|^2, the squared norm of the expected gradient; below 0 if noise dominates
    // trace / square: the number of items for which the noise is as long as the gradient. Empty if the square
    // is not above 0; then more or larger windows are needed.
    std::optional<double> scale() const;

    Noise& operator+=(const Noise& more);
};

[[noreturn]] void throw_noise_not_estimated();  // Window::Options::noise is false

// Collects a window's sums. With weights w, sum(w^2) / sum(w)^2 replaces the factor 1/b of the variance.
template <class S> class NoiseScaleEstimator {
public:
    using V = Var<Array<S>>;

    // `total` is the announced denominator, or 0. `zero` is on the parameters' device.
    NoiseScaleEstimator(const std::vector<V>& parameters, double total, V zero);

    // Adds a micro-batch: its count, the weight of each item, and the count of all micro-batches so far.
    void add(const V& counted, double each, const V& so_far);
    void add_to(WindowTotals& here) const;
    // Sets the norm of the window's gradient before clipping. Only the first call has an effect.
    void set_norm(double norm);
    // Estimates the noise of this window after its update; `divided` is true if the gradient is a mean.
    Noise estimate(const WindowTotals& all, bool divided);
    const Noise& noise() const { return noise_; }
    void restart();  // begins the next window
    [[noreturn]] void throw_measured()
        const;  // throws at a further part of a micro-batch that has been measured

    void save(TrainingState& state, const std::string& prefix) const;
    struct Saved {
        Noise noise;
        NoiseParts first;
        V squares;
    };
    // Reads the state of a window with `micro_batches` micro-batches, which may have no estimate.
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
