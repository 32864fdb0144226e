// Reductions over any axes, and softmax along one. Forward and backward side by side.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "tally/autograd/ops/shape.hpp"
#include "tally/autograd/record.hpp"
#include "tally/values/array.hpp"
#include "tally/values/axes.hpp"

namespace tally {

// sum(x), sum(x, {0, 2}), sum(x, {-1}, true): no axes means all; keepdims leaves them with extent 1.
template <class S> Var<Array<S>> sum(Var<Array<S>> x, const Axes& axes = {}, bool keepdims = false) {
    const auto r = detail::reduction("sum", x.shape(), axes, keepdims);
    if (!r.order.empty()) x = permute(std::move(x), r.order);
    Array<S> y = Array<S>::empty(r.shape, x.value().device());
    on("sum", x.value()).sum(x.value().data(), {y.raw(), Write::set}, r.fold);
    return record<"sum">(
        std::move(y), NothingKept(),
        [fold = r.fold](Pull<Array<S>> to, const Array<S>& dy) {
            on("sum", dy).spread(dy.data(), S(1), destination(to.into(0)), fold);
        },
        std::move(x));
}

template <class S> Var<Array<S>> mean(Var<Array<S>> x, const Axes& axes = {}, bool keepdims = false) {
    const auto r = detail::reduction("mean", x.shape(), axes, keepdims);
    if (!r.order.empty()) x = permute(std::move(x), r.order);
    Array<S> y = Array<S>::empty(r.shape, x.value().device());
    const S count = static_cast<S>(static_cast<double>(r.fold.reduced));
    on("mean", x.value()).mean(x.value().data(), y.raw(), r.fold);
    return record<"mean">(
        std::move(y), NothingKept(),
        [fold = r.fold, count](Pull<Array<S>> to, const Array<S>& dy) {
            on("mean", dy).spread(dy.data(), count, destination(to.into(0)), fold);
        },
        std::move(x));
}

// Where several elements are largest they share the gradient equally.
template <class S> Var<Array<S>> max(Var<Array<S>> x, const Axes& axes = {}, bool keepdims = false) {
    const auto r = detail::reduction("max", x.shape(), axes, keepdims);
    if (r.fold.reduced == 0 && r.shape.size() > 0)
        throw Error("[max] there is no largest of no elements: " + to_string(x.shape()));
    if (!r.order.empty()) x = permute(std::move(x), r.order);
    Array<S> y = Array<S>::empty(r.shape, x.value().device());
    if (y.size()) on("max", x.value()).max(x.value().data(), y.raw(), r.fold);
    return record<"max">(
        std::move(y), keep(x.value(), y),
        [fold = r.fold](Pull<Array<S>> to, const Array<S>& dy, const Array<S>& kept_x,
                        const Array<S>& kept_y) {
            on("max", dy).max_back(dy.data(), kept_x.data(), kept_y.data(), destination(to.into(0)), fold);
        },
        std::move(x));
}

template <class S> Var<Array<S>> logsumexp(Var<Array<S>> x, const Axes& axes = {}, bool keepdims = false) {
    const auto r = detail::reduction("logsumexp", x.shape(), axes, keepdims);
    if (!r.order.empty()) x = permute(std::move(x), r.order);
    Array<S> y = Array<S>::empty(r.shape, x.value().device());
    on("logsumexp", x.value()).logsumexp(x.value().data(), y.raw(), r.fold);
    return record<"logsumexp">(
        std::move(y), keep(x.value(), y),
        [fold = r.fold](Pull<Array<S>> to, const Array<S>& dy, const Array<S>& kept_x,
                        const Array<S>& kept_y) {
            on("logsumexp", dy)
                .logsumexp_back(dy.data(), kept_x.data(), kept_y.data(), destination(to.into(0)), fold);
        },
        std::move(x));
}

namespace detail {

// One axis by its number: sum(x, 0). A bool would be meant for keepdims.
template <class N>
concept AxisNumber = std::integral<N> && !std::same_as<N, bool>;

}  // namespace detail
template <class S, detail::AxisNumber N> Var<Array<S>> sum(Var<Array<S>> x, N axis, bool keepdims = false) {
    return sum(std::move(x), Axes{static_cast<std::int64_t>(axis)}, keepdims);
}
template <class S, detail::AxisNumber N> Var<Array<S>> mean(Var<Array<S>> x, N axis, bool keepdims = false) {
    return mean(std::move(x), Axes{static_cast<std::int64_t>(axis)}, keepdims);
}
template <class S, detail::AxisNumber N> Var<Array<S>> max(Var<Array<S>> x, N axis, bool keepdims = false) {
    return max(std::move(x), Axes{static_cast<std::int64_t>(axis)}, keepdims);
}
template <class S, detail::AxisNumber N>
Var<Array<S>> logsumexp(Var<Array<S>> x, N axis, bool keepdims = false) {
    return logsumexp(std::move(x), Axes{static_cast<std::int64_t>(axis)}, keepdims);
}

template <class S> Var<Array<S>> softmax(Var<Array<S>> x, std::int64_t axis = -1) {
    const Fold fold = detail::fold_around("softmax", x.shape(), axis);
    Array<S> y = empty_like(x.value());
    on("softmax", x.value()).softmax(x.value().data(), y.raw(), fold);
    return record<"softmax">(
        std::move(y), keep(y),
        [fold](Pull<Array<S>> to, const Array<S>& dy, const Array<S>& kept_y) {
            on("softmax", dy).softmax_back(dy.data(), kept_y.data(), destination(to.into(0)), fold);
        },
        std::move(x));
}

template <class S> Var<Array<S>> log_softmax(Var<Array<S>> x, std::int64_t axis = -1) {
    const Fold fold = detail::fold_around("log_softmax", x.shape(), axis);
    Array<S> y = empty_like(x.value());
    on("log_softmax", x.value()).log_softmax(x.value().data(), y.raw(), fold);
    return record<"log_softmax">(
        std::move(y), keep(y),
        [fold](Pull<Array<S>> to, const Array<S>& dy, const Array<S>& kept_y) {
            on("log_softmax", dy).log_softmax_back(dy.data(), kept_y.data(), destination(to.into(0)), fold);
        },
        std::move(x));
}

}  // namespace tally
