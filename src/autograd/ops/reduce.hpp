// The reductions combine elements along any axes. cumsum(), softmax() and argmax() work along one axis.
#pragma once

#include <cstdint>
#include <utility>

#include "tally/array/argmax.hpp"
#include "tally/array/array.hpp"
#include "tally/array/axes.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/record.hpp"

namespace tally {

// Sums over the given axes, or over all axes. {.keepdims = true} keeps the summed axes with extent 1.
template <class S>
Var<Array<S>> sum(Var<Array<S>> x, const detail::AxesArg& along = {}, const detail::ReduceOptions& how = {}) {
    const auto r = detail::plan_reduction("sum", x.shape(), along.axes, how.keepdims);
    if (!r.order.empty()) x = permute(std::move(x), r.order);
    Array<S> y = Array<S>::empty(r.shape, x.value().device());
    detail::kernels_for("sum", x.value()).sum(x.value().data(), {y.raw(), Write::set}, r.dims);
    return record<"sum">(
        std::move(y), save(),
        [dims = r.dims](GradInputs<Array<S>> to, const Array<S>& dy) {
            detail::kernels_for("sum", dy).spread(dy.data(), S(1), detail::grad_buffer(to.into(0)), dims);
        },
        std::move(x));
}

// Averages over the given axes. The mean of no elements is NaN.
template <class S> Var<Array<S>> mean(Var<Array<S>> x, const detail::AxesArg& along = {},
                                      const detail::ReduceOptions& how = {}) {
    const auto r = detail::plan_reduction("mean", x.shape(), along.axes, how.keepdims);
    if (!r.order.empty()) x = permute(std::move(x), r.order);
    Array<S> y = Array<S>::empty(r.shape, x.value().device());
    const S count = static_cast<S>(static_cast<double>(r.dims.reduced));
    detail::kernels_for("mean", x.value()).mean(x.value().data(), y.raw(), r.dims);
    return record<"mean">(
        std::move(y), save(),
        [dims = r.dims, count](GradInputs<Array<S>> to, const Array<S>& dy) {
            detail::kernels_for("mean", dy).spread(dy.data(), count, detail::grad_buffer(to.into(0)), dims);
        },
        std::move(x));
}

// Returns the largest element along the given axes. Equal largest elements share the gradient equally.
template <class S>
Var<Array<S>> max(Var<Array<S>> x, const detail::AxesArg& along = {}, const detail::ReduceOptions& how = {}) {
    const auto r = detail::plan_reduction("max", x.shape(), along.axes, how.keepdims);
    detail::require_nonempty_reduction("max", r, x.shape());
    if (!r.order.empty()) x = permute(std::move(x), r.order);
    Array<S> y = Array<S>::empty(r.shape, x.value().device());
    if (y.size()) detail::kernels_for("max", x.value()).max(x.value().data(), y.raw(), r.dims);
    return record<"max">(
        std::move(y), save(x.value(), y),
        [dims = r.dims](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>& saved_x,
                        const Array<S>& saved_y) {
            detail::kernels_for("max", dy).max_back(dy.data(), saved_x.data(), saved_y.data(),
                                                    detail::grad_buffer(to.into(0)), dims);
        },
        std::move(x));
}

// Computes the logarithm of the sum of exp(x) without overflow.
template <class S> Var<Array<S>> logsumexp(Var<Array<S>> x, const detail::AxesArg& along = {},
                                           const detail::ReduceOptions& how = {}) {
    const auto r = detail::plan_reduction("logsumexp", x.shape(), along.axes, how.keepdims);
    if (!r.order.empty()) x = permute(std::move(x), r.order);
    Array<S> y = Array<S>::empty(r.shape, x.value().device());
    detail::kernels_for("logsumexp", x.value()).logsumexp(x.value().data(), y.raw(), r.dims);
    return record<"logsumexp">(
        std::move(y), save(x.value(), y),
        [dims = r.dims](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>& saved_x,
                        const Array<S>& saved_y) {
            detail::kernels_for("logsumexp", dy)
                .logsumexp_back(dy.data(), saved_x.data(), saved_y.data(), detail::grad_buffer(to.into(0)),
                                dims);
        },
        std::move(x));
}

// Computes the variance about the mean. The divisor is the number of elements, minus 1 if `unbiased` is true.
template <class S> Var<Array<S>> var(Var<Array<S>> x, const detail::AxesArg& along = {},
                                     const detail::VarianceOptions& how = {}) {
    const auto count =
        static_cast<double>(detail::plan_reduction("var", x.shape(), along.axes, true).dims.reduced);
    Var<Array<S>> center = mean(x, along, {.keepdims = true});
    return sum(detail::squared_difference(std::move(x), std::move(center)), along, {how.keepdims}) /
           (count > how.unbiased ? count - how.unbiased : 0.0);
}

// Multiplies the elements. The backward function of prod() avoids divisions, so that elements may be 0.
template <class S> Var<Array<S>> prod(Var<Array<S>> x, const detail::AxesArg& along = {},
                                      const detail::ReduceOptions& how = {}) {
    const auto r = detail::plan_reduction("prod", x.shape(), along.axes, how.keepdims);
    if (!r.order.empty()) x = permute(std::move(x), r.order);
    Array<S> y = Array<S>::empty(r.shape, x.value().device());
    detail::kernels_for("prod", x.value()).prod(x.value().data(), y.raw(), r.dims);
    return record<"prod">(
        std::move(y), save(x.value()),
        [dims = r.dims](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>& saved) {
            Array<S> dx = Array<S>::empty_like(saved);
            detail::kernels_for("prod", dy).prod_back(dy.data(), saved.data(), dx.raw(), dims);
            to.add(0, dx);
        },
        std::move(x));
}

// Computes running sums along one axis. The gradient of x[i] is the sum of dy[i] and later elements.
template <class S> Var<Array<S>> cumsum(Var<Array<S>> x, std::int64_t axis) {
    const detail::ReduceDims dims = detail::split_at_axis("cumsum", x.shape(), axis);
    Array<S> y = Array<S>::empty_like(x.value());
    detail::kernels_for("cumsum", x.value())
        .cumsum(x.value().data(), {y.raw(), Write::set}, dims, /*from_the_end*/ false);
    return record<"cumsum">(
        std::move(y), save(),
        [dims](GradInputs<Array<S>> to, const Array<S>& dy) {
            detail::kernels_for("cumsum", dy)
                .cumsum(dy.data(), detail::grad_buffer(to.into(0)), dims, /*from_the_end*/ true);
        },
        std::move(x));
}

// Returns the index of the largest element along the axis, or the first index if several are equal.
template <class S>
Array<std::int32_t> argmax(const Var<Array<S>>& x, std::int64_t axis, const detail::ReduceOptions& how = {}) {
    return argmax(x.value(), axis, how);
}

template <class T>
void sum(Var<T>, const detail::AxesArg&, detail::Arithmetic auto) = delete;  // write {.keepdims = true}
template <class T>
void mean(Var<T>, const detail::AxesArg&, detail::Arithmetic auto) = delete;  // write {.keepdims = true}
template <class T>
void max(Var<T>, const detail::AxesArg&, detail::Arithmetic auto) = delete;  // write {.keepdims = true}
template <class T> void logsumexp(Var<T>, const detail::AxesArg&,            // write {.keepdims = true}
                                  detail::Arithmetic auto) = delete;

// Computes softmax along one axis. Use log_softmax() for logarithms of small probabilities.
template <class S> Var<Array<S>> softmax(Var<Array<S>> x, std::int64_t axis = -1) {
    const detail::ReduceDims dims = detail::split_at_axis("softmax", x.shape(), axis);
    Array<S> y = Array<S>::empty_like(x.value());
    detail::kernels_for("softmax", x.value()).softmax(x.value().data(), y.raw(), dims);
    return record<"softmax">(
        std::move(y), save(y),
        [dims](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>& saved_y) {
            detail::kernels_for("softmax", dy)
                .softmax_back(dy.data(), saved_y.data(), detail::grad_buffer(to.into(0)), dims);
        },
        std::move(x));
}

// Computes the logarithm of softmax accurately, also for small probabilities.
template <class S> Var<Array<S>> log_softmax(Var<Array<S>> x, std::int64_t axis = -1) {
    const detail::ReduceDims dims = detail::split_at_axis("log_softmax", x.shape(), axis);
    Array<S> y = Array<S>::empty_like(x.value());
    detail::kernels_for("log_softmax", x.value()).log_softmax(x.value().data(), y.raw(), dims);
    return record<"log_softmax">(
        std::move(y), save(y),
        [dims](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>& saved_y) {
            detail::kernels_for("log_softmax", dy)
                .log_softmax_back(dy.data(), saved_y.data(), detail::grad_buffer(to.into(0)), dims);
        },
        std::move(x));
}

}  // namespace tally
