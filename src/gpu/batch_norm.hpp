// Implements batch norm on a GPU. A team of threads sums each feature, and one thread computes each element.
#pragma once

#include <cstddef>
#include <limits>

#include "tally/gpu/team.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

using detail::BatchNormDims;

// Returns the index of element number i of a feature in an array (items, features, space).
TALLY_HOST_DEVICE constexpr std::size_t term_of(const BatchNormDims& d, std::size_t feature, std::size_t i) {
    return (i / d.space * d.features + feature) * d.space + i % d.space;
}

TALLY_HOST_DEVICE constexpr std::size_t feature_of(const BatchNormDims& dims, std::size_t at) {
    return at / dims.space % dims.features;
}

template <class S> struct BatchMomentsBody {
    const S* x;
    S *mean, *variance;
    BatchNormDims dims;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t feature) const {
        const std::size_t terms = dims.items * dims.space;
        const auto value = [&](std::size_t i) { return x[term_of(dims, feature, i)]; };
        const S n = static_cast<S>(terms), m = sum_in_team<S>(team, terms, value) / n;
        const S squares =
            sum_in_team<S>(team, terms, [&](std::size_t i) { return (value(i) - m) * (value(i) - m); });
        team.alone([&] {
            using Limits = std::numeric_limits<S>;  // infinity becomes NaN: see cpu/batch_norm.cpp
            mean[feature] = m;
            variance[feature] = squares / n > Limits::max() ? Limits::quiet_NaN() : squares / n;
        });
    }
};

template <class S> struct BatchNormBody {
    const S *x, *mean, *rstd, *gain, *bias;
    S* y;
    BatchNormDims dims;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        const std::size_t f = feature_of(dims, i);
        y[i] = (x[i] - mean[f]) * rstd[f] * gain[f] + bias[f];
    }
};

template <class S> struct BatchNormBackSumsBody {
    const S *dy, *x, *mean, *rstd;
    S *total, *along;
    BatchNormDims dims;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t feature) const {
        const std::size_t terms = dims.items * dims.space;
        const S m = mean[feature], scale = rstd[feature];
        const S sum =
            sum_in_team<S>(team, terms, [&](std::size_t i) { return dy[term_of(dims, feature, i)]; });
        const S sum_along = sum_in_team<S>(team, terms, [&](std::size_t i) {
            const std::size_t at = term_of(dims, feature, i);
            return dy[at] * ((x[at] - m) * scale);
        });
        team.alone([&] {
            total[feature] = sum;
            along[feature] = sum_along;
        });
    }
};

template <class S> struct BatchNormBackBody {
    const S *dy, *x, *mean, *rstd, *gain, *total, *along;
    Into<S[]> dx;
    BatchNormDims dims;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        const std::size_t f = feature_of(dims, i);
        S slope = dy[i];
        if (total)
            slope = slope - (total[f] + (x[i] - mean[f]) * rstd[f] * along[f]) /
                                static_cast<S>(dims.items * dims.space);
        store(dx, i, gain[f] * rstd[f] * slope);
    }
};

inline std::size_t elements(const BatchNormDims& dims) { return dims.items * dims.features * dims.space; }

template <class On, class S> void batch_moments(const S* x, S* mean, S* variance, const BatchNormDims& dims) {
    team_per_row<On>("batch_norm, moments", dims.features, dims.items * dims.space,
                     BatchMomentsBody<S>{x, mean, variance, dims});
}

template <class On, class S> void batch_norm(const S* x, const S* mean, const S* rstd, const S* gain,
                                             const S* bias, S* y, const BatchNormDims& dims) {
    On::each("batch_norm", elements(dims), BatchNormBody<S>{x, mean, rstd, gain, bias, y, dims});
}

template <class On, class S> void batch_norm_back_sums(const S* dy, const S* x, const S* mean, const S* rstd,
                                                       S* total, S* along, const BatchNormDims& dims) {
    team_per_row<On>("batch_norm, sums", dims.features, dims.items * dims.space,
                     BatchNormBackSumsBody<S>{dy, x, mean, rstd, total, along, dims});
}

template <class On, class S> void batch_norm_back(const S* dy, const S* x, const S* mean, const S* rstd,
                                                  const S* gain, const S* total, const S* along, Into<S[]> dx,
                                                  const BatchNormDims& dims) {
    On::each("batch_norm, backward", elements(dims),
             BatchNormBackBody<S>{dy, x, mean, rstd, gain, total, along, dx, dims});
}

template <class On, class S> void install_batch_norm(Kernels<S>& t) {
    t.batch_moments = batch_moments<On, S>;
    t.batch_norm = batch_norm<On, S>;
    t.batch_norm_back_sums = batch_norm_back_sums<On, S>;
    t.batch_norm_back = batch_norm_back<On, S>;
}

}  // namespace tally::gpu
