// Computes softmax, log_softmax, logsumexp and their gradients on a GPU. One team reduces a row or column.
#pragma once

#include <cmath>
#include <cstddef>

#include "tally/gpu/reduce.hpp"
#include "tally/gpu/team.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

template <class S> struct ExpSum {
    S shift, total;  // the sum of exp(x - shift)
};

template <class S> TALLY_HOST_DEVICE constexpr S finite_shift(S largest) {  // inf - inf would be NaN
    return largest == -lowest<S>() || largest == lowest<S>() ? S(0) : largest;
}

// Sums exp(value(i) - shift) for i < n, where `shift` is the largest value. If only_finite is set, 0
// replaces an infinite `shift`. Otherwise an infinite `shift` gives NaN, as in PyTorch.
template <class S, class T, class Value>
TALLY_HOST_DEVICE constexpr ExpSum<S> exp_sum(T& team, std::size_t n, bool only_finite, Value value) {
    using formula::exp;
    const S largest = team.fold(n, lowest<S>(), Larger(), value);
    const S shift = only_finite ? finite_shift(largest) : largest;
    return {shift, sum_in_team<S>(team, n, [&](std::size_t i) { return exp(value(i) - shift); })};
}

template <class S, bool logarithm> struct SoftmaxBody {
    const S* x;
    S* y;
    detail::ReduceDims dims;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t result) const {
        using formula::exp, formula::log;
        const RunOf run(dims, result);
        const auto [shift, total] =
            exp_sum<S>(team, dims.reduced, false, [&](std::size_t r) { return x[run[r]]; });
        const S m = shift, divisor = total, log_total = log(total);
        team.each(dims.reduced, [&](std::size_t r) {
            if constexpr (logarithm)
                y[run[r]] = x[run[r]] - m - log_total;
            else
                y[run[r]] = exp(x[run[r]] - m) / divisor;
        });
    }
};

template <class S, bool logarithm> struct SoftmaxBackBody {
    const S *dy, *y;
    Into<S[]> dx;
    detail::ReduceDims dims;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t result) const {
        using formula::exp;
        const RunOf run(dims, result);
        const S total = sum_in_team<S>(team, dims.reduced, [&](std::size_t r) {
            return logarithm ? dy[run[r]] : dy[run[r]] * y[run[r]];
        });
        team.each(dims.reduced, [&](std::size_t r) {
            const S d = dy[run[r]], value = y[run[r]];
            store(dx, run[r], logarithm ? d - exp(value) * total : value * (d - total));
        });
    }
};

template <class S> struct LogSumExpBody {
    const S* x;
    S* y;
    detail::ReduceDims dims;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t result) const {
        using formula::log;
        const RunOf run(dims, result);
        const ExpSum<S> sum = exp_sum<S>(team, dims.reduced, true, [&](std::size_t r) { return x[run[r]]; });
        team.alone([&] { y[result] = log(sum.total) + sum.shift; });
    }
};

template <class S> struct LogSumExpBackBody {
    const S *dy, *x, *y;
    Into<S[]> dx;
    detail::ReduceDims dims;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        using formula::exp;
        const std::size_t result = i / (dims.reduced * dims.inner) * dims.inner + i % dims.inner;
        store(dx, i, dy[result] * exp(x[i] - y[result]));
    }
};

template <class On, class S> void softmax(const S* x, S* y, const detail::ReduceDims& dims) {
    for_each_run<On>("softmax", dims, SoftmaxBody<S, false>{x, y, dims});
}

template <class On, class S> void log_softmax(const S* x, S* y, const detail::ReduceDims& dims) {
    for_each_run<On>("log_softmax", dims, SoftmaxBody<S, true>{x, y, dims});
}

template <class On, class S>
void softmax_back(const S* dy, const S* y, Into<S[]> dx, const detail::ReduceDims& dims) {
    for_each_run<On>("softmax, backward", dims, SoftmaxBackBody<S, false>{dy, y, dx, dims});
}

template <class On, class S>
void log_softmax_back(const S* dy, const S* y, Into<S[]> dx, const detail::ReduceDims& dims) {
    for_each_run<On>("log_softmax, backward", dims, SoftmaxBackBody<S, true>{dy, y, dx, dims});
}

template <class On, class S> void logsumexp(const S* x, S* y, const detail::ReduceDims& dims) {
    for_each_run<On>("logsumexp", dims, LogSumExpBody<S>{x, y, dims});
}

template <class On, class S>
void logsumexp_back(const S* dy, const S* x, const S* y, Into<S[]> dx, const detail::ReduceDims& dims) {
    On::each("logsumexp, backward", dims.outer * dims.reduced * dims.inner,
             LogSumExpBackBody<S>{dy, x, y, dx, dims});
}

template <class On, class S> void install_softmax(Kernels<S>& t) {
    t.softmax = softmax<On, S>;
    t.softmax_back = softmax_back<On, S>;
    t.log_softmax = log_softmax<On, S>;
    t.log_softmax_back = log_softmax_back<On, S>;
    t.logsumexp = logsumexp<On, S>;
    t.logsumexp_back = logsumexp_back<On, S>;
}

}  // namespace tally::gpu
