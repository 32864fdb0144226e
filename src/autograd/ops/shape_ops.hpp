// The shape operations move or repeat elements, and their backward functions move or add gradients.
#pragma once

#include <concepts>
#include <utility>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/array/axes.hpp"
#include "tally/array/shape_checks.hpp"
#include "tally/autograd/record.hpp"

namespace tally {

namespace detail {
// Records a reshape under the name of the called function, such as squeeze.
template <FixedName Name, class S> Var<Array<S>> record_reshape(Var<Array<S>> x, const Shape& shape) {
    return record<Name>(
        x.value().reshaped(shape), save(),
        [before = x.shape()](GradInputs<Array<S>> to, const Array<S>& dy) { to.add(0, dy.reshaped(before)); },
        std::move(x));
}
}  // namespace detail

// Reshapes x. The result shares the buffer of x, and the first gradient of x shares the buffer of dy.
template <class S, std::same_as<Shape> AShape> Var<Array<S>> reshape(Var<Array<S>> x, const AShape& shape) {
    return detail::record_reshape<"reshape">(std::move(x), shape);
}

// An extent of -1, as in reshape(x, {2, -1}), is computed from the number of elements.
template <class S> Var<Array<S>> reshape(Var<Array<S>> x, const detail::Extents& extents) {
    const Shape shape = detail::with_inferred_extent("reshape", x.shape(), extents);
    return reshape(std::move(x), shape);
}

// Removes all axes of extent 1, or only the given axes.
template <class S> Var<Array<S>> squeeze(Var<Array<S>> x, const detail::AxesArg& along = {}) {
    const Shape shape = detail::squeezed(x.shape(), along.axes);
    return detail::record_reshape<"squeeze">(std::move(x), shape);
}

// Inserts an axis of extent 1 at position `axis`.
template <class S> Var<Array<S>> unsqueeze(Var<Array<S>> x, std::int64_t axis) {
    const Shape shape = detail::unsqueezed("unsqueeze", x.shape(), axis);
    return detail::record_reshape<"unsqueeze">(std::move(x), shape);
}

// Reorders the axes: axis i of the result is axis order[i] of x.
template <class S> Var<Array<S>> permute(Var<Array<S>> x, const detail::Axes& order) {
    const detail::Axes axes = detail::checked_order("permute", x.shape(), order);
    const detail::StridedIndex<1> walk = detail::permuted_index(x.shape(), axes);
    Array<S> y = Array<S>::empty(detail::permuted(x.shape(), axes), x.value().device());
    detail::kernels_for("permute", x.value()).gather(walk, x.value().data(), {y.raw(), Write::set});
    return record<"permute">(
        std::move(y), save(),
        [walk](GradInputs<Array<S>> to, const Array<S>& dy) {
            detail::kernels_for("permute", dy).scatter(walk, dy.data(), detail::grad_buffer(to.into(0)));
        },
        std::move(x));
}

// Swaps two axes, by default the last two.
template <class S> Var<Array<S>> transpose(Var<Array<S>> x, std::int64_t a = -2, std::int64_t b = -1) {
    const int first = detail::checked_axis("transpose", a, x.shape()),
              second = detail::checked_axis("transpose", b, x.shape());
    detail::Axes order;
    for (int axis = 0; axis < x.shape().rank(); ++axis)
        order.push_back(axis == first ? second : axis == second ? first : axis);
    return permute(std::move(x), order);
}

// Repeats x along new axes and along axes of extent 1.
template <class S> Var<Array<S>> broadcast_to(Var<Array<S>> x, const Shape& shape) {
    if (detail::broadcast("broadcast_to", x.shape(), shape) != shape)
        throw Error("[broadcast_to] " + to_string(x.shape()) + " does not fit into " + to_string(shape));
    const detail::StridedIndex<1> walk = detail::broadcast_index(shape, x.shape());
    Array<S> y = Array<S>::empty(shape, x.value().device());
    detail::kernels_for("broadcast_to", x.value()).gather(walk, x.value().data(), {y.raw(), Write::set});
    return record<"broadcast_to">(
        std::move(y), save(),
        [walk](GradInputs<Array<S>> to, const Array<S>& dy) {
            detail::kernels_for("broadcast_to", dy).scatter(walk, dy.data(), detail::grad_buffer(to.into(0)));
        },
        std::move(x));
}

// Returns the elements [from, to) of one axis. A slice along the first axis shares the buffer of x.
template <class S>
Var<Array<S>> slice(Var<Array<S>> x, std::int64_t axis, std::int64_t from, std::int64_t to) {
    const int along = detail::checked_axis("slice", axis, x.shape());
    if (from < 0 || to < from || to > x.shape()[along]) detail::fail_slice_range(from, to, along, x.shape());
    if (along == 0 && !x.requires_grad()) return x.value().slice_rows(from, to);  // a constant view
    const detail::Blocks blocks(x.shape(), along, from, to);
    Array<S> y;
    if (along == 0) {
        y = x.value().slice_rows(from, to);
    } else {
        y = Array<S>::empty(detail::with_extent(x.shape(), along, to - from), x.value().device());
        detail::kernels_for("slice", x.value())
            .block(x.value().data() + blocks.start, blocks.pitch, {y.raw(), Write::set}, blocks.width,
                   blocks.count, blocks.width);
    }
    return record<"slice">(
        std::move(y), save(),
        [blocks](GradInputs<Array<S>> grads, const Array<S>& dy) {
            const Into<Array<S>> into = grads.into(0);
            const Into<S[]> dx = detail::grad_buffer(into);
            const detail::Kernels<S>& kernel = detail::kernels_for("slice", dy);
            if (dx.how == Write::set) kernel.fill(S(0), dx.dst, into.dst.size());
            kernel.block(dy.data(), blocks.width, {dx.dst + blocks.start, dx.how}, blocks.pitch, blocks.count,
                         blocks.width);
        },
        std::move(x));
}

// Returns x[i], an array without the first axis. A negative i counts from the end of the axis.
template <class S> Var<Array<S>> at(Var<Array<S>> x, std::int64_t i) {
    const std::int64_t row = detail::checked_row("at", x.shape(), i);
    Var<Array<S>> part = slice(std::move(x), 0, row, row + 1);
    const Shape shape = detail::squeezed(part.shape(), {0});
    return detail::record_reshape<"at">(std::move(part), shape);
}

// Joins arrays along `axis`. The extents of all axes except `axis` must be equal.
template <class S> Var<Array<S>> concat(std::vector<Var<Array<S>>> parts, std::int64_t axis = 0) {
    const auto [along, whole] = detail::plan_concat(detail::shapes_of(parts), axis);
    Array<S> y = Array<S>::empty(whole, parts[0].value().device());
    std::vector<detail::Blocks> all_blocks;
    std::int64_t from = 0;
    for (const auto& part : parts) {
        const std::int64_t to = from + part.shape()[along];
        const detail::Blocks& blocks = all_blocks.emplace_back(whole, along, from, to);
        detail::kernels_for("concat", y, part.value())
            .block(part.value().data(), blocks.width, {y.raw() + blocks.start, Write::set}, blocks.pitch,
                   blocks.count, blocks.width);
        from = to;
    }
    return detail::record_many<"concat">(
        std::move(y), save(),
        [all_blocks](GradInputs<Array<S>> to, const Array<S>& dy) {
            for (std::size_t i = 0; i < all_blocks.size(); ++i) {
                if (!to.needs_grad(i)) continue;
                const detail::Blocks& blocks = all_blocks[i];
                detail::kernels_for("concat", dy)
                    .block(dy.data() + blocks.start, blocks.pitch, detail::grad_buffer(to.into(i)),
                           blocks.width, blocks.count, blocks.width);
            }
        },
        std::move(parts));
}

// Joins arrays of the same shape along a new axis.
template <class S> Var<Array<S>> stack(std::vector<Var<Array<S>>> parts, std::int64_t axis = 0) {
    const Shape each = detail::plan_stack(detail::shapes_of(parts), axis);
    for (Var<Array<S>>& part : parts) part = reshape(std::move(part), each);
    return concat(std::move(parts), axis);
}

// Splits the rows of x into micro-batches. With split(x, size), the last micro-batch may be smaller.
template <class S>
std::vector<Var<Array<S>>> split(const Var<Array<S>>& x, const std::vector<std::int64_t>& sizes) {
    detail::require_valid_split(x.shape(), sizes);
    std::vector<Var<Array<S>>> parts;
    parts.reserve(sizes.size());
    std::int64_t from = 0;
    for (const std::int64_t size : sizes) {
        parts.push_back(slice(x, 0, from, from + size));
        from += size;
    }
    return parts;
}

template <class S> std::vector<Var<Array<S>>> split(const Var<Array<S>>& x, std::int64_t size) {
    detail::require_valid_split(x.shape(), size);
    const std::int64_t rows = x.shape()[0];
    std::vector<Var<Array<S>>> parts;
    parts.reserve(static_cast<std::size_t>(rows / size + 1));
    for (std::int64_t from = 0, to = 0; from < rows; from = to) {
        to = size < rows - from ? from + size : rows;
        parts.push_back(slice(x, 0, from, to));
    }
    return parts;
}

// Selects rows of x, in any order and with repetitions. A negative index counts from the last row.
template <class S> Var<Array<S>> rows(Var<Array<S>> x, const Array<std::int32_t>& index) {
    const Shape& shape = x.shape();
    const Array<std::int32_t> front_index = detail::rows_from_front(index, shape);
    const auto height = static_cast<std::size_t>(shape[0]);
    const auto count = index.size(), width = detail::stride_of(shape, 0);
    const Array<std::int32_t> on_device = front_index.to(x.value().device());
    Array<S> y =
        Array<S>::empty(detail::with_extent(shape, 0, static_cast<std::int64_t>(count)), x.value().device());
    detail::kernels_for("rows", x.value()).rows(x.value().data(), on_device.data(), y.raw(), count, width);
    return record<"rows">(
        std::move(y), save(on_device),
        [count, height, width](GradInputs<Array<S>> to, const Array<S>& dy,
                               const Array<std::int32_t>& saved) {
            detail::kernels_for("rows", dy)
                .rows_back(dy.data(), saved.data(), detail::grad_buffer(to.into(0)), count, height, width);
        },
        std::move(x));
}

}  // namespace tally
