// Implements layer norm on a GPU. One team of threads computes a row. One thread sums a column of gradients.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "tally/gpu/team.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

template <class S> struct LayerNormBody {
    const S *x, *gain, *bias;
    S eps;
    S *y, *mean, *rstd;
    std::size_t width;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t row) const {
        using std::sqrt;
        const S *from = x + row * width, n = static_cast<S>(width);
        S* to = y + row * width;
        const S m = sum_in_team<S>(team, width, [&](std::size_t i) { return from[i]; }) / n;
        const S squares =
            sum_in_team<S>(team, width, [&](std::size_t i) { return (from[i] - m) * (from[i] - m); });
        const S variance = squares / n + eps;
        if (!(variance <= std::numeric_limits<S>::max()) && width > 0) return large(team, row);
        const S scale = S(1) / sqrt(variance);
        team.each(width, [&](std::size_t i) {
            const S scaled = (from[i] - m) * scale;
            to[i] = (gain ? scaled * gain[i] : scaled) + (bias ? bias[i] : -S(0));
        });
        team.alone([&] {
            mean[row] = m;
            rstd[row] = scale;
        });
    }

private:
    // Divides a row by its largest magnitude, because its sum or squares overflow in S. Uses eps only if the
    // variance is 0, because a variance of large numbers makes eps negligible.
    template <class T> TALLY_HOST_DEVICE void large(T& team, std::size_t row) const {
        using std::sqrt;
        const S *from = x + row * width, n = static_cast<S>(width);
        S* to = y + row * width;
        const S top = team.fold(width, S(0), Larger(),
                                [&](std::size_t i) { return from[i] < S(0) ? -from[i] : from[i]; });
        const S m = sum_in_team<S>(team, width, [&](std::size_t i) { return from[i] / top; }) / n;
        const S squares = sum_in_team<S>(
            team, width, [&](std::size_t i) { return (from[i] / top - m) * (from[i] / top - m); });
        const S deviation = sqrt(squares / n), scale = deviation == 0 ? S(1) : S(1) / deviation;
        team.each(width, [&](std::size_t i) {
            const S scaled = (from[i] / top - m) * scale;
            to[i] = (gain ? scaled * gain[i] : scaled) + (bias ? bias[i] : -S(0));
        });
        team.alone([&] {
            mean[row] = m * top;
            rstd[row] = deviation == 0 ? S(1) / sqrt(eps) : scale / top;
        });
    }
};

template <class S> struct LayerNormBackBody {
    const S *dy, *x, *gain, *mean, *rstd;
    Into<S[]> dx;
    std::size_t width;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t row) const {
        const S m = mean[row], scale = rstd[row], n = static_cast<S>(width);
        const std::size_t first = row * width;
        const auto scaled = [&](std::size_t i) { return (x[first + i] - m) * scale; };
        const auto slope = [&](std::size_t i) { return gain ? dy[first + i] * gain[i] : dy[first + i]; };
        const S mean_slope = sum_in_team<S>(team, width, slope) / n;
        const S mean_along =
            sum_in_team<S>(team, width, [&](std::size_t i) { return slope(i) * scaled(i); }) / n;
        team.each(width, [&](std::size_t i) {
            store(dx, first + i, scale * (slope(i) - mean_slope - scaled(i) * mean_along));
        });
    }
};

template <class S> struct LayerNormBackGainBody {
    const S *dy, *x, *mean, *rstd;
    Into<S[]> dgain;
    std::size_t rows, width;
    TALLY_HOST_DEVICE void operator()(std::size_t column) const {
        S total = start_of(dgain, column, rows);
        for (std::size_t r = 0; r < rows; ++r) {
            const std::size_t i = r * width + column;
            total += dy[i] * ((x[i] - mean[r]) * rstd[r]);
        }
        dgain.dst[column] = total;
    }
};

template <class On, class S> void layer_norm(const S* x, const S* gain, const S* bias, S eps, S* y, S* mean,
                                             S* rstd, std::size_t rows, std::size_t width) {
    team_per_row<On>("layer_norm", rows, width, LayerNormBody<S>{x, gain, bias, eps, y, mean, rstd, width});
}

template <class On, class S> void layer_norm_back(const S* dy, const S* x, const S* gain, const S* mean,
                                                  const S* rstd, Into<S[]> dx, std::size_t rows,
                                                  std::size_t width) {
    team_per_row<On>("layer_norm, backward", rows, width,
                     LayerNormBackBody<S>{dy, x, gain, mean, rstd, dx, width});
}

template <class On, class S> void layer_norm_back_gain(const S* dy, const S* x, const S* mean, const S* rstd,
                                                       Into<S[]> dgain, std::size_t rows, std::size_t width) {
    On::each("layer_norm, gain", width, LayerNormBackGainBody<S>{dy, x, mean, rstd, dgain, rows, width});
}

template <class On, class S> void install_norm(Kernels<S>& t) {
    t.layer_norm = layer_norm<On, S>;
    t.layer_norm_back = layer_norm_back<On, S>;
    t.layer_norm_back_gain = layer_norm_back_gain<On, S>;
}

}  // namespace tally::gpu
