// Fills arrays with the numbers that uniform() and normal() return, but computes each random block only once.
#include "tally/base/random.hpp"

#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "tally/base/error.hpp"
#include "tally/base/text.hpp"

namespace tally::random {
namespace {

// Calls put(i, words, lane) for each element i. put() computes element i from one lane of the block `words`.
template <class S, class Put> void for_each_lane(std::size_t count, std::uint64_t seed, std::uint64_t stream,
                                                 std::uint64_t first, Put put) {
    constexpr std::size_t lanes = detail::lanes<S>;
    for (std::size_t i = 0; i < count;) {
        const detail::Words words = detail::words(seed, stream, (first + i) / lanes);
        for (std::size_t lane = (first + i) % lanes; lane < lanes && i < count; ++lane, ++i)
            put(i, words, lane);
    }
}

}  // namespace

template <class S> void detail::fill_uniform(std::span<S> out, std::uint64_t seed, std::uint64_t stream, S lo,
                                             S hi, std::uint64_t first) {
    if (!(lo <= hi) || !std::isfinite(hi - lo))
        throw Error("[uniform] numbers cannot be drawn between " +
                    tally::detail::short_number(static_cast<double>(lo)) + " and " +
                    tally::detail::short_number(static_cast<double>(hi)) +
                    "; give two finite bounds, the lower one first");
    for_each_lane<S>(out.size(), seed, stream, first,
                     [&](std::size_t i, const detail::Words& words, std::size_t lane) {
                         out[i] = detail::between(detail::uniform<S>(words, lane), lo, hi);
                     });
}

template <class S> void detail::fill_normal(std::span<S> out, std::uint64_t seed, std::uint64_t stream,
                                            S mean, S deviation, std::uint64_t first) {
    if (!(deviation >= 0) || !std::isfinite(deviation) || !std::isfinite(mean))
        throw Error("[normal] numbers cannot be drawn around " +
                    tally::detail::short_number(static_cast<double>(mean)) + " with a deviation of " +
                    tally::detail::short_number(static_cast<double>(deviation)) +
                    "; give a finite mean and a finite deviation of at least 0");
    detail::Point pair{};
    for_each_lane<S>(out.size(), seed, stream, first,
                     [&](std::size_t i, const detail::Words& words, std::size_t lane) {
                         if (i == 0 || lane % 2 == 0) pair = detail::normals<S>(words, lane / 2);
                         out[i] = std::fma(static_cast<S>(lane % 2 == 0 ? pair.x : pair.y), deviation, mean);
                     });
}

template void detail::fill_uniform(std::span<float>, std::uint64_t, std::uint64_t, float, float,
                                   std::uint64_t);
template void detail::fill_uniform(std::span<double>, std::uint64_t, std::uint64_t, double, double,
                                   std::uint64_t);
template void detail::fill_normal(std::span<float>, std::uint64_t, std::uint64_t, float, float,
                                  std::uint64_t);
template void detail::fill_normal(std::span<double>, std::uint64_t, std::uint64_t, double, double,
                                  std::uint64_t);

std::vector<std::int32_t> detail::permutation(std::size_t n, std::uint64_t seed, std::uint64_t stream) {
    if (n > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw Error("[permutation] " + std::to_string(n) + " numbers exceed the limit of 2147483647");
    std::vector<std::int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[below(seed, stream, i, i)]);
    return order;
}

}  // namespace tally::random
