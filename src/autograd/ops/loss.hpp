// A Loss contains a sum and a count, because the mean over several micro-batches requires both numbers.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tally/array/array.hpp"
#include "tally/array/factories.hpp"
#include "tally/array/shape_checks.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/record.hpp"

namespace tally {

template <class T> struct Loss {
    Var<T> sum;    // over all elements that count
    Var<T> count;  // the number of these elements, without a gradient

    Loss() = default;
    Loss(Var<T> total, Var<T> counted) : sum(std::move(total)), count(std::move(counted)) {}
    // Creates a Loss whose sum is the sum of `terms`, and whose count is the number of terms.
    explicit Loss(Var<T> terms) {
        using S = std::remove_cvref_t<decltype(*terms.value().data())>;
        count = Var<T>(
            T::full({}, static_cast<S>(static_cast<double>(terms.value().size())), terms.value().device()));
        sum = tally::sum(std::move(terms));
    }
    Var<T> mean() const { return sum / count; }

    // checkpoint() uses value_type, the type of both variables, and each(), which visits both variables.
    using value_type = Var<T>;
    template <class Visit> void each(Visit visit) {
        visit(sum);
        visit(count);
    }
};

// Computes the squared error of each element. The shapes must be equal; use broadcast_to() if they are not.
template <class S> Loss<Array<S>> mse(Var<Array<S>> prediction, Var<Array<S>> target) {
    if (prediction.shape() != target.shape())
        detail::fail_loss_shapes("mse", prediction.shape(), target.shape());
    return Loss(detail::squared_difference(std::move(prediction), std::move(target)));
}

// Compares probabilities with targets between 0 and 1. Logarithms below -100 become -100.
template <class S> Loss<Array<S>> binary_cross_entropy(Var<Array<S>> probability, Var<Array<S>> target) {
    if (probability.shape() != target.shape())
        detail::fail_loss_shapes("binary_cross_entropy", probability.shape(), target.shape());
    return Loss(apply(functor::BinaryCrossEntropy{}, std::move(probability), std::move(target)));
}

namespace detail {
// The options choose which rows cross_entropy() ignores, and how much the targets are smoothed.
struct CrossEntropyOptions {
    std::int32_t ignore = -100;  // rows with this label do not count
    double smoothing = 0;        // the part of a row's target that is divided among all classes
};
}  // namespace detail

// Compares logits (rows, classes) with one label per row.
template <class S> Loss<Array<S>> cross_entropy(Var<Array<S>> logits, const Array<std::int32_t>& labels,
                                                const detail::CrossEntropyOptions& options = {}) {
    const Shape& shape = logits.shape();
    detail::require_cross_entropy_args(shape, labels.shape(), options.smoothing);
    const detail::LabelOptions settings{options.ignore, options.smoothing};
    const auto count = static_cast<std::size_t>(shape[0]), classes = static_cast<std::size_t>(shape[1]);
    const Array<S>& x = logits.value();
    const detail::Kernels<S>& kernel = detail::kernels_for("cross_entropy", x, labels);
    Array<S> probabilities = Array<S>::empty_like(x), total = Array<S>::empty({}, x.device()),
             counted_rows = Array<S>::empty({}, x.device());
    kernel.cross_entropy(x.data(), labels.data(), settings, probabilities.raw(), total.raw(),
                         counted_rows.raw(), count, classes);
    Var<Array<S>> sum = record<"cross_entropy">(
        std::move(total), save(probabilities, labels),
        [settings, count, classes](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>& saved,
                                   const Array<std::int32_t>& saved_labels) {
            detail::kernels_for("cross_entropy", dy)
                .cross_entropy_back(dy.data(), saved.data(), saved_labels.data(), settings,
                                    detail::grad_buffer(to.into(0)), count, classes);
        },
        std::move(logits));
    return {std::move(sum), Var<Array<S>>(std::move(counted_rows))};
}

template <class S> Loss<Array<S>> cross_entropy(Var<Array<S>>,  // write {.ignore = 0} or {.smoothing = 0.1}
                                                const Array<std::int32_t>&, detail::Arithmetic auto) = delete;

// Computes a contrastive loss, which is small if each query is most similar to the key of the same row. Each
// query is compared with all keys of the batch, so splitting the batch changes the loss.
template <class S>
Loss<Array<S>> info_nce(Var<Array<S>> queries, Var<Array<S>> keys, double temperature = 1) {
    detail::require_info_nce_args(queries.shape(), keys.shape(), temperature);
    const Array<std::int32_t> labels =
        detail::counting<std::int32_t>(queries.shape()[0]).to(queries.value().device());
    return cross_entropy(matmul(std::move(queries), std::move(keys), {.transpose_b = true}) / temperature,
                         labels);
}

}  // namespace tally
