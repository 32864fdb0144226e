#include "tally/array/shape_checks.hpp"

#include <cmath>
#include <string>

#include "tally/base/error.hpp"
#include "tally/base/text.hpp"

namespace tally::detail {

namespace {

std::string extents(const Shape& shape) {  // in the syntax of C++: {2, 3}
    const std::string text = to_string(shape);
    return "{" + text.substr(1, text.size() - 2) + "}";
}

}  // namespace

void fail_clamp_bounds(double low, double high) {
    throw Error("[clamp] the bounds must be numbers; they are " + to_text(low) + " and " + to_text(high));
}

void fail_slice_range(std::int64_t from, std::int64_t to, int axis, const Shape& x) {
    const std::int64_t count = x[axis], begin = from < 0 ? from + count : from,
                       end = to < 0 || (to == 0 && from < 0) ? to + count : to;  // as counted from the end
    const bool negative = (from < 0 || to < 0) && 0 <= begin && begin <= end && end <= count;
    throw Error("[slice] " + std::to_string(from) + " to " + std::to_string(to) + " is not within axis " +
                std::to_string(axis) + " of " + to_string(x) +
                (negative ? "; slice() does not count from the end: write slice(x, " + std::to_string(axis) +
                                ", " + std::to_string(begin) + ", " + std::to_string(end) + ")"
                          : ""));
}

// Losses do not broadcast, because the shapes (n, 1) and (n) would give n * n differences.
void fail_loss_shapes(const char* op, const Shape& prediction, const Shape& target) {
    const std::string remedy =
        prediction.size() == target.size()
            ? "write reshape(prediction, " + extents(target) + ")"
            : "if a target should repeat, write broadcast_to(target, " + extents(prediction) + ")";
    throw Error(std::string("[") + op + "] prediction and target must have the same shape; they are " +
                to_string(prediction) + " and " + to_string(target) + ": " + remedy);
}

void require_cross_entropy_args(const Shape& logits, const Shape& labels, double smoothing) {
    const bool column =
        logits.rank() == 2 && labels.rank() > 1 && labels.size() == static_cast<std::size_t>(logits[0]);
    if (logits.rank() != 2 || labels.rank() != 1 || labels[0] != logits[0])
        throw Error("[cross_entropy] requires logits (rows, classes) and labels (rows); they are " +
                    to_string(logits) + " and " + to_string(labels) +
                    (column ? ": write labels.reshaped({" + std::to_string(labels.size()) + "})" : ""));
    if (!(smoothing >= 0 && smoothing <= 1))
        throw Error("[cross_entropy] the smoothing must be between 0 and 1; it is " + to_text(smoothing));
}

void require_info_nce_args(const Shape& queries, const Shape& keys, double temperature) {
    if (queries.rank() != 2 || queries != keys)
        throw Error("[info_nce] requires queries and keys of the same shape (rows, width); they are " +
                    to_string(queries) + " and " + to_string(keys));
    if (!(temperature > 0 && std::isfinite(temperature)))
        throw Error("[info_nce] the temperature must be above 0 and finite; it is " + to_text(temperature));
}

void require_dropout_args(double p, std::uint64_t first, const Shape& x) {
    if (!(p >= 0 && p <= 1))
        throw Error("[dropout] the probability must be between 0 and 1; it is " + to_text(p));
    if (x.rank() == 0) throw Error("[dropout] a single number has no items");
    constexpr std::uint64_t limit = std::uint64_t{1} << 32;
    const auto items = static_cast<std::uint64_t>(x[0]);
    if (std::uint64_t{stride_of(x, 0)} > limit || first > limit || items > limit - first)
        throw Error("dropout", "the indices of the items, and the number of elements in one item, ",
                    "must not exceed 2^32; the first item is ", first, ", x is ", x);
}

ReduceDims plan_layer_norm(const Shape& x, const Shape& gain, const Shape& bias, double eps) {
    if (x.rank() == 0) throw Error("[layer_norm] a single number has no row to normalise");
    const Shape row{x[x.rank() - 1]};
    if (gain != row || bias != row)
        throw Error("[layer_norm] gain and bias of " + to_string(x) + " must be " + to_string(row) +
                    "; they are " + to_string(gain) + " and " + to_string(bias));
    require_valid_eps("layer_norm", eps, x);
    return split_at_axis("layer_norm", x, -1);
}

ConcatPlan plan_concat(const std::vector<Shape>& parts, std::int64_t axis) {
    if (parts.empty()) throw Error("[concat] there is nothing to put together");
    const Shape& first = parts[0];
    const int along = checked_axis("concat", axis, first);
    std::int64_t total = 0;
    for (const Shape& part : parts) {
        if (part.rank() != first.rank() || with_extent(part, along, first[along]) != first)
            throw Error("[concat] cannot put " + to_string(part) + " next to " + to_string(first) +
                        " along axis " + std::to_string(along));
        total += part[along];
    }
    return {along, with_extent(first, along, total)};
}

Shape plan_stack(const std::vector<Shape>& parts, std::int64_t axis) {
    if (parts.empty()) throw Error("[stack] there is nothing to put together");
    for (const Shape& part : parts)
        if (part != parts[0])
            throw Error("[stack] all must have the same shape; they are " + to_string(parts[0]) + " and " +
                        to_string(part));
    return unsqueezed("stack", parts[0], axis);
}

static void require_valid_part(const Shape& x, std::int64_t size, std::int64_t least) {
    if (x.rank() == 0) throw Error("[split] a single number has no rows");
    if (size < least)
        throw Error("[split] a part of " + to_string(x) + " cannot have " + std::to_string(size) + " rows");
}

void require_valid_split(const Shape& x, std::int64_t size) { require_valid_part(x, size, 1); }

void require_valid_split(const Shape& x, const std::vector<std::int64_t>& sizes) {
    std::int64_t from = 0;
    require_valid_part(x, 0, 0);
    for (const std::int64_t size : sizes) {
        require_valid_part(x, size, 0);
        if (size > x[0] - from)
            throw Error("split", "a part of ", size, " rows begins at row ", from, ", but ", x, " has ", x[0],
                        " rows");
        from += size;
    }
    if (from != x[0])
        throw Error("[split] the parts hold " + std::to_string(from) + " rows, the array " + to_string(x) +
                    " has " + std::to_string(x[0]));
}

}  // namespace tally::detail
