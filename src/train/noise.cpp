// Implements Noise: collects sums of a window, and solves two equations for trace and square.
#include "tally/train/noise.hpp"

#include <cmath>
#include <limits>

#include "tally/autograd/ops/elementwise.hpp"
#include "tally/train/state_reader.hpp"

namespace tally {

namespace {

void require_some(const detail::Noise& noise, const char* what) {
    if (noise.windows > 0) return;
    throw Error(
        std::string("[noise] ") + what + ": no window has given an estimate yet" +
        (noise.without > 0
             ? "; " + std::to_string(noise.without) + (noise.without == 1 ? " has" : " have") +
                   " been updated from one micro-batch alone, or from a first one that is not noisier "
                   "than the window; use smaller micro-batches, more in each window, and the smallest first"
             : ""));
}

}  // namespace

double detail::Noise::trace() const {
    require_some(*this, "trace");
    return traces / static_cast<double>(windows);
}

double detail::Noise::square() const {
    require_some(*this, "square");
    return squares / static_cast<double>(windows);
}

std::optional<double> detail::Noise::scale() const {
    require_some(*this, "scale");
    return squares > 0 ? std::optional(traces / squares) : std::nullopt;
}

detail::Noise& detail::Noise::operator+=(const Noise& more) {
    windows += more.windows;
    without += more.without;
    traces += more.traces;
    squares += more.squares;
    return *this;
}

detail::NoiseParts& detail::NoiseParts::operator+=(const detail::NoiseParts& more) {
    firsts += more.firsts;
    squares += more.squares;
    shares += more.shares;
    squared_weights += more.squared_weights;
    return *this;
}

namespace detail {
template <class S>
NoiseScaleEstimator<S>::NoiseScaleEstimator(const std::vector<V>& parameters, double total, V zero)
    : parameters_(parameters), total_(total), zero_(std::move(zero)), squares_(zero_) {}

template <class S> void NoiseScaleEstimator<S>::restart() {
    ++zero_.node()->handles;  // does not check the thread, because another thread may discard a window
    squares_ = V(zero_.node());
    first_ = {};
    norm_.reset();
}

// The estimate compares the gradient of one micro-batch, the first that is not empty, with the whole gradient.
template <class S> void NoiseScaleEstimator<S>::add(const V& counted, double each, const V& so_far) {
    const NoGrad off;
    squares_ = squares_ + (each == 1 ? counted : counted * each);
    if (first_.firsts > 0) return;
    const auto count = static_cast<double>(so_far.item());
    const double length = detail::grad_norm(parameters_) * (total_ > 0 ? total_ : 1) / count;
    // Without items, the norm is divided by 0. A window whose norm is infinite cannot step, but can be saved.
    if (!std::isfinite(length * length)) return;
    first_ = {.firsts = 1,
              .squares = length * length,
              .shares = static_cast<double>(squares_.item()) / (count * count)};
}

template <class S> void NoiseScaleEstimator<S>::add_to(WindowTotals& here) const {
    here.noise = first_;
    here.noise.squared_weights = static_cast<double>(squares_.item());
}

template <class S> void NoiseScaleEstimator<S>::set_norm(double norm) {
    if (!norm_) norm_ = norm;
}

template <class S> detail::Noise NoiseScaleEstimator<S>::estimate(const WindowTotals& all, bool divided) {
    const auto firsts = static_cast<double>(all.noise.firsts);
    const double length = norm_.value() / (divided ? 1 : all.count), square = length * length,
                 share = all.noise.squared_weights / (all.count * all.count),
                 first_square = all.noise.squares / firsts, first_share = all.noise.shares / firsts;
    Noise found{.without = 1};
    if (first_share > share) {
        const double trace = (first_square - square) / (first_share - share), left = square - share * trace;
        if (std::isfinite(trace) && std::isfinite(left))
            found = {.windows = 1, .traces = trace, .squares = left};
    }
    noise_ += found;
    return found;
}

template <class S> void NoiseScaleEstimator<S>::save(TrainingState& state, const std::string& prefix) const {
    const std::string at = prefix + "/noise/";
    state.put(at + "windows", noise_.windows);
    state.put(at + "without", noise_.without);
    state.put(at + "traces", noise_.traces);
    state.put(at + "squares", noise_.squares);
    state.put(at + "firsts", first_.firsts);
    state.put(at + "first_square", first_.squares);
    state.put(at + "first_share", first_.shares);
    state.put(at + "squared_weights", static_cast<double>(squares_.item()));
}

template <class S>
typename NoiseScaleEstimator<S>::Saved NoiseScaleEstimator<S>::read(StateReader& saved,
                                                                    std::int64_t micro_batches) const {
    const auto number = [&](const std::string& name, double from, bool unknown = false) {
        const auto is = saved.get<double>("noise/" + name);
        if (std::isinf(is) || !(is >= from || (unknown && std::isnan(is))))
            saved.fail("'" + saved.name_of("noise/" + name) + "' is " + to_text(is));
        return is;
    };
    Saved found{{}, {}, zero_};
    double squares = std::numeric_limits<double>::quiet_NaN();
    if (saved.has("noise/windows")) {
        const double any = std::numeric_limits<double>::lowest();
        found.noise = {saved.count("noise/windows"), saved.count("noise/without"), number("traces", any),
                       number("squares", any)};
        found.first = {.firsts = saved.count("noise/firsts", micro_batches),  // one for each process
                       .squares = number("first_square", 0),
                       .shares = number("first_share", 0)};
        squares = number("squared_weights", 0, true);
    } else if (micro_batches == 0) {
        return found;
    }
    found.squares = V(Array<S>::full({}, static_cast<S>(squares), zero_.value().device()));
    return found;
}

template <class S> void NoiseScaleEstimator<S>::take(Saved saved) {
    restart();
    noise_ = saved.noise;
    first_ = saved.first;
    squares_ = std::move(saved.squares);
}

template <class S> void NoiseScaleEstimator<S>::throw_noise_needs_single_backward() const {
    throw Error(
        "[window] backward: noise() has measured the gradient of this micro-batch, and assumes "
        "that its items are independent; make the window without .noise");
}

void throw_noise_not_estimated() {
    throw Error("[window] noise: it is not measured; make the window with {.noise = true}");
}

template class NoiseScaleEstimator<float>;
template class NoiseScaleEstimator<double>;
}  // namespace detail
}  // namespace tally
