// Compares numbers bit by bit or within a bound.
#include "course/kit/compare.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

namespace tally::lesson {

namespace {
// Returns the reason why the numbers cannot be compared, or an empty string.
std::string objection(const Numbers& got, const Numbers& expected, const Numbers* bound) {
    if (got.missing) return "the result has no gradient";
    if (expected.missing) return "the expected value has no gradient";
    if (got.shape != expected.shape)
        return fmt::format("shapes differ: got {}, expected {}", shape_text(got.shape),
                           shape_text(expected.shape));
    if (got.values.empty()) return "nothing was compared: no elements";
    if (bound != nullptr && bound->values.size() != 1 && bound->shape != got.shape)
        return fmt::format("the bounds' shape {} is not {}", shape_text(bound->shape), shape_text(got.shape));
    return {};
}

std::string place_of(std::size_t flat, const std::vector<std::int64_t>& shape) {
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

Check compared(std::string name, const Numbers& got, const Numbers& expected, const Numbers* bound,
               int digits) {
    Check check{.name = std::move(name), .detail = objection(got, expected, bound)};
    if (!check.detail.empty()) return check;

    // The worst element exceeds its bound most or comes nearest to its bound. NaN is never close.
    constexpr double inf = std::numeric_limits<double>::infinity();
    bool exact = true, close = true;
    double largest = 0, smallest_margin = inf, largest_bound = 0;
    std::size_t worst = 0;
    for (std::size_t i = 0; i < got.values.size(); ++i) {
        const double a = got.values[i], b = expected.values[i];
        const bool same = std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
        exact = exact && same;
        if (bound == nullptr && same) continue;
        const double allowed = bound == nullptr ? 0 : bound->values[bound->values.size() == 1 ? 0 : i];
        const double difference = a == b ? 0 : std::abs(a - b), margin = allowed - difference;
        close = close && difference <= allowed;
        if (!(difference <= largest)) largest = difference;
        largest_bound = std::max(largest_bound, allowed);
        if (!(margin >= smallest_margin)) {
            smallest_margin = std::isnan(margin) ? -inf : margin;
            worst = i;
        }
    }
    check.ok = bound == nullptr ? exact : close;
    check.exact = exact;
    if (bound != nullptr) {
        check.close = close;
        check.bound = largest_bound;
    }
    if (bound != nullptr || !exact) check.max_diff = largest;
    if (!check.ok) check.detail = operands(got, expected, worst, digits);
    return check;
}

}  // namespace tally::lesson
