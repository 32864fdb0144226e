// Defines all kernels as plain loops for any scalar, such as Dual. Tests compare fast kernels with the loops.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "tally/base/error.hpp"
#include "tally/base/random.hpp"
#include "tally/cpu/reference_runs.hpp"
#include "tally/cpu/reference_walks.hpp"
#include "tally/kernels/dual.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::reference {

using formula::exp, formula::log;  // for float and double; Dual has overloads
using std::fma, std::sqrt;

// ---- elementwise ----

template <class F, class S> void map(const void* f, const S* x, S* y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] = static_cast<const F*>(f)->value(x[i]);
}

template <class F, class S>
void map_back(const void* f, const S* dy, const S* kept, Into<S[]> dx, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
        store(dx, i, static_cast<const F*>(f)->back(dy[i], F::keeps == Keep::nothing ? dy[i] : kept[i]));
}

template <class F, class S>
void zip(const void* f, const StridedIndex<2>& walk, const S* a, const S* b, S* y) {
    follow(walk, [&](std::size_t i, const auto& at) {
        y[i] = static_cast<const F*>(f)->value(a[at[0]], b[at[1]]);
    });
}

// Computes the gradient of operand 0 (a) or 1 (b). The functor does not read an array that was not saved, so
// the functor receives dy instead of this array.
template <class F, std::size_t operand, class S> void zip_back(const void* f, const StridedIndex<2>& walk,
                                                               const S* dy, const S* a, const S* b,
                                                               const S* y, Into<S[]> d) {
    constexpr Keeps keeps = operand == 0 ? F::for_a : F::for_b;
    sum_along(walk, operand, d, [&](std::size_t i, const auto& at) {
        const S kept_a = keeps.a ? a[at[0]] : dy[i], kept_b = keeps.b ? b[at[1]] : dy[i],
                kept_y = keeps.y ? y[i] : dy[i];
        return slope<operand>(*static_cast<const F*>(f), dy[i], kept_a, kept_b, kept_y);
    });
}

template <class S>
void where(const StridedIndex<3>& walk, const std::int32_t* c, const S* a, const S* b, S* y) {
    follow(walk, [&](std::size_t i, const auto& at) { y[i] = c[at[0]] ? a[at[1]] : b[at[2]]; });
}

template <class S>
void where_back(const StridedIndex<3>& walk, const std::int32_t* c, const S* dy, int place, Into<S[]> d) {
    sum_along(walk, static_cast<std::size_t>(place), d,
              [&](std::size_t i, const auto& at) { return (c[at[0]] != 0) == (place == 1) ? dy[i] : S(0); });
}

// ---- memory ----

template <class S> void fill(S value, S* y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] = value;
}

template <class S> void add_scaled(S factor, const S* x, Into<S[]> y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) store(y, i, factor * x[i]);
}

template <class S> void gather(const StridedIndex<1>& walk, const S* x, Into<S[]> y) {
    follow(walk, [&](std::size_t i, const auto& at) { store(y, i, x[at[0]]); });
}

template <class S> void scatter(const StridedIndex<1>& walk, const S* dy, Into<S[]> x) {
    if (x.how == Write::set) {
        for (std::size_t i = 0; i < walk.operand_size[0]; ++i) x.dst[i] = S(0);
        follow(walk, [&](std::size_t, const auto& at) { x.dst[at[0]] = -S(0); });
    }
    follow(walk, [&](std::size_t i, const auto& at) { x.dst[at[0]] += dy[i]; });
}

template <class S> void block(const S* x, std::size_t x_pitch, Into<S[]> y, std::size_t y_pitch,
                              std::size_t count, std::size_t width) {
    for (std::size_t r = 0; r < count; ++r)
        for (std::size_t i = 0; i < width; ++i) store(y, r * y_pitch + i, x[r * x_pitch + i]);
}

template <class S>
void rows(const S* x, const std::int32_t* index, S* y, std::size_t count, std::size_t width) {
    for (std::size_t r = 0; r < count; ++r)
        for (std::size_t i = 0; i < width; ++i)
            y[r * width + i] = x[static_cast<std::size_t>(index[r]) * width + i];
}

