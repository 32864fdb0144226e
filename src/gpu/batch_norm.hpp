// Kernel bodies of batch norm: a team per feature computes its sums, and a thread per element uses them.
#pragma once

#include <cstddef>
#include <limits>

#include "tally/gpu/team.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

// Returns the index of term i of a feature in (items, features, space).
TALLY_HOST_DEVICE constexpr std::size_t term_of(const detail::ReduceAxes& fold, std::size_t feature,
                                                std::size_t i) {
    return (i / fold.inner * fold.reduced + feature) * fold.inner + i % fold.inner;
}

TALLY_HOST_DEVICE constexpr std::size_t feature_of(const detail::ReduceAxes& fold, std::size_t at) {
    return at / fold.inner % fold.reduced;
}

template <class S> struct BatchMomentsBody {
    const S* x;
    S *mean, *variance;
    detail::ReduceAxes fold;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t feature) const {
        const std::size_t terms = fold.outer * fold.inner;
        const auto value = [&](std::size_t i) { return x[term_of(fold, feature, i)]; };
        const S n = static_cast<S>(terms), m = sum_in_team<S>(team, terms, value) / n;
        const S squares =
            sum_in_team<S>(team, terms, [&](std::size_t i) { return (value(i) - m) * (value(i) - m); });
        team.alone([&] {
            mean[feature] = m;
            variance[feature] = squares / n > std::numeric_limits<S>::max()  // see cpu/batch_norm.cpp
                                    ? std::numeric_limits<S>::quiet_NaN()
                                    : squares / n;
        });
    }
};

template <class S> struct BatchNormBody {
    const S *x, *mean, *rstd, *gain, *bias;
    S* y;
    detail::ReduceAxes fold;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        const std::size_t f = feature_of(fold, i);
        y[i] = (x[i] - mean[f]) * rstd[f] * gain[f] + bias[f];
    }
};

template <class S> struct BatchNormBackSumsBody {
    const S *dy, *x, *mean, *rstd;
    S *total, *along;
    detail::ReduceAxes fold;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t feature) const {
        const std::size_t terms = fold.outer * fold.inner;
        const S m = mean[feature], scale = rstd[feature];
        const S sum =
            sum_in_team<S>(team, terms, [&](std::size_t i) { return dy[term_of(fold, feature, i)]; });
        const S sum_along = sum_in_team<S>(team, terms, [&](std::size_t i) {
            const std::size_t at = term_of(fold, feature, i);
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
    detail::ReduceAxes fold;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        const std::size_t f = feature_of(fold, i);
        S slope = dy[i];
        if (total)
            slope = slope - (total[f] + (x[i] - mean[f]) * rstd[f] * along[f]) /
                                static_cast<S>(fold.outer * fold.inner);
        store(dx, i, gain[f] * rstd[f] * slope);
    }
};

inline std::size_t elements(const detail::ReduceAxes& fold) { return fold.outer * fold.reduced * fold.inner; }

template <class On, class S>
void batch_moments(const S* x, S* mean, S* variance, const detail::ReduceAxes& fold) {
    with_lanes_for(fold.outer * fold.inner, [&]<std::size_t lanes>() {
        On::template teams<lanes>("batch_norm, moments", fold.reduced,
                                  BatchMomentsBody<S>{x, mean, variance, fold});
    });
}

template <class On, class S> void batch_norm(const S* x, const S* mean, const S* rstd, const S* gain,
                                             const S* bias, S* y, const detail::ReduceAxes& fold) {
    On::each("batch_norm", elements(fold), BatchNormBody<S>{x, mean, rstd, gain, bias, y, fold});
}

template <class On, class S> void batch_norm_back_sums(const S* dy, const S* x, const S* mean, const S* rstd,
                                                       S* total, S* along, const detail::ReduceAxes& fold) {
    with_lanes_for(fold.outer * fold.inner, [&]<std::size_t lanes>() {
        On::template teams<lanes>("batch_norm, sums", fold.reduced,
                                  BatchNormBackSumsBody<S>{dy, x, mean, rstd, total, along, fold});
    });
}

template <class On, class S> void batch_norm_back(const S* dy, const S* x, const S* mean, const S* rstd,
                                                  const S* gain, const S* total, const S* along, Into<S[]> dx,
                                                  const detail::ReduceAxes& fold) {
    On::each("batch_norm, backward", elements(fold),
             BatchNormBackBody<S>{dy, x, mean, rstd, gain, total, along, dx, fold});
}

template <class On, class S> void install_batch_norm(Kernels<S>& t) {
    t.batch_moments = batch_moments<On, S>;
    t.batch_norm = batch_norm<On, S>;
    t.batch_norm_back_sums = batch_norm_back_sums<On, S>;
    t.batch_norm_back = batch_norm_back<On, S>;
}

}  // namespace tally::gpu
