// Defines the primitive operations on numbers, with their derivatives and rounding errors.
#include "programs/tape.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace programs {

namespace {

constexpr Number unknown = std::numeric_limits<Number>::infinity();
constexpr Number no_number = std::numeric_limits<Number>::quiet_NaN();  // for undefined values
constexpr Number root_half = 0.707106781186547524400844362104849039L;
constexpr Number density_at_0 = 0.398942280401432677939946059934381868L;

Number magnitude(Number x) { return std::abs(x); }  // also for numbers that a double rounds to 0
// 0 times infinity is NaN, so an error of 0 stays 0 for every slope, and an unknown error stays unknown.
Number times(Number error, Number factor) {
    return error == 0 ? 0 : std::isinf(error) ? unknown : error * factor;
}
Number known(Number error) { return std::isnan(error) ? unknown : error; }

}  // namespace

Tape::Tape(bool wide, bool special)
    : special_(special),
      unit_(wide ? std::numeric_limits<double>::epsilon() / 2 : std::numeric_limits<float>::epsilon() / 2),
      tiny_(4 * (wide ? std::numeric_limits<double>::min() : double(std::numeric_limits<float>::min()))),
      huge_((wide ? std::numeric_limits<double>::max() : double(std::numeric_limits<float>::max())) / 16) {}

int Tape::put(Bounded y, Edge a, Edge b, int same_as) {
    if (!(magnitude(y.value) < huge_)) y.error = unknown;
    y.error = known(y.error);
    const auto needs = [&](Edge& edge) {
        if (edge.to < 0 || !at(edge.to).needs) edge = {};
        if (!(magnitude(edge.slope) < huge_)) edge.error = unknown;
        edge.error = known(edge.error);
        return edge.to >= 0;
    };
    const bool needed_a = needs(a), needed_b = needs(b);
    const int place = static_cast<int>(nodes_.size());
    nodes_.push_back({y, a, b, same_as < 0 ? place : at(same_as).same_as, needed_a || needed_b});
    return place;
}

int Tape::leaf(Number value, bool needs_gradient) {
    // A kernel may multiply the factors in another order, and an intermediate product may then be subnormal.
    const bool tiny = value != 0 && magnitude(value) < Number(1e10L) * tiny_;
    const int x = put({value, tiny ? tiny_ : 0}, {});
    nodes_.back().needs = needs_gradient;
    return x;
}
int Tape::constant(Number value, Number error) { return put({value, error}, {}); }
int Tape::as_constant(int x) { return put(at(x).y, {}, {}, x); }
int Tape::copy(int x) { return put(at(x).y, {x, 1, 0}, {}, x); }
int Tape::without_bound(int x) { return put(at(x).y, {x, 1, unknown}, {}, x); }

int Tape::unary(int x, Number y, Number slope, Number bend, Number rounding, Number slope_rounding) {
    const Number e = at(x).y.error;
    return put({y, times(e, magnitude(slope)) + times(e * e, magnitude(bend)) + unit_ * rounding +
                       (y == 0 ? 0 : tiny_)},
               {x, slope, times(e, magnitude(bend)) + unit_ * slope_rounding + (slope == 0 ? 0 : tiny_)});
}

int Tape::neg(int x) { return put({-at(x).y.value, at(x).y.error}, {x, -1, 0}); }

