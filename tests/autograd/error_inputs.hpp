// Generates random valid calls of every operation. A test then changes one argument. The functions in this
// file decide whether the changed call is valid, and do not use the operations' own checks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autograd/operations.hpp"

namespace tally::test {

using Extents = std::vector<std::int64_t>;

struct Wholes {  // labels or indices
    Extents shape;
    std::vector<std::int32_t> values;

    bool below(std::int64_t end, std::int64_t from = 0) const {
        return std::all_of(values.begin(), values.end(), [&](auto v) { return v >= from && v < end; });
    }
};

struct Call {
    std::vector<Extents> operands;
    Extents whole;                // axes, extents or other integers
    std::vector<double> numbers;  // scalar arguments
    std::vector<Wholes> indices;
};

using Tensors = std::vector<Tensor64>;

struct Operation64 {
    const char* function;  // the name of the C++ function
    const char* name;      // the operation's name in errors
    std::function<Call(Random&)> draw;
    std::function<bool(const Call&)> legal;
    std::function<void(const Call&, const Tensors&, const std::vector<Array<std::int32_t>>&)> run;
};

// ---- which calls are valid ----

inline std::int64_t product(const Extents& extents) {
    std::int64_t all = 1;
    for (const std::int64_t extent : extents) all *= extent;
    return all;
}

inline bool broadcast_together(Extents a, Extents b, Extents* result = nullptr) {
    const std::size_t rank = std::max(a.size(), b.size());
    a.insert(a.begin(), rank - a.size(), 1);
    b.insert(b.begin(), rank - b.size(), 1);
    for (std::size_t i = 0; i < rank; ++i) {
        if (a[i] == 1) a[i] = b[i];
        if (b[i] != 1 && a[i] != b[i]) return false;
    }
    if (result) *result = a;
    return true;
}

inline bool is_axis(std::int64_t axis, const Extents& of) {
    const auto rank = static_cast<std::int64_t>(of.size());
    return -rank <= axis && axis < rank;
}

inline std::int64_t from_front(std::int64_t axis, const Extents& of) {
    return axis < 0 ? axis + static_cast<std::int64_t>(of.size()) : axis;
}

inline bool are_axes(const Extents& axes, const Extents& of) {
    std::set<std::int64_t> seen;
    return std::all_of(axes.begin(), axes.end(), [&](std::int64_t axis) {
        return is_axis(axis, of) && seen.insert(from_front(axis, of)).second;
    });
}

inline bool product_fits(Extents a, Extents b, bool turned_a, bool turned_b) {
    if (a.empty() || b.empty() || (turned_a && a.size() == 1) || (turned_b && b.size() == 1)) return false;
    if (turned_a) std::swap(a[a.size() - 1], a[a.size() - 2]);
    if (turned_b) std::swap(b[b.size() - 1], b[b.size() - 2]);
    if (a.back() != b[b.size() == 1 ? 0 : b.size() - 2]) return false;
    a.resize(a.size() - std::min<std::size_t>(a.size(), 2));
    b.resize(b.size() - std::min<std::size_t>(b.size(), 2));
    return broadcast_together(a, b);
}

inline bool layer_fits(const Call& c) {  // operands are x, weights and perhaps a bias
    const Extents &x = c.operands[0], &w = c.operands[1];
    return w.size() == 2 && !x.empty() && x.back() == w[0] &&
           (c.operands.size() < 3 || c.operands[2] == Extents{w[1]});
}

inline bool features_fit(const Call& c) {
    const Extents& x = c.operands[0];
    return x.size() >= 2 && c.operands[1] == Extents{x[1]} && c.operands[2] == Extents{x[1]};
}

inline bool windows_fit(const Extents& x, std::int64_t tall, std::int64_t wide, std::int64_t stride,
                        std::int64_t padding) {
    constexpr std::int64_t some = 1 << 20;  // paddings of these tests are far below or above `some`
    return tall >= 1 && wide >= 1 && stride >= 1 && padding >= 0 && padding < some &&
           tall <= x[2] + 2 * padding && wide <= x[3] + 2 * padding;
}

inline bool convolution_fits(const Call& c) {
    const Extents &x = c.operands[0], &w = c.operands[1];
    return x.size() == 4 && w.size() == 4 && w[1] == x[1] &&
           (c.operands.size() < 3 || c.operands[2] == Extents{w[0]}) &&
           windows_fit(x, w[2], w[3], c.whole[0], c.whole[1]);
}

inline bool eps_fits(double eps) { return eps >= 0 && std::isfinite(eps); }

// ---- the operations ----

std::vector<Operation64> operations_and_rules();

}  // namespace tally::test
