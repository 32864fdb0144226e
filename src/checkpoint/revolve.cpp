// Computes the cost of recomputation and the positions of snapshots for Revolve.
#include "tally/checkpoint/revolve.hpp"

namespace tally::detail {

namespace {

// Returns C(c + r, c), the most steps for c snapshots if each step runs unrecorded at most r = `times` times.
std::uint64_t reach(std::uint64_t snapshots, std::uint64_t times) {
    std::uint64_t all = 1;
    for (std::uint64_t i = 1; i <= snapshots; ++i) all = all * (times + i) / i;
    return all;
}

}  // namespace

std::uint64_t revolve_cost(std::uint64_t steps, std::uint64_t snapshots) {
    if (snapshots == 0) throw Error("[revolve] 0 snapshots are too few; use at least 1");
    snapshots = std::min(snapshots, std::max<std::uint64_t>(steps, 1));
    if (steps <= 1) return 0;
    if (snapshots == 1) return steps * (steps - 1) / 2;
    std::uint64_t times = 0;
    while (reach(snapshots, times) < steps) ++times;
    return times * steps - reach(snapshots + 1, times - 1);  // minus C(c + r, r - 1)
}

std::uint64_t revolve_split(std::uint64_t steps, std::uint64_t snapshots) {
    if (snapshots == 1 || steps <= 2) return std::max<std::uint64_t>(steps, 1) - 1;
    std::uint64_t best = 1, least = ~std::uint64_t{0};
    for (std::uint64_t k = 1; k < steps; ++k) {
        const std::uint64_t cost = k + revolve_cost(steps - k, snapshots - 1) + revolve_cost(k, snapshots);
        if (cost < least) {
            least = cost;
            best = k;
        }
    }
    return best;
}

}  // namespace tally::detail
