// Compares numbers bit by bit or within a bound.
#include "course/kit/compare.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

namespace tally::lesson {

namespace {
bool same_bits(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

double distance(double a, double b) { return a == b ? 0 : std::abs(a - b); }

// Returns the reason why the numbers cannot be compared, or an empty string.
std::string objection(const Numbers& got, const Numbers& expected) {
    if (got.missing || expected.missing)
        return got.missing ? "the result has no gradient" : "the expected value has no gradient";
    if (got.shape != expected.shape) {
        return fmt::format("shapes differ: got {}, expected {}", shape_text(got.shape),
                           shape_text(expected.shape));
    }
    if (got.values.empty()) return "nothing was compared: no elements";
    return {};
}

std::string place_of(std::size_t flat, const std::vector<std::int64_t>& shape) {
    if (shape.empty()) return {};
    std::vector<std::int64_t> index(shape.size());
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        const auto extent = static_cast<std::size_t>(shape[axis]);
        index[axis] = static_cast<std::int64_t>(flat % extent);
        flat /= extent;
    }
    return fmt::format(" at {}", shape_text(index));
}

std::string exactly(double number, const Numbers& of) {
    return of.type == Numbers::Type::float32 ? fmt::format("{}", static_cast<float>(number))
                                             : fmt::format("{}", number);
}

// Returns the compared numbers as text, and the worst element with full precision.
std::string operands(const Numbers& got, const Numbers& expected, std::size_t worst, int digits) {
    const std::string element = fmt::format("got {}, expected {}", exactly(got.values[worst], got),
                                            exactly(expected.values[worst], expected));
    if (got.values.size() == 1) return element;
    return fmt::format("got {}, expected {};{}: {}", row_text(got, digits), row_text(expected, digits),
                       place_of(worst, got.shape), element);
}
}  // namespace

Check compared_bitwise(std::string name, const Numbers& got, const Numbers& expected, int digits) {
    Check check{.name = std::move(name)};
    check.detail = objection(got, expected);
    if (!check.detail.empty()) return check;
    double largest = 0;
    std::size_t worst = got.values.size();
    for (std::size_t i = 0; i < got.values.size(); ++i) {
        if (same_bits(got.values[i], expected.values[i])) continue;
        const double difference = distance(got.values[i], expected.values[i]);
        if (worst == got.values.size() || !(difference <= largest)) {
            worst = i;
            largest = difference;
        }
    }
    check.ok = worst == got.values.size();
    check.exact = check.ok;
    if (!check.ok) {
        check.max_diff = largest;
        check.detail = operands(got, expected, worst, digits);
    }
    return check;
}

Check compared_within(std::string name, const Numbers& got, const Numbers& expected, const Numbers& bound,
                      int digits) {
    Check check{.name = std::move(name)};
    check.detail = objection(got, expected);
    const bool one_bound = bound.values.size() == 1;
    if (check.detail.empty() && !one_bound && bound.shape != got.shape) {
        check.detail =
            fmt::format("the bounds' shape {} is not {}", shape_text(bound.shape), shape_text(got.shape));
    }
    if (!check.detail.empty()) return check;

    // The worst element exceeds its bound most or comes nearest to its bound. NaN is never close.
    bool exact = true, close = true;
    double largest = 0, smallest_margin = std::numeric_limits<double>::infinity(), largest_bound = 0;
    std::size_t worst = 0;
    for (std::size_t i = 0; i < got.values.size(); ++i) {
        const double allowed = bound.values[one_bound ? 0 : i];
        const double difference = distance(got.values[i], expected.values[i]);
        exact = exact && same_bits(got.values[i], expected.values[i]);
        close = close && difference <= allowed;
        if (!(difference <= largest)) largest = difference;
        largest_bound = std::max(largest_bound, allowed);
        const double margin = allowed - difference;
        if (!(margin >= smallest_margin)) {
            smallest_margin = std::isnan(margin) ? -std::numeric_limits<double>::infinity() : margin;
            worst = i;
        }
    }
    check.ok = close;
    check.exact = exact;
    check.close = close;
    check.max_diff = largest;
    check.bound = largest_bound;
    if (!close) check.detail = operands(got, expected, worst, digits);
    return check;
}

}  // namespace tally::lesson