template <class S> void rows_back(const S* dy, const std::int32_t* index, Into<S[]> dx, std::size_t count,
                                  std::size_t height, std::size_t width) {
    if (dx.how == Write::set) fill(S(0), dx.dst, height * width);
    for (std::size_t r = 0; r < count; ++r)
        for (std::size_t i = 0; index[r] >= 0 && i < width; ++i)
            dx.dst[static_cast<std::size_t>(index[r]) * width + i] += dy[r * width + i];
}

// ---- reductions ----

template <class S> S largest(const S* x, std::size_t step, std::size_t n) {  // NaN counts as the largest
    S m = x[0];
    for (std::size_t r = 1; r < n; ++r)
        if (x[r * step] > m || x[r * step] != x[r * step]) m = x[r * step];
    return m;
}

template <class S> S sum_exp(const S* x, S shift, std::size_t step, std::size_t n) {
    S total = S(0);
    for (std::size_t r = 0; r < n; ++r) total += exp(x[r * step] - shift);
    return total;
}

template <class S> void sum(const S* x, Into<S[]> y, const detail::ReduceDims& dims) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t at) {
        S total = sum_start(y.dst[at], y.how, dims.reduced);
        for (std::size_t r = 0; r < dims.reduced; ++r) total += x[first + r * step];
        y.dst[at] = total;
    });
}

template <class S> void mean(const S* x, S* y, const detail::ReduceDims& dims) {
    sum(x, {y, Write::set}, dims);
    for (std::size_t i = 0; i < dims.outer * dims.inner; ++i) y[i] = y[i] / number<S>(dims.reduced);
}

template <class S> void spread(const S* dy, S divisor, Into<S[]> dx, const detail::ReduceDims& dims) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t at) {
        for (std::size_t r = 0; r < dims.reduced; ++r) store(dx, first + r * step, dy[at] / divisor);
    });
}

template <class S> void max(const S* x, S* y, const detail::ReduceDims& dims) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t at) {
        y[at] = largest(x + first, step, dims.reduced);
    });
}

template <class S>
void max_back(const S* dy, const S* x, const S* y, Into<S[]> dx, const detail::ReduceDims& dims) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t at) {
        std::size_t ties = 0;  // stays 0 if y is NaN: all gradients become 0 / 0
        for (std::size_t r = 0; r < dims.reduced; ++r) ties += x[first + r * step] == y[at];
        const S share = dy[at] / number<S>(ties), none = S(0) / number<S>(ties);
        for (std::size_t r = 0; r < dims.reduced; ++r)
            store(dx, first + r * step, x[first + r * step] == y[at] ? share : none);
    });
}

template <class S> S log_sum_exp(const S* x, std::size_t step, std::size_t n) {
    const S infinity = as<S>(std::numeric_limits<double>::infinity());
    if (n == 0) return -infinity;
    const S m = largest(x, step, n);
    const S shift = m == infinity || m == -infinity ? S(0) : m;  // inf - inf would be NaN
    return log(sum_exp(x, shift, step, n)) + shift;
}

template <class S> void logsumexp(const S* x, S* y, const detail::ReduceDims& dims) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t at) {
        y[at] = log_sum_exp(x + first, step, dims.reduced);
    });
}

template <class S>
void logsumexp_back(const S* dy, const S* x, const S* y, Into<S[]> dx, const detail::ReduceDims& dims) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t at) {
        for (std::size_t r = 0; r < dims.reduced; ++r)
            store(dx, first + r * step, dy[at] * exp(x[first + r * step] - y[at]));
    });
}

template <class S> void softmax(const S* x, S* y, const detail::ReduceDims& dims) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t) {
        if (dims.reduced == 0) return;
        const S m = largest(x + first, step, dims.reduced), total = sum_exp(x + first, m, step, dims.reduced);
        for (std::size_t r = 0; r < dims.reduced; ++r)
            y[first + r * step] = exp(x[first + r * step] - m) / total;
    });
}

template <class S> void softmax_back(const S* dy, const S* y, Into<S[]> dx, const detail::ReduceDims& dims) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t) {
        S total = S(0);
        for (std::size_t r = 0; r < dims.reduced; ++r) total += dy[first + r * step] * y[first + r * step];
        for (std::size_t r = 0; r < dims.reduced; ++r)
            store(dx, first + r * step, y[first + r * step] * (dy[first + r * step] - total));
    });
}

