// Noise: how far the gradients of single items scatter, estimated from the norms of two gradients that a window has anyway.
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

// A mean gradient of b items has the expected square |G|^2 + tr(Sigma)/b, so the squares for two numbers of
// items tell both terms (docs/mathematics.md, 8). Each window gives an estimate that is rough and not biased. A
// ratio of two such is biased: sum first, over many windows, and divide then, as these calls do.
struct Noise {
    std::int64_t windows = 0;  // that gave an estimate
    std::int64_t without =
        0;  // that could give none: the first micro-batch was all that counted, or no noisier than all
    double traces = 0, squares = 0;  // sums over the windows

    double trace() const;   // tr(Sigma): the variance of one item's gradient, all its elements together
    double square() const;  // |G|^2, of what every batch estimates. Where noise hides it, it may be below 0
    // trace / square: of so many items the noise is as long as the gradient. None while the square is not
    // above 0: more windows are needed, or larger ones.
    std::optional<double> scale() const;

    Noise& operator+=(const Noise& more);
};

namespace detail {
[[noreturn]] void throw_noise_not_estimated();  // it was not asked for

// What a window measures for it. Where items weigh w, b of them shrink the variance as 1/b would by their
// share, sum(w^2) / sum(w)^2.
template <class S> class NoiseScaleEstimator {
public:
    using V = Var<Array<S>>;

    // `total`: by what gradients are divided as they come, or 0. `zero`: on the parameters' device.
    NoiseScaleEstimator(const std::vector<V>& parameters, double total, V zero);

    // A micro-batch has come, each item of which weighs so much: what it counts, and what all count so far.
    void take_in(const V& counted, double each, const V& so_far);
    void report_to(WindowTotals& here) const;
    // How long the window's gradient is, as it will be stepped. Only the first call counts.
    void set_norm(double norm);
    // Of this window, whose update has been made, from what all have told; `divided`: its gradient is a mean.
    Noise estimate(const WindowTotals& all, bool divided);
    const Noise& noise() const { return noise_; }
    void restart();                         // the next window
    [[noreturn]] void refuse_rest() const;  // of a micro-batch whose gradient has been measured

    void save(TrainingState& state, const std::string& under) const;
    struct Saved {
        Noise noise;
        NoiseParts first;
        V squares;
    };
    // What was saved, of a window with so many micro-batches. One that did not measure gives no estimate.
    Saved read(StateReader& saved, std::int64_t micro_batches) const;
    void take(Saved saved);

private:
    const std::vector<V>& parameters_;
    double total_;
    V zero_, squares_;  // sum(w^2), where the parameters are, so that adding to it makes nobody wait
    NoiseParts first_;
    std::optional<double> norm_;
    Noise noise_;
};

extern template class NoiseScaleEstimator<float>;
extern template class NoiseScaleEstimator<double>;
}  // namespace detail
}  // namespace tally
