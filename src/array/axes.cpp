// Merges adjacent axes, so that reductions, permutations and broadcasts need few nested loops.
#include "tally/array/axes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "tally/array/array.hpp"
#include "tally/base/error.hpp"
#include "tally/base/text.hpp"

namespace tally::detail {

namespace {

using Strides = std::array<std::ptrdiff_t, max_rank>;  // of an operand, per axis of the output

// Returns whether the gradient of an operand adds more than `longest_sequential_row` adjacent elements of one
// item, because the operand is repeated along the last axes. Kernels first add up such a row by itself, in an
// order that depends only on its length (kernels.hpp), and then add the rows of the items in order.
// So they must see where an item ends.
bool sums_long_rows(const Shape& out, const Strides& stride) {
    std::size_t row = 1;
    for (int axis = out.rank() - 1;
         axis > 0 && (out.begin()[axis] == 1 || stride[static_cast<std::size_t>(axis)] == 0); --axis)
        row *= static_cast<std::size_t>(out.begin()[axis]);
    return row > longest_sequential_row;
}

// Merges two adjacent axes if each operand can step through both axes with one stride. Axis 0 may be the
// axis of the items, so axis 0 is not merged if sums_long_rows() returns true for an operand.
template <int N> void merge(StridedIndex<N>& index, const Shape& out, const std::array<Strides, N>& stride) {
    bool keep_first_axis = false;
    for (std::size_t i = 0; i < N; ++i) keep_first_axis = keep_first_axis || sums_long_rows(out, stride[i]);
    for (int axis = 0; axis < out.rank(); ++axis) {
        const auto at = static_cast<std::size_t>(axis);
        const auto extent = static_cast<std::size_t>(out.begin()[axis]);
        if (extent == 1 && !(keep_first_axis && axis == 0)) continue;
        bool merges = index.rank > (keep_first_axis ? 1 : 0);
        const auto last = static_cast<std::size_t>(index.rank - 1);
        for (std::size_t i = 0; merges && i < N; ++i)
            merges = index.stride[i][last] == stride[i][at] * static_cast<std::ptrdiff_t>(extent);
        const auto into = merges ? last : static_cast<std::size_t>(index.rank++);
        index.extent[into] = merges ? index.extent[into] * extent : extent;
        for (std::size_t i = 0; i < N; ++i) index.stride[i][into] = stride[i][at];
    }
    if (index.rank == 0) {  // a single element
        index.rank = 1;
        index.extent[0] = 1;
        for (auto& s : index.stride) s[0] = 1;
    }
}

template <int N> StridedIndex<N> merged_index(const Shape& out, const std::array<const Shape*, N>& operands) {
    StridedIndex<N> index;
    index.size = out.size();
    bool contiguous = true;
    for (std::size_t i = 0; i < N; ++i) {
        index.operand_size[i] = operands[i]->size();
        contiguous = contiguous && *operands[i] == out;
    }
    if (contiguous) {
        index.rank = 1;
        index.extent[0] = out.size();
        for (auto& stride : index.stride) stride[0] = 1;
        return index;
    }
    std::array<Strides, N> stride{};
    for (std::size_t i = 0; i < N; ++i) {
        const Shape& shape = *operands[i];
        std::ptrdiff_t step = 1;
        for (int axis = shape.rank() - 1; axis >= 0; --axis) {
            const auto at = static_cast<std::size_t>(axis + out.rank() - shape.rank());
            stride[i][at] = shape.begin()[axis] == 1 ? 0 : step;
            step *= shape.begin()[axis];
        }
    }
    merge<N>(index, out, stride);
    return index;
}

std::array<bool, max_rank> named_axes(const char* op, const Shape& shape, const Axes& axes) {
    std::array<bool, max_rank> named{};
    for (std::int64_t axis : axes) {
        bool& flag = named[static_cast<std::size_t>(checked_axis(op, axis, shape))];
        if (flag) throw Error(op, "axis ", axis, " is named twice for ", shape);
        flag = true;
    }
    return named;
}

}  // namespace

ReductionPlan plan_reduction_along(const char* op, const Shape& shape, const Axes& axes, bool keepdims) {
    std::array<bool, max_rank> reduced = named_axes(op, shape, axes);
    if (axes.empty()) reduced.fill(true);

    ReductionPlan r{{1, 1, 1}, {}, {}};
    Axes kept, reduced_axes;
    Extents extents;
    int alternations = 0;  // between kept and reduced axes
    for (int axis = 0; axis < shape.rank(); ++axis) {
        const auto at = static_cast<std::size_t>(axis);
        if (axis > 0 && reduced[at] != reduced[at - 1]) ++alternations;
        (reduced[at] ? reduced_axes : kept).push_back(axis);
        if (!reduced[at])
            extents.push_back(shape.begin()[axis]);
        else if (keepdims)
            extents.push_back(1);
        const auto extent = static_cast<std::size_t>(shape.begin()[axis]);
        if (reduced[at])
            r.dims.reduced *= extent;
        else if (reduced_axes.empty())
            r.dims.outer *= extent;
        else
            r.dims.inner *= extent;
    }
    r.shape = Shape(extents);
    r.dims.in_order = reduced[0] && r.dims.reduced <= longest_sequential_sum;  // axis 0 may be the items
    if (alternations > 2 || (alternations == 2 && reduced[0])) {  // the reduced axes are not adjacent
        r.dims.outer *= r.dims.inner;
        r.dims.inner = 1;
        r.order = kept;
        r.order.insert(r.order.end(), reduced_axes.begin(), reduced_axes.end());
    }
    return r;
}

void require_nonempty_reduction(const char* op, const ReductionPlan& plan, const Shape& shape) {
    if (plan.dims.reduced == 0 && plan.shape.size() > 0)
        throw Error(std::string("[") + op + "] an empty set has no largest element: " + to_string(shape));
}

ReduceDims split_at_axis(const char* op, const Shape& shape, std::int64_t axis) {
    const int middle = checked_axis(op, axis, shape);
    ReduceDims dims{1, static_cast<std::size_t>(shape.begin()[middle]), 1};
    for (int a = 0; a < middle; ++a) dims.outer *= static_cast<std::size_t>(shape.begin()[a]);
    for (int a = middle + 1; a < shape.rank(); ++a) dims.inner *= static_cast<std::size_t>(shape.begin()[a]);
    return dims;
}

Shape unsqueezed(const char* op, const Shape& shape, std::int64_t axis) {
    const std::int64_t rank = shape.rank(), at = axis < 0 ? axis + rank + 1 : axis;
    if (at < 0 || at > rank)
        throw Error(std::string("[") + op + "] a new axis of " + to_string(shape) + " can have position " +
                    std::to_string(-rank - 1) + " to " + std::to_string(rank) + ", not " +
                    std::to_string(axis));
    if (rank == max_rank)
        throw Error(std::string("[") + op + "] cannot add an axis to " + to_string(shape) +
                    ", which has the maximum of " + std::to_string(max_rank) + " axes");
    Extents extents(shape.begin(), shape.end());
    extents.insert(extents.begin() + at, 1);
    return Shape(extents);
}

Shape squeezed(const Shape& shape, const Axes& axes) {
    const std::array<bool, max_rank> named = named_axes("squeeze", shape, axes);
    Extents extents;
    for (int axis = 0; axis < shape.rank(); ++axis) {
        const bool is_named = named[static_cast<std::size_t>(axis)];
        if (is_named && shape.begin()[axis] != 1)
            throw Error("[squeeze] axis " + std::to_string(axis) + " of " + to_string(shape) +
                        " has extent " + std::to_string(shape[axis]) +
                        "; only axes of extent 1 can be removed");
        if (!is_named && !(axes.empty() && shape.begin()[axis] == 1)) extents.push_back(shape.begin()[axis]);
    }
    return Shape(extents);
}

Axes checked_order(const char* op, const Shape& shape, const Axes& order) {
    Axes checked;
    for (std::int64_t axis : order) checked.push_back(checked_axis(op, axis, shape));
    Axes sorted = checked;
    std::sort(sorted.begin(), sorted.end());
    Axes all(static_cast<std::size_t>(shape.rank()));
    std::iota(all.begin(), all.end(), 0);
    if (sorted != all)
        throw Error(std::string("[") + op + "] the order " + to_text(order) +
                    " does not name every axis of " + to_string(shape) + " once");
    return checked;
}

Shape permuted(const Shape& shape, const Axes& order) {
    Extents extents;
    for (std::int64_t axis : order) extents.push_back(shape.begin()[static_cast<int>(axis)]);
    return Shape(extents);
}

StridedIndex<1> permuted_index(const Shape& shape, const Axes& order) {
    StridedIndex<1> index;
    index.size = index.operand_size[0] = shape.size();
    std::array<Strides, 1> stride{};
    for (std::size_t axis = 0; axis < order.size(); ++axis)
        stride[0][axis] = static_cast<std::ptrdiff_t>(stride_of(shape, static_cast<int>(order[axis])));
    merge<1>(index, permuted(shape, order), stride);
    return index;
}

StridedIndex<1> broadcast_index(const Shape& out, const Shape& x) { return merged_index<1>(out, {&x}); }

StridedIndex<2> broadcast_index(const Shape& out, const Shape& a, const Shape& b) {
    return merged_index<2>(out, {&a, &b});
}

StridedIndex<3> broadcast_index(const Shape& out, const Shape& a, const Shape& b, const Shape& c) {
    return merged_index<3>(out, {&a, &b, &c});
}

void require_valid_eps(const char* op, double eps, const Shape& x) {
    if (!(eps >= 0 && std::isfinite(eps)))
        throw Error(std::string("[") + op + "] eps must be finite and at least 0; eps is " + to_text(eps) +
                    ", and the shape of x is " + to_string(x));
}

Shape with_inferred_extent(const char* op, const Shape& shape, const Extents& extents) {
    const auto made_of = [&](const Extents& known) {
        try {
            return Shape(known);
        } catch (const Error& error) {
            throw Error(std::string("[") + op + "] for " + to_string(shape) + ": " + error.what());
        }
    };
    Extents known = extents;
    const auto open = std::find(known.begin(), known.end(), -1);
    if (open == known.end()) return made_of(known);
    *open = 1;
    const bool unique = std::count(known.begin(), known.end(), -1) == 0;
    const std::size_t known_size = unique ? made_of(known).size() : 0;
    if (known_size == 0 || shape.size() % known_size)
        throw Error(std::string("[") + op + "] the extent -1 of " + to_text(extents) +
                    " cannot be computed for " + to_string(shape));
    *open = static_cast<std::int64_t>(shape.size() / known_size);
    return made_of(known);
}

Shape with_extent(const Shape& shape, int axis, std::int64_t extent) {
    Extents extents(shape.begin(), shape.end());
    extents[static_cast<std::size_t>(axis)] = extent;
    return Shape(extents);
}

std::size_t stride_of(const Shape& shape, int axis) {
    std::size_t stride = 1;
    for (int a = axis + 1; a < shape.rank(); ++a) stride *= static_cast<std::size_t>(shape.begin()[a]);
    return stride;
}

void require_valid_rows(const char* op, const Array<std::int32_t>& index, const Shape& whole) {
    if (index.device() != Device::cpu)
        throw Error(op, "the indices must be on cpu, where they are checked; they are on ", index.device());
    for (std::size_t i = 0; i < index.size(); ++i)
        if (index.span()[i] < 0 || index.span()[i] >= whole[0])
            throw Error(op, "index ", index.span()[i], " at position ", i, " is outside the rows of ", whole);
}

Array<std::int32_t> rows_from_front(Array<std::int32_t> index, const Shape& whole) {
    if (whole.rank() == 0) throw Error("[rows] a single number has no rows");
    if (index.shape().rank() != 1)
        throw Error("[rows] the index must have one axis; its shape is " + to_string(index.shape()) +
                    ", and x is " + to_string(whole));
    const auto from_end = [&](std::int32_t i) { return i < 0 && i >= -whole[0]; };
    if (index.device() == Device::cpu && std::any_of(index.span().begin(), index.span().end(), from_end))
        for (std::int32_t* const data = index.writable(); std::int32_t & each : std::span(data, index.size()))
            if (from_end(each)) each += static_cast<std::int32_t>(whole[0]);
    require_valid_rows("rows", index, whole);
    return index;
}

std::int64_t checked_row(const char* op, const Shape& whole, std::int64_t i) {
    const std::int64_t count = whole.rank() == 0 ? 0 : whole[0], row = i < 0 ? i + count : i;
    if (row < 0 || row >= count) throw Error(op, "index ", i, " is outside the first axis of ", whole);
    return row;
}

}  // namespace tally::detail
