// Implements batch norm. If x has no spatial axes, features are summed row by row, otherwise one at a time.
#include <algorithm>
#include <limits>

#include "tally/cpu/fast_families.hpp"
#include "tally/cpu/simd_loops.hpp"

namespace tally::cpu {

namespace {

// The class Elements reads an array (items, features, space), and OfFeature reads one number per feature.
template <class S> struct Elements {
    const S* p;
    Contiguous<S> row(std::size_t first, std::size_t) const { return {p + first}; }
    Contiguous<S> stretch(std::size_t first, std::size_t) const { return {p + first}; }
};
template <class S> struct OfFeature {
    const S* p;
    Contiguous<S> row(std::size_t, std::size_t feature) const { return {p + feature}; }
    Broadcast<S> stretch(std::size_t, std::size_t feature) const { return Broadcast<S>(p[feature]); }
};

// Sets each element of y to f(x...), or adds f(x...).
template <class S, class F, class... X>
void each_element(const detail::BatchNormDims& dims, Into<S[]> y, F f, X... x) {
    if (dims.space == 1)
        for (std::size_t i = 0; i < dims.items; ++i)
            simd_for_each(dims.features, from(y, i * dims.features), f, x.row(i * dims.features, 0)...);
    else
        for (std::size_t i = 0; i < dims.items * dims.features; ++i)
            simd_for_each(dims.space, from(y, i * dims.space), f,
                          x.stretch(i * dims.space, i % dims.features)...);
}

// Sets total[feature] to the sum of f(x...) over the elements of the feature.
template <class S, class F, class... X>
void sum_features(const detail::BatchNormDims& dims, S* total, F f, X... x) {
    for_column_tiles<wide_strip>(dims.features, [&](std::size_t first_feature, std::size_t width) {
        sum_in_halves(
            0, dims.items, width, total + first_feature, [=](std::size_t first, std::size_t items, S* sum) {
                std::fill_n(sum, width, S(0));
                for (std::size_t i = first; i < first + items; ++i) {
                    const std::size_t at = i * dims.features + first_feature;
                    if (dims.space == 1)
                        simd_for_each<Write::add>(width, width, sum, f, x.row(at, first_feature)...);
                    else
                        for (std::size_t j = 0; j < width; ++j)
                            sum[j] = sum_run(sum[j], dims.space, 0, f,
                                             x.stretch((at + j) * dims.space, first_feature + j)...);
                }
            });
    });
}

template <class S> S terms(const detail::BatchNormDims& d) { return static_cast<S>(d.items * d.space); }

template <class S> void batch_moments(const S* x, S* mean, S* variance, const detail::BatchNormDims& dims) {
    const Elements<S> v{x};
    const auto divide = [&](S* sums) {
        for (std::size_t f = 0; f < dims.features; ++f) sums[f] /= terms<S>(dims);
    };
    const auto expose_overflow = [&] {  // division by an infinite variance would give plausible zeros
        for (std::size_t f = 0; f < dims.features; ++f)
            if (variance[f] > std::numeric_limits<S>::max())
                variance[f] = std::numeric_limits<S>::quiet_NaN();
    };
    sum_features(dims, mean, Identity(), v);
    divide(mean);
    sum_features(
        dims, variance, [](auto value, auto m) { return (value - m) * (value - m); }, v, OfFeature<S>{mean});
    divide(variance);
    expose_overflow();
}

template <class S> void batch_norm(const S* x, const S* mean, const S* rstd, const S* gain, const S* bias,
                                   S* y, const detail::BatchNormDims& dims) {
    each_element(
        dims, Into<S[]>{y, Write::set},
        [](auto v, auto m, auto s, auto g, auto b) { return (v - m) * s * g + b; }, Elements<S>{x},
        OfFeature<S>{mean}, OfFeature<S>{rstd}, OfFeature<S>{gain}, OfFeature<S>{bias});
}

template <class S> void batch_norm_back_sums(const S* dy, const S* x, const S* mean, const S* rstd, S* total,
                                             S* along, const detail::BatchNormDims& dims) {
    sum_features(dims, total, Identity(), Elements<S>{dy});
    sum_features(
        dims, along, [](auto d, auto v, auto m, auto s) { return d * ((v - m) * s); }, Elements<S>{dy},
        Elements<S>{x}, OfFeature<S>{mean}, OfFeature<S>{rstd});
}

template <class S> void batch_norm_back(const S* dy, const S* x, const S* mean, const S* rstd, const S* gain,
                                        const S* total, const S* along, Into<S[]> dx,
                                        const detail::BatchNormDims& dims) {
    const Elements<S> d{dy};
    const OfFeature<S> s{rstd}, g{gain};
    if (!total)
        return each_element(
            dims, dx, [](auto slope, auto scale, auto gains) { return gains * scale * slope; }, d, s, g);
    each_element(
        dims, dx,
        [n = Batch<S>(terms<S>(dims))](auto slope, auto scale, auto gains, auto v, auto m, auto sum,
                                       auto sum_along) {
            return gains * scale * (slope - (sum + (v - m) * scale * sum_along) / n);
        },
        d, s, g, Elements<S>{x}, OfFeature<S>{mean}, OfFeature<S>{total}, OfFeature<S>{along});
}

}  // namespace

template <class S> void install_batch_norm(Kernels<S>& t) {
    t.batch_moments = batch_moments<S>;
    t.batch_norm = batch_norm<S>;
    t.batch_norm_back_sums = batch_norm_back_sums<S>;
    t.batch_norm_back = batch_norm_back<S>;
}

template void install_batch_norm(Kernels<float>&);
template void install_batch_norm(Kernels<double>&);

}  // namespace tally::cpu