template <class S> void log_softmax(const S* x, S* y, const detail::ReduceDims& dims) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t) {
        if (dims.reduced == 0) return;
        const S m = largest(x + first, step, dims.reduced),
                log_total = log(sum_exp(x + first, m, step, dims.reduced));
        for (std::size_t r = 0; r < dims.reduced; ++r)
            y[first + r * step] = x[first + r * step] - m - log_total;
    });
}

template <class S>
void log_softmax_back(const S* dy, const S* y, Into<S[]> dx, const detail::ReduceDims& dims) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t) {
        S total = S(0);
        for (std::size_t r = 0; r < dims.reduced; ++r) total += dy[first + r * step];
        for (std::size_t r = 0; r < dims.reduced; ++r)
            store(dx, first + r * step, dy[first + r * step] - exp(y[first + r * step]) * total);
    });
}

// ---- linear algebra: the definition of a product for every device ----

template <class S> void matmul(const Product& p, const S* a, const S* b, Into<S[]> c) {
    for (std::size_t i = 0; i < p.m; ++i)
        for (std::size_t j = 0; j < p.n; ++j) {
            S total = sum_start(c.dst[i * p.n + j], c.how, p.k);
            for (std::size_t l = 0; l < p.k; ++l)
                total = fma(a[p.transpose_a ? l * p.m + i : i * p.k + l],
                            b[p.transpose_b ? j * p.k + l : l * p.n + j], total);
            c.dst[i * p.n + j] = total;
        }
}

template <class S>
void linear(const S* x, const S* w, const S* bias, S* y, std::size_t m, std::size_t n, std::size_t k) {
    for (std::size_t i = 0; bias && i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) y[i * n + j] = bias[j];
    matmul({m, n, k, false, false}, x, w, {y, bias ? Write::add : Write::set});
}

template <class S>
void linear_relu(const S* x, const S* w, const S* bias, S* y, std::size_t m, std::size_t n, std::size_t k) {
    linear(x, w, bias, y, m, n, k);
    for (std::size_t i = 0; i < m * n; ++i) y[i] = functor::Relu().value(y[i]);
}

template <class S>
void relu_bias_back(const S* dy, const S* y, S* dz, Into<S[]> dbias, std::size_t rows, std::size_t width) {
    for (std::size_t i = 0; i < rows * width; ++i) dz[i] = functor::Relu().back(dy[i], y[i]);
    if (dbias.dst) sum(dz, dbias, detail::ReduceDims{1, rows, width, true});
}

// ---- losses and norms ----

[[noreturn]] inline void fail_label(std::int32_t label, std::size_t row, std::size_t classes) {
    throw Error("[cross_entropy] label " + std::to_string(label) + " in row " + std::to_string(row) +
                " is not one of the " + std::to_string(classes) + " classes");
}

template <class S> void cross_entropy(const S* logits, const std::int32_t* labels,
                                      const LabelOptions& settings, S* probabilities, S* total, S* count,
                                      std::size_t rows, std::size_t classes) {
    S sum = S(0);
    std::size_t counted = 0;
    for (std::size_t r = 0; r < rows; ++r) {
        const S* x = logits + r * classes;
        softmax(x, probabilities + r * classes, {1, classes, 1});
        if (labels[r] == settings.ignore) continue;
        if (labels[r] < 0 || static_cast<std::size_t>(labels[r]) >= classes)
            fail_label(labels[r], r, classes);
        const S m = largest(x, 1, classes), log_total = log(sum_exp(x, m, 1, classes));
        S loss = log_total - (x[labels[r]] - m);
        if (settings.smoothing != 0) {
            S distances = S(0);
            for (std::size_t c = 0; c < classes; ++c) distances += x[c] - m;
            loss = as<S>(1 - settings.smoothing) * loss +
                   as<S>(settings.smoothing) * (log_total - distances / number<S>(classes));
        }
        sum += loss;
        ++counted;
    }
    *total = sum;
    *count = number<S>(counted);
}

template <class S> void cross_entropy_back(const S* dtotal, const S* probabilities,
                                           const std::int32_t* labels, const LabelOptions& settings,
                                           Into<S[]> dlogits, std::size_t rows, std::size_t classes) {
    const double share = settings.smoothing / static_cast<double>(classes);
    const S elsewhere = as<S>(share), at_label = as<S>(1 - settings.smoothing + share);
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < classes; ++c) {
            const bool is_label = static_cast<std::size_t>(labels[r]) == c;
            const S d = labels[r] == settings.ignore
                            ? S(0)
                            : *dtotal * (probabilities[r * classes + c] - (is_label ? at_label : elsewhere));
            store(dlogits, r * classes + c, d);
        }
}

