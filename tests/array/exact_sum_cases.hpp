// Generates random numbers of all magnitudes for tests of exact sums. Many sums nearly cancel, are denormal,
// infinite or zero, or lie exactly between two floating-point numbers.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "autograd/support.hpp"
#include "tally/array/exact_sum.hpp"

namespace tally::test {

template <class S> auto bits_of(S x) {
    return std::bit_cast<std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint64_t>>(x);
}

template <class S> std::vector<S> drawn_summands(Random& random) {
    using Limits = std::numeric_limits<S>;
    const int smallest = Limits::min_exponent - Limits::digits, largest = Limits::max_exponent - 1;
    const std::int64_t kind = random.whole(0, 7), count = random.whole(1, kind == 7 ? 300 : 40);
    const auto middle = static_cast<int>(random.whole(smallest, largest));
    std::vector<S> all;
    const auto number = [&](int exponent) {
        return static_cast<S>(std::ldexp(random.between(-2, 2), exponent));
    };
    for (std::int64_t i = 0; i < count; ++i) switch (kind) {
            case 0:  // all magnitudes
                all.push_back(number(static_cast<int>(random.whole(smallest, largest))));
                break;
            case 1:  // a range of 30 exponents
                all.push_back(number(std::min(middle + static_cast<int>(random.whole(0, 30)), largest)));
                break;
            case 2:  // denormal numbers and slightly larger numbers
                all.push_back(number(smallest + static_cast<int>(random.whole(0, Limits::digits + 2))));
                break;
            case 3:  // pairs that cancel, and sometimes a remainder
                all.push_back(number(static_cast<int>(random.whole(smallest, largest))));
                all.push_back(-all.back());
                if (random.whole(0, 9) == 0) all.push_back(number(middle));
                break;
            case 4: {  // half units in the last place, with a tiny number that decides some ties
                const int exponent =
                    static_cast<int>(random.whole(Limits::min_exponent + Limits::digits + 4, largest - 2));
                const auto whole = static_cast<S>(
                    std::ldexp(static_cast<double>(random.whole(1, 3)) +
                                   2 * Limits::epsilon() * static_cast<double>(random.whole(0, 3)),
                               exponent));
                all.push_back(random.coin() ? whole : -whole);
                all.push_back(static_cast<S>(std::ldexp(random.coin() ? 1 : -1, exponent - Limits::digits)));
                if (random.coin())
                    all.push_back(static_cast<S>(std::ldexp(random.coin() ? 1 : -1, smallest + 1)));
                break;
            }
            case 5: {  // near the largest number
                const S most = Limits::max();
                all.push_back(random.coin() ? most : number(largest - static_cast<int>(random.whole(0, 30))));
                if (random.coin()) all.push_back(-most);
                break;
            }
            case 6:  // infinities, NaN and zeros
                all.push_back(std::vector<S>{Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                                             -Limits::quiet_NaN(), S(0), S(-0.0), S(-0.0), S(1),
                                             S(-1)}[static_cast<std::size_t>(
                    random.coin() ? random.whole(4, 8) : random.whole(0, 8))]);
                break;
            default:  // magnitudes of gradients
                all.push_back(number(static_cast<int>(random.whole(-12, 0))));
        }
    if (kind == 6 && random.whole(0, 2) == 0) all.assign(all.size(), S(-0.0));
    for (std::size_t i = all.size(); i > 1; --i)
        std::swap(all[i - 1],
                  all[static_cast<std::size_t>(random.whole(0, static_cast<std::int64_t>(i) - 1))]);
    return all;
}

template <class S> detail::ExactSum<S> exact_sum_of(const std::vector<S>& summands) {
    detail::ExactSum<S> sum(Shape{});
    for (const S x : summands) sum.add(Array<S>({}, {x}));
    return sum;
}

template <class S> std::string listed(const std::vector<S>& summands) {
    std::string text;
    char one[40];
    for (const S x : summands) {
        std::snprintf(one, sizeof one, "%a ", static_cast<double>(x));
        text += one;
    }
    return text;
}

}  // namespace tally::test