int Tape::exp(int x) {
    const Bounded& b = at(x).y;
    const Number y = b.error < 0.25 ? std::exp(b.value) : no_number;
    return unary(x, y, y, y, (4 + magnitude(b.value)) * magnitude(y),
                 (4 + magnitude(b.value)) * magnitude(y));
}
int Tape::log(int x) {
    const Bounded& b = at(x).y;
    const Number y = b.error < 0.25 * magnitude(b.value) ? std::log(b.value) : no_number;
    return unary(x, y, 1 / b.value, 1 / (b.value * b.value), 4 * (magnitude(y) + 0.1),
                 2 / magnitude(b.value));
}
int Tape::sqrt(int x) {
    const Bounded& b = at(x).y;
    const Number y = b.error <= 0.25 * magnitude(b.value) ? std::sqrt(b.value) : no_number;
    return unary(x, y, 1 / (2 * y), 1 / (4 * y * b.value), 2 * magnitude(y), 2 / magnitude(y));
}
int Tape::tanh(int x) {
    const Bounded& b = at(x).y;
    const Number y = b.error < 0.1 ? std::tanh(b.value) : no_number, slope = 1 - y * y;
    return unary(x, y, slope, 2 * y * slope, 4 * magnitude(y), 8);
}
int Tape::sigmoid(int x) {
    const Bounded& b = at(x).y;
    const Number y = b.error < 0.1 ? 1 / (1 + std::exp(-b.value)) : no_number, slope = y * (1 - y);
    return unary(x, y, slope, slope, (6 + magnitude(b.value)) * magnitude(y),
                 (8 + magnitude(b.value)) * magnitude(y));
}
int Tape::gelu(int x) {
    const Bounded& b = at(x).y;
    const Number v = b.error < 0.1 ? b.value : no_number;
    const Number below = 0.5L * std::erfc(-v * root_half), density = density_at_0 * std::exp(-0.5L * v * v);
    return unary(x, v * below, below + v * density, density * (2 - v * v), 6 * magnitude(v),
                 8 + 8 * magnitude(v));
}
int Tape::sin(int x) {
    const Number v = at(x).y.value;
    return unary(x, std::sin(v), std::cos(v), std::sin(v), 4, 4);
}
int Tape::cos(int x) {
    const Number v = at(x).y.value;
    return unary(x, std::cos(v), -std::sin(v), std::cos(v), 4, 4);
}

void Tape::decide(Number margin, Number scale) {
    closest_ = std::min(closest_,
                        static_cast<double>(magnitude(margin) / std::max(magnitude(scale), Number(1e-30L))));
}

int Tape::relu(int x) {
    const Bounded& b = at(x).y;
    decide(b.value, 1);
    const bool unclear = b.error > 0 && !(magnitude(b.value) > 16 * b.error);
    undecided_ = undecided_ || unclear;
    return put({std::max(b.value, Number(0)), b.error}, {x, Number(b.value > 0), Number(unclear)});
}
int Tape::abs(int x) {
    const Bounded& b = at(x).y;
    decide(b.value, 1);
    const bool unclear = b.error > 0 && !(magnitude(b.value) > 16 * b.error);
    undecided_ = undecided_ || unclear;
    return put({std::abs(b.value), b.error}, {x, Number((b.value > 0) - (b.value < 0)), Number(2 * unclear)});
}
int Tape::clamp(int x, double low, double high) {
    const Bounded& b = at(x).y;
    bool unclear = false;
    for (const double bound : {low, high}) {
        if (std::isinf(bound)) continue;
        decide(b.value - bound, 1);
        unclear = unclear || (b.error > 0 && !(magnitude(b.value - bound) > 16 * b.error));
    }
    undecided_ = undecided_ || unclear;
    const bool inside = b.value >= low && b.value <= high;
    return put({std::min(std::max(b.value, Number(low)), Number(high)), b.error},
               {x, Number(inside), Number(unclear)});
}

int Tape::pow_number(int x, double n) {
    const Bounded& b = at(x).y;
    if (n == 0) return put({1, 0}, {x, 0, 0});
    if (n == 1) return unary(x, b.value, 1, 0, 4 * magnitude(b.value), 4);
    if (n == 3) {  // at 0 the first and second derivative are 0, so all orders are needed
        const Number v = b.value, e = b.error, size = magnitude(v), y = v * v * v;
        return put(
            {y, times(e, 3 * size * size + 3 * size * e + e * e) + unit_ * 8 * magnitude(y) +
                    (y == 0 ? 0 : tiny_)},
            {x, 3 * v * v, times(e, 6 * size + 3 * e) + unit_ * 8 * 3 * size * size + (v == 0 ? 0 : tiny_)});
    }
    const bool smooth = n == 2;
    const Number v = smooth || b.error < 0.25 * magnitude(b.value) ? b.value : no_number;
    const Number y = std::pow(v, Number(n));
    const Number steep = 4 + 4 * magnitude(n * std::log(std::abs(v) + Number(1e-300L)));
    const Number power = std::pow(v, Number(n - 1));
    const Number slope = magnitude(power) < huge_ ? n * power : no_number;
    return unary(x, y, slope, n * (n - 1) * (n == 2 ? 1 : std::pow(v, Number(n - 2))),
                 y == 0 ? 0 : steep * magnitude(y), slope == 0 ? 0 : steep * magnitude(slope));
}