template <class S> void layer_norm(const S* x, const S* gain, const S* bias, S eps, S* y, S* mean, S* rstd,
                                   std::size_t rows, std::size_t width) {
    for (std::size_t r = 0; r < rows; ++r, x += width, y += width) {
        S total = S(0), squares = S(0);
        for (std::size_t i = 0; i < width; ++i) total += x[i];
        mean[r] = total / number<S>(width);
        for (std::size_t i = 0; i < width; ++i) squares += (x[i] - mean[r]) * (x[i] - mean[r]);
        rstd[r] = S(1) / sqrt(squares / number<S>(width) + eps);
        for (std::size_t i = 0; i < width; ++i) {
            const S scaled = (x[i] - mean[r]) * rstd[r];
            y[i] = (gain ? scaled * gain[i] : scaled) + (bias ? bias[i] : S(0));
        }
    }
}

template <class S> void layer_norm_back(const S* dy, const S* x, const S* gain, const S* mean, const S* rstd,
                                        Into<S[]> dx, std::size_t rows, std::size_t width) {
    for (std::size_t r = 0; r < rows; ++r) {
        const auto scaled = [&](std::size_t i) { return (x[r * width + i] - mean[r]) * rstd[r]; };
        const auto slope = [&](std::size_t i) {
            return gain ? dy[r * width + i] * gain[i] : dy[r * width + i];
        };
        S total = S(0), along = S(0);
        for (std::size_t i = 0; i < width; ++i) total += slope(i);
        for (std::size_t i = 0; i < width; ++i) along += slope(i) * scaled(i);
        total /= number<S>(width);
        along /= number<S>(width);
        for (std::size_t i = 0; i < width; ++i)
            store(dx, r * width + i, rstd[r] * (slope(i) - total - scaled(i) * along));
    }
}

template <class S> void layer_norm_back_gain(const S* dy, const S* x, const S* mean, const S* rstd,
                                             Into<S[]> dgain, std::size_t rows, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) {
        S total = sum_start(dgain.dst[i], dgain.how, rows);
        for (std::size_t r = 0; r < rows; ++r)
            total += dy[r * width + i] * ((x[r * width + i] - mean[r]) * rstd[r]);
        dgain.dst[i] = total;
    }
}

// ---- optimizers ----

template <class Step, class S> void update(std::span<const Update<S>> list, const Step& step) {
    for (const Update<S>& u : list)
        for (std::size_t i = 0; i < u.size; ++i) update_element(step, u, i);
}

inline double plain(double x) { return x; }
inline double plain(Dual<double> x) { return x.value; }

template <class S> void measure(std::span<const Update<S>> list, bool squares, double* found) {
    found[0] = found[1] = 0;
    for (const Update<S>& u : list)
        for (std::size_t i = 0; i < u.size; ++i) {
            const double g = plain(u.gradient[i]);
            found[0] += squares ? g * g : 0;
            found[1] += std::isfinite(g) ? 0 : 1;
        }
}

// ---- batch norm and dropout ----

// For each element of an array, calls visit(f, at) with its feature f and its index `at`.
template <class Visit> void each_of_feature(const detail::BatchNormDims& dims, Visit visit) {
    for (std::size_t i = 0; i < dims.items * dims.features * dims.space; ++i)
        visit(i / dims.space % dims.features, i);
}

template <class S> void batch_moments(const S* x, S* mean, S* variance, const detail::BatchNormDims& dims) {
    const S terms = number<S>(dims.items * dims.space);
    fill(S(0), mean, dims.features);
    each_of_feature(dims, [&](std::size_t f, std::size_t i) { mean[f] += x[i]; });
    for (std::size_t f = 0; f < dims.features; ++f) mean[f] = mean[f] / terms;
    fill(S(0), variance, dims.features);
    each_of_feature(
        dims, [&](std::size_t f, std::size_t i) { variance[f] += (x[i] - mean[f]) * (x[i] - mean[f]); });
    for (std::size_t f = 0; f < dims.features; ++f) variance[f] = variance[f] / terms;
}

template <class S> void batch_norm(const S* x, const S* mean, const S* rstd, const S* gain, const S* bias,
                                   S* y, const detail::BatchNormDims& dims) {
    each_of_feature(
        dims, [&](std::size_t f, std::size_t i) { y[i] = (x[i] - mean[f]) * rstd[f] * gain[f] + bias[f]; });
}

