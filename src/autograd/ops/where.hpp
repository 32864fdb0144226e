// where(condition, a, b) selects elements of a where the condition is nonzero, and elements of b elsewhere.
// Each element of dy is added to the gradient of the selected operand.
#pragma once

#include <cstdint>
#include <utility>

#include "tally/array/array.hpp"
#include "tally/autograd/record.hpp"

namespace tally {

template <class S>
Var<Array<S>> where(const Array<std::int32_t>& condition, Var<Array<S>> a, Var<Array<S>> b) {
    Shape operands, out;
    if (!detail::broadcasts(a.shape(), b.shape(), operands) ||
        !detail::broadcasts(condition.shape(), operands, out))
        throw Error("[where] cannot broadcast the condition " + to_string(condition.shape()) + " with " +
                    to_string(a.shape()) + " and " + to_string(b.shape()));
    const auto index = detail::broadcast_index(out, condition.shape(), a.shape(), b.shape());
    Array<S> y = Array<S>::empty(out, a.value().device());
    detail::kernels_for("where", a.value(), b.value(), condition)
        .where(index, condition.data(), a.value().data(), b.value().data(), y.raw());
    return record<"where">(
        std::move(y), save(condition),
        [index](GradInputs<Array<S>> to, const Array<S>& dy, const Array<std::int32_t>& saved) {
            const detail::Kernels<S>& kernel = detail::kernels_for("where", dy);
            if (to.needs_grad(0))
                kernel.where_back(index, saved.data(), dy.data(), /*operand*/ 1,
                                  detail::grad_buffer(to.into(0)));
            if (to.needs_grad(1))
                kernel.where_back(index, saved.data(), dy.data(), /*operand*/ 2,
                                  detail::grad_buffer(to.into(1)));
        },
        std::move(a), std::move(b));
}

}  // namespace tally
