// What operations say to shapes and sizes that do not go together.
#include "tally/values/plans.hpp"

#include <string>

#include "tally/base/error.hpp"

namespace tally::detail {

namespace {

std::string extents(const Shape& shape) {  // as they are written in code
    const std::string text = to_string(shape);
    return "{" + text.substr(1, text.size() - 2) + "}";
}

}  // namespace

// Broadcasting would count every pair: (n, 1) against (n) is n * n differences.
void fail_loss_shapes(const char* op, const Shape& prediction, const Shape& target) {
    const std::string way_out =
        prediction.size() == target.size()
            ? "write reshape(prediction, " + extents(target) + ")"
            : "where a target is meant to repeat write broadcast_to(target, " + extents(prediction) + ")";
    throw Error(std::string("[") + op + "] prediction and target must have one shape; they are " +
                to_string(prediction) + " and " + to_string(target) + ": " + way_out);
}

void fail_labels(const Shape& logits, const Shape& labels) {
    const bool column =
        logits.rank() == 2 && labels.rank() > 1 && labels.size() == static_cast<std::size_t>(logits[0]);
    throw Error("[cross_entropy] wants logits (rows, classes) and labels (rows); they are " +
                to_string(logits) + " and " + to_string(labels) +
                (column ? ": write labels.reshaped({" + std::to_string(labels.size()) + "})" : ""));
}

void check_mask(double p, std::uint64_t first, const Shape& x) {
    if (!(p >= 0 && p <= 1))
        throw Error("[dropout] the probability must be between 0 and 1; it is " + std::to_string(p));
    if (x.rank() == 0) throw Error("[dropout] a single number has no items");
    constexpr std::uint64_t limit = std::uint64_t{1} << 32;
    const auto items = static_cast<std::uint64_t>(x[0]);
    if (stride_of(x, 0) > limit || first > limit || items > limit - first)
        throw Error("[dropout] items and their elements are numbered up to 2^32; from item " +
                    std::to_string(first) + " on they are " + to_string(x));
}

Fold plan_rows(const Shape& x, const Shape& gain, const Shape& bias, double eps) {
    if (x.rank() == 0) throw Error("[layer_norm] a single number has no row to normalise");
    const Shape row{x[x.rank() - 1]};
    if (gain != row || bias != row)
        throw Error("[layer_norm] gain and bias of " + to_string(x) + " must be " + to_string(row) +
                    "; they are " + to_string(gain) + " and " + to_string(bias));
    check_eps("layer_norm", eps, x);
    return fold_around("layer_norm", x, -1);
}

void check_split(const Shape& x, const std::vector<std::int64_t>& sizes) {
    if (x.rank() == 0) throw Error("[split] a single number has no rows");
    std::int64_t from = 0;
    for (const std::int64_t size : sizes) {
        if (size < 0)
            throw Error("[split] a part of " + to_string(x) + " cannot have " + std::to_string(size) +
                        " rows");
        if (size > x[0] - from)
            throw Error("[split] after " + std::to_string(from) + " rows there are no " +
                        std::to_string(size) + " more in " + to_string(x));
        from += size;
    }
    if (from != x[0])
        throw Error("[split] the parts hold " + std::to_string(from) + " rows, the array " + to_string(x) +
                    " has " + std::to_string(x[0]));
}

}  // namespace tally::detail