template <class S> void batch_norm_back_sums(const S* dy, const S* x, const S* mean, const S* rstd, S* total,
                                             S* along, const detail::BatchNormDims& dims) {
    fill(S(0), total, dims.features);
    fill(S(0), along, dims.features);
    each_of_feature(dims, [&](std::size_t f, std::size_t i) {
        total[f] += dy[i];
        along[f] += dy[i] * ((x[i] - mean[f]) * rstd[f]);
    });
}

template <class S> void batch_norm_back(const S* dy, const S* x, const S* mean, const S* rstd, const S* gain,
                                        const S* total, const S* along, Into<S[]> dx,
                                        const detail::BatchNormDims& dims) {
    const S terms = number<S>(dims.items * dims.space);
    each_of_feature(dims, [&](std::size_t f, std::size_t i) {
        S slope = dy[i];
        if (total) slope = slope - (total[f] + (x[i] - mean[f]) * rstd[f] * along[f]) / terms;
        store(dx, i, gain[f] * rstd[f] * slope);
    });
}

template <class S> void dropout(const S* x, const DropoutMask& mask, S scale, Into<S[]> y, std::size_t items,
                                std::size_t width) {
    for (std::size_t i = 0; i < items * width; ++i) {
        const std::uint64_t index = DropoutMask::index(mask.first + i / width, i % width);
        const bool kept = random::detail::bits(mask.seed, mask.stream, index) >= mask.dropped;
        store(y, i, x[i] * (kept ? scale : S(0)));
    }
}

// ---- the table ----

template <class S> Kernels<S> table() {
    Kernels<S> t{};
    [&]<class... F>(std::tuple<F...>*) {
        t.map = {map<F, S>...};
        t.map_back = {map_back<F, S>...};
    }(static_cast<UnaryOps*>(nullptr));
    [&]<class... F>(std::tuple<F...>*) {
        t.zip = {zip<F, S>...};
        t.zip_back_a = {zip_back<F, 0, S>...};
        t.zip_back_b = {zip_back<F, 1, S>...};
    }(static_cast<BinaryOps*>(nullptr));
    t.where = where<S>;
    t.where_back = where_back<S>;
    t.fill = fill<S>;
    t.add_scaled = add_scaled<S>;
    t.gather = gather<S>;
    t.scatter = scatter<S>;
    t.block = block<S>;
    t.rows = rows<S>;
    t.rows_back = rows_back<S>;
    t.sum = sum<S>;
    t.mean = mean<S>;
    t.spread = spread<S>;
    t.max = max<S>;
    t.max_back = max_back<S>;
    t.cumsum = cumsum<S>;
    t.prod = prod<S>;
    t.prod_back = prod_back<S>;
    t.argmax = argmax<S>;
    t.logsumexp = logsumexp<S>;
    t.logsumexp_back = logsumexp_back<S>;
    t.softmax = softmax<S>;
    t.softmax_back = softmax_back<S>;
    t.log_softmax = log_softmax<S>;
    t.log_softmax_back = log_softmax_back<S>;
    t.matmul = matmul<S>;
    t.linear = linear<S>;
    t.linear_relu = linear_relu<S>;
    t.relu_bias_back = relu_bias_back<S>;
    t.cross_entropy = cross_entropy<S>;
    t.cross_entropy_back = cross_entropy_back<S>;
    t.layer_norm = layer_norm<S>;
    t.layer_norm_back = layer_norm_back<S>;
    t.layer_norm_back_gain = layer_norm_back_gain<S>;
    t.sgd = update<SgdStep<S>, S>;
    t.adam = update<AdamStep<S>, S>;
    t.average = update<AverageStep<S>, S>;
    t.limit = update<LimitStep<S>, S>;
    t.measure = measure<S>;
    t.batch_moments = batch_moments<S>;
    t.batch_norm = batch_norm<S>;
    t.batch_norm_back_sums = batch_norm_back_sums<S>;
    t.batch_norm_back = batch_norm_back<S>;
    t.dropout = dropout<S>;
    t.im2col = im2col<S>;
    t.col2im = col2im<S>;
    t.max_pool = max_pool<S>;
    t.max_pool_back = max_pool_back<S>;
    return t;
}

}  // namespace tally::reference
