// What exact sums cost (docs/training.md): a micro-batch's gradient added to them, beside a running sum.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/timing.hpp"
#include "tally/values/exact_sum.hpp"

using namespace tally;
using namespace tally::detail;

namespace {

// What a window of Sum::exact does with a micro-batch's gradient, beside adding it to a running sum: for each
// number. `spread`: over so many powers of two.
template <class S> void exact_sum(const char* type, int spread) {
    const std::int64_t n = 1 << 16;
    Array<S> x = Array<S>::empty({n}), running = Array<S>::zeros({n});
    S* const numbers = x.writable();
    for (std::int64_t i = 0; i < n; ++i)
        numbers[i] = std::ldexp(static_cast<S>(static_cast<int>(i * 2654435761u % 1999) - 999),
                                static_cast<int>(i * 40503u % static_cast<unsigned>(spread)) - spread);
    ExactSum<S> sum({n});
    sum.add(x);
    const auto count = static_cast<double>(n);
    bench::race("exact sums, " + std::string(type) + " over 2^" + std::to_string(spread) + ", " +
                    std::to_string(sum.bytes() / static_cast<std::size_t>(n)) + " bytes a number; for each",
                {{"running", [&] { add_scaled(running, 1, x); }, 20, count},
                 {"exact", [&] { sum.add(x); }, 4, count},
                 {"rounded", [&] { sum.round_to(running.raw()); }, 1, count}},
                41);
}

}  // namespace

int main() {
    exact_sum<float>("float", 20);
    exact_sum<float>("float", 120);
    exact_sum<double>("double", 20);
    exact_sum<double>("double", 1000);
}
