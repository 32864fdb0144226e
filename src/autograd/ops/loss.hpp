// Losses. Each gives its sum and its count: a mean is only right once it is known what it is a mean of.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "autograd/array.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/var.hpp"

namespace tally {

template <class T>
struct Loss {
    Var<T> sum;    // over everything that counts
    Var<T> count;  // how much that is; carries no gradient
    Var<T> mean() const { return sum / count; }
};

template <class S>
Loss<Array<S>> counted(Var<Array<S>> each) {
    Array<S> count =
        Array<S>::full({}, static_cast<S>(static_cast<double>(each.value().size())), each.value().device());
    return {sum(std::move(each)), Var<Array<S>>(std::move(count))};
}

template <class S>
Loss<Array<S>> mse(Var<Array<S>> prediction, Var<Array<S>> target) {
    return counted(squared_difference(std::move(prediction), std::move(target)));
}

// Of probabilities against targets between 0 and 1; logarithms stop at -100.
template <class S>
Loss<Array<S>> binary_cross_entropy(Var<Array<S>> probability, Var<Array<S>> target) {
    return counted(apply(functor::BinaryCrossEntropy{}, std::move(probability), std::move(target)));
}

// Of logits (rows, classes) against one label a row; rows labelled `ignore` count for nothing.
template <class S>
Loss<Array<S>> cross_entropy(Var<Array<S>> logits, const Array<std::int32_t>& labels,
                             std::int32_t ignore = -100) {
    const Shape& shape = logits.shape();
    if (shape.rank() != 2 || labels.shape().rank() != 1 || labels.shape()[0] != shape[0])
        throw Error("[cross_entropy] wants logits (rows, classes) and labels (rows); they are " +
                    to_string(shape) + " and " + to_string(labels.shape()));
    const auto count = static_cast<std::size_t>(shape[0]), classes = static_cast<std::size_t>(shape[1]);
    const Array<S>& x = logits.value();
    const Kernels<S>& kernel = on("cross_entropy", x, labels);
    Array<S> probabilities = empty_like(x), total = Array<S>::empty({}, x.device()),
             counted_rows = Array<S>::empty({}, x.device());
    kernel.cross_entropy(x.data(), labels.data(), ignore, probabilities.raw(), total.raw(),
                         counted_rows.raw(), count, classes);
    Var<Array<S>> sum = record<"cross_entropy">(
        std::move(total), keep(probabilities, labels),
        [ignore, count, classes](Pull<Array<S>> to, const Array<S>& dy, const Array<S>& kept,
                                 const Array<std::int32_t>& kept_labels) {
            on("cross_entropy", dy)
                .cross_entropy_back(dy.data(), kept.data(), kept_labels.data(), ignore,
                                    destination(to.into(0)), count, classes);
        },
        std::move(logits));
    return {std::move(sum), Var<Array<S>>(std::move(counted_rows))};
}

}  // namespace tally