int Tape::add(int a, int b) {
    const Bounded &p = at(a).y, &q = at(b).y;
    const Number y = p.value + q.value;
    return put({y, p.error + q.error + unit_ * magnitude(y)}, {a, 1, 0}, {b, 1, 0});
}
int Tape::sub(int a, int b) {
    const Bounded &p = at(a).y, &q = at(b).y;
    const Number y = p.value - q.value;
    const bool nothing = at(a).same_as == at(b).same_as && !std::isinf(p.error);
    return put({y, nothing ? 0 : p.error + q.error + unit_ * magnitude(y)}, {a, 1, 0}, {b, -1, 0});
}
int Tape::mul(int a, int b) {
    const Bounded &p = at(a).y, &q = at(b).y;
    const Number y = p.value * q.value;
    const Number e = times(p.error, magnitude(q.value)) + times(q.error, magnitude(p.value)) +
                     times(p.error, q.error) + unit_ * magnitude(y) + (y == 0 ? 0 : tiny_);
    return put({y, e}, {a, q.value, q.error}, {b, p.value, p.error});
}
int Tape::div(int a, int b) {
    const Bounded &p = at(a).y, &q = at(b).y;
    const Number d = q.error < 0.25 * magnitude(q.value) ? q.value : no_number;
    const Number y = p.value / d;
    const Number of_b = times(q.error, magnitude(y / d));
    return put({y, p.error / magnitude(d) + of_b + unit_ * 2 * magnitude(y) + (y == 0 ? 0 : tiny_)},
               {a, 1 / d, q.error / magnitude(d * d) + unit_ * 2 / magnitude(d) + tiny_},
               {b, -y / d,
                p.error / magnitude(d * d) + 2 * of_b / magnitude(d) + unit_ * 4 * magnitude(y / d) + tiny_});
}
int Tape::pow(int a, int b) {
    const Bounded &p = at(a).y, &q = at(b).y;
    const Number x = p.value > 0 && p.error < 0.25 * magnitude(p.value) ? p.value : no_number;
    const Number n = q.value, y = std::pow(x, n), l = std::log(x);
    const Number steep = 4 + 4 * magnitude(n * l);
    const Number power = std::pow(x, n - 1);  // may overflow although n * power is finite
    const Number for_a = n == 0                     ? 0
                         : magnitude(power) < huge_ ? n * power
                                                    : no_number,
                 for_b = y * l, both = std::pow(x, n - 1) * (1 + n * l);
    return put(
        {y, times(p.error, magnitude(for_a)) + times(q.error, magnitude(for_b)) +
                unit_ * steep * magnitude(y) + tiny_},
        {a, for_a,
         times(p.error, magnitude(n * (n - 1) * std::pow(x, n - 2))) + times(q.error, magnitude(both)) +
             unit_ * (steep + 4 * magnitude(l)) * magnitude(for_a) + tiny_},
        {b, for_b,
         times(p.error, magnitude(both)) + times(q.error, magnitude(for_b * l)) +
             unit_ * (steep + 8) * (magnitude(for_b) + magnitude(y)) + tiny_});
}

bool Tape::equal(int a, int b) const {
    const Bounded &p = at(a).y, &q = at(b).y;
    return at(a).same_as == at(b).same_as || (p.error == 0 && q.error == 0 && p.value == q.value);
}
bool Tape::close(int a, int b) {
    const Bounded &p = at(a).y, &q = at(b).y;
    if (at(a).same_as != at(b).same_as) decide(p.value - q.value, 1);
    if (p.error == 0 && q.error == 0) return false;
    const bool unclear = !equal(a, b) && !(magnitude(p.value - q.value) > 16 * (p.error + q.error));
    undecided_ = undecided_ || unclear;
    return unclear;
}

