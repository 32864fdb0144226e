// matmul(), linear() and linear_relu() multiply matrices.
#pragma once

#include <cstddef>
#include <utility>

#include "tally/array/array.hpp"
#include "tally/array/deferred_weight_grad.hpp"
#include "tally/autograd/record.hpp"

namespace tally {

namespace detail {
template <class S> Var<Array<S>> matmul_batched(const ProductPlan& plan, Var<Array<S>> a, Var<Array<S>> b);
}

// Multiplies vectors, matrices or batches that broadcast. With {.transpose_b = true}, b is transposed first.
template <class S>
Var<Array<S>> matmul(Var<Array<S>> a, Var<Array<S>> b, const detail::TransposeOptions& options = {}) {
    const auto plan = detail::plan_product("matmul", a.shape(), b.shape(), options);
    if (plan.batch) return detail::matmul_batched(plan, std::move(a), std::move(b));
    Array<S> y = Array<S>::empty(plan.shape, a.value().device());
    detail::multiply(plan.product, a.value(), b.value(), {y.raw(), Write::set});
    return record<"matmul">(
        std::move(y),
        std::tuple(save_if(b.requires_grad(), a.value()), save_if(a.requires_grad(), b.value())),
        [p = plan.product](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>& saved_a,
                           const Array<S>& saved_b) {
            if (to.needs_grad(0)) {
                const Into<S[]> da = detail::grad_buffer(to.into(0));
                p.transpose_a ? detail::multiply(detail::product_for_a(p), saved_b, dy, da)
                              : detail::multiply(detail::product_for_a(p), dy, saved_b, da);
            }
            if (to.needs_grad(1)) {
                const Into<S[]> db = detail::grad_buffer(to.into(1));
                p.transpose_b ? detail::multiply(detail::product_for_b(p), dy, saved_a, db)
                              : detail::multiply(detail::product_for_b(p), saved_a, dy, db);
            }
        },
        std::move(a), std::move(b));
}

template <class T> void matmul(Var<T>, Var<T>, detail::Arithmetic auto,  // write {.transpose_b = true}
                               bool = false) = delete;

namespace detail {
template <class S> Var<Array<S>> matmul_batched(const ProductPlan& plan, Var<Array<S>> a, Var<Array<S>> b) {
    Array<S> y = Array<S>::empty(plan.shape, a.value().device());
    multiply_each<S>(*plan.batch, plan.product, a.value(), b.value(), {y.raw(), Write::set},
                     {forward_a, forward_b, forward_c});
    return record<"matmul">(
        std::move(y),
        std::tuple(save_if(b.requires_grad(), a.value()), save_if(a.requires_grad(), b.value())),
        [p = plan.product, batch = *plan.batch](GradInputs<Array<S>> to, const Array<S>& dy,
                                                const Array<S>& saved_a, const Array<S>& saved_b) {
            if (to.needs_grad(0)) {
                const Into<S[]> da = summed_grad_buffer(to.into(0), batch.size, batch.operand_size[0]);
                if (p.transpose_a)
                    multiply_each<S>(batch, product_for_a(p), saved_b, dy, da,
                                     {forward_b, forward_c, forward_a});
                else
                    multiply_each<S>(batch, product_for_a(p), dy, saved_b, da,
                                     {forward_c, forward_b, forward_a});
            }
            if (to.needs_grad(1)) {
                const Into<S[]> db = summed_grad_buffer(to.into(1), batch.size, batch.operand_size[1]);
                if (p.transpose_b)
                    multiply_each<S>(batch, product_for_b(p), dy, saved_a, db,
                                     {forward_c, forward_a, forward_b});
                else
                    multiply_each<S>(batch, product_for_b(p), saved_a, dy, db,
                                     {forward_a, forward_c, forward_b});
            }
        },
        std::move(a), std::move(b));
}

// Adds the gradients of x and w, where dz is the gradient of x · w.
template <class S> void add_factor_grads(GradInputs<Array<S>> to, const Array<S>& dz, const Array<S>& x,
                                         const Array<S>& w, std::size_t rows, std::size_t in,
                                         std::size_t out) {
    if (to.needs_grad(0)) multiply({rows, in, out, false, true}, dz, w, grad_buffer(to.into(0)));
    if (to.needs_grad(1)) accumulate_weight_grad({in, out, rows, true, false}, x, dz, to, 1);
}

// Records x · w + bias, or x · w without a bias.
template <class S, class... Bias>
[[gnu::always_inline]] inline Var<Array<S>> record_linear(const LinearPlan& plan, Var<Array<S>> x,
                                                          Var<Array<S>> w, Bias... bias) {
    Array<S> y = Array<S>::empty(plan.shape, x.value().device());
    const S* start = nullptr;  // the bias, with which the sums of each row begin, or null
    ((start = bias.value().data()), ...);
    kernels_for("linear", x.value(), w.value(), bias.value()...)
        .linear(x.value().data(), w.value().data(), start, y.raw(), plan.rows, plan.out, plan.in);
    return record<"linear">(
        std::move(y),
        std::tuple(save_if(w.requires_grad(), x.value()), save_if(x.requires_grad(), w.value())),
        [rows = plan.rows, in = plan.in, out = plan.out](GradInputs<Array<S>> to, const Array<S>& dy,
                                                         const Array<S>& saved_x, const Array<S>& saved_w) {
            add_factor_grads(to, dy, saved_x, saved_w, rows, in, out);
            if constexpr (sizeof...(Bias) == 1)
                if (to.needs_grad(2))
                    kernels_for("linear", dy)
                        .sum(dy.data(), grad_buffer(to.into(2)), ReduceDims{1, rows, out, /*in_order*/ true});
        },
        std::move(x), std::move(w), std::move(bias)...);
}
}  // namespace detail

// Computes x (..., in) · w (in, out) + bias (out) by one kernel.
template <class S> Var<Array<S>> linear(Var<Array<S>> x, Var<Array<S>> w, Var<Array<S>> bias) {
    const auto plan = detail::plan_linear("linear", x.shape(), w.shape(), &bias.shape());
    return detail::record_linear(plan, std::move(x), std::move(w), std::move(bias));
}

// Computes relu(linear(x, w, bias)) as one operation. In the backward function, one kernel masks dy and sums
// the gradient of the bias.
template <class S> Var<Array<S>> linear_relu(Var<Array<S>> x, Var<Array<S>> w, Var<Array<S>> bias) {
    const auto plan = detail::plan_linear("linear_relu", x.shape(), w.shape(), &bias.shape());
    Array<S> y = Array<S>::empty(plan.shape, x.value().device());
    detail::kernels_for("linear_relu", x.value(), w.value(), bias.value())
        .linear_relu(x.value().data(), w.value().data(), bias.value().data(), y.raw(), plan.rows, plan.out,
                     plan.in);
    return record<"linear_relu">(
        std::move(y),
        std::tuple(save_if(true, y), save_if(w.requires_grad(), x.value()),
                   save_if(x.requires_grad(), w.value())),
        [rows = plan.rows, in = plan.in, out = plan.out](GradInputs<Array<S>> to, const Array<S>& dy,
                                                         const Array<S>& saved_y, const Array<S>& saved_x,
                                                         const Array<S>& saved_w) {
            Array<S> dz = to.can_reuse_dy() && detail::can_be_overwritten(dy) ? dy : Array<S>::empty_like(dy);
            const Into<S[]> dbias =
                to.needs_grad(2) ? detail::grad_buffer(to.into(2)) : Into<S[]>{nullptr, Write::set};
            detail::kernels_for("linear_relu", dy)
                .relu_bias_back(dy.data(), saved_y.data(), dz.raw(), dbias, rows, out);
            detail::add_factor_grads(to, dz, saved_x, saved_w, rows, in, out);
        },
        std::move(x), std::move(w), std::move(bias));
}

template <class S> Var<Array<S>> linear(Var<Array<S>> x, Var<Array<S>> w) {
    const auto plan = detail::plan_linear("linear", x.shape(), w.shape(), nullptr);
    return detail::record_linear(plan, std::move(x), std::move(w));
}

}  // namespace tally