int Tape::maximum(int a, int b, Number sign) {
    const Bounded p = at(a).y, q = at(b).y;
    if (equal(a, b)) {
        closest_ = 0;
        const Number unclear = std::isinf(p.error) ? unknown : 0;
        return put(p, {a, 0.5L, unclear}, {b, 0.5L, unclear});
    }
    const Number unclear = std::isinf(p.error + q.error) ? unknown : close(a, b) ? 1 : 0;
    const bool first = sign * p.value > sign * q.value;
    return put(unclear != 0 ? Bounded{first ? p.value : q.value, std::max(p.error, q.error)}
               : first      ? p
                            : q,
               {a, Number(first), unclear}, {b, Number(!first), unclear});
}

int Tape::sum(const std::vector<int>& all) {
    if (all.empty()) return constant(0);
    int total = copy(all[0]);
    Number size =
        magnitude(at(total).y.value);  // a kernel may add in a different order, with larger partial sums
    for (std::size_t i = 1; i < all.size(); ++i) {
        const Bounded &p = at(total).y, &q = at(all[i]).y;
        size += magnitude(q.value);
        total = put({p.value + q.value, p.error + q.error + unit_ * size}, {total, 1, 0}, {all[i], 1, 0});
    }
    return total;
}

int Tape::largest(const std::vector<int>& all, bool shared) {
    int best = all.at(0);
    for (const int x : all)
        if (at(x).y.value > at(best).y.value) best = x;
    std::vector<int> equals, rivals, others;
    Bounded y = at(best).y;
    for (const int x : all) {
        if (x == best || equal(x, best)) {
            equals.push_back(x);
        } else if (close(x, best)) {
            rivals.push_back(x);
            y.error = std::max(y.error, at(x).y.error);
        } else {
            others.push_back(x);
        }
    }
    if (equals.size() > 1) closest_ = 0;
    const Number unclear = std::isinf(y.error) ? unknown : rivals.empty() ? 0 : 1;
    int result = constant(y.value, y.error);
    if (!shared) equals.resize(1);
    for (const int x : equals)
        result = put(y, {x, Number(1) / static_cast<Number>(equals.size()), unclear + (shared ? unit_ : 0)},
                     {result, 1, 0}, result);
    if (special_)  // the gradient may be NaN, and 0 * NaN is NaN
        for (const int x : others) result = put(y, {x, 0, unclear}, {result, 1, 0}, result);
    for (const int x : rivals) result = put(y, {x, 0, unclear}, {result, 1, 0}, result);
    return result;
}

void Tape::backward(const std::vector<int>& from, const std::vector<Number>& seed, std::vector<bool> reached,
                    std::vector<Bounded>& adjoint) const {
    adjoint.assign(nodes_.size(), {});
    reached.resize(nodes_.size());
    for (std::size_t i = 0; i < from.size(); ++i) adjoint[static_cast<std::size_t>(from[i])].value += seed[i];
    for (std::size_t i = nodes_.size(); i-- > 0;) {
        if (!reached[i]) continue;
        const Bounded g = adjoint[i];
        for (const Edge& edge : {nodes_[i].a, nodes_[i].b}) {
            if (edge.to < 0) continue;
            Bounded& to = adjoint[static_cast<std::size_t>(edge.to)];
            reached[static_cast<std::size_t>(edge.to)] = true;
            const Number part = g.value * edge.slope;
            const bool first = to.value == 0 && to.error == 0;
            to.value += part;
            to.size += magnitude(part);
            const bool exact = edge.error == 0 && (edge.slope == 1 || edge.slope == -1 || edge.slope == 0);
            to.error += times(g.error, magnitude(edge.slope)) + times(edge.error, magnitude(g.value)) +
                        times(g.error, edge.error) +
                        (exact ? 0 : unit_ * 3 * magnitude(part) + (part == 0 ? 0 : tiny_)) +
                        (first ? 0 : unit_ * to.size);
            if (!(magnitude(to.value) < huge_)) to.error = unknown;
            to.error = known(to.error);
        }
    }
}

}  // namespace programs
