// The sweeps: each point is a row of the table at another size, its gradients compared like any other's.
#include "bench/table/sweeps.hpp"

#include <algorithm>
#include <ctime>

#include "bench/table/child.hpp"
#include "bench/table/libtorch.hpp"
#include "bench/table/rows.hpp"
#include "bench/timing.hpp"

namespace tally::bench {
namespace {

Effort brief(const Effort& effort) {
    return {effort.quick ? 5 : 11, std::min(effort.milliseconds, 2.0), effort.quick, effort.processor};
}

Line& line(Sweep& sweep, const std::string& name) {
    for (Line& there : sweep.lines)
        if (there.name == name) return there;
    return sweep.lines.emplace_back(Line{name, {}});
}

// A point for each side: its median time.
void add_times(Sweep& sweep, double x, const Result& result, double ns, const std::string& more = {}) {
    for (const Timed& side : result.sides)
        line(sweep, side.name + more).points.emplace_back(x, side.median / ns);
}

// How many times longer each other side takes than tally; and the first x from which on LibTorch does not.
void add_ratios(Sweep& sweep, double x, const Result& result) {
    for (std::size_t i = 1; i < result.sides.size(); ++i)
        line(sweep, result.sides[i].name).points.emplace_back(x, 1 / result.sides[i].ratio);
}
void find_catch_up(Sweep& sweep, const char* what) {
    for (const Line& there : sweep.lines) {
        if (there.name != libtorch) continue;
        const auto last = static_cast<long long>(there.points.back().first);
        sweep.catches_up = "LibTorch does not catch up within " + std::to_string(last) + " " + what;
        for (auto point = there.points.rbegin(); point != there.points.rend() && point->second <= 1; ++point)
            sweep.catches_up =
                "LibTorch catches up at " + std::to_string(static_cast<long long>(point->first)) + " " + what;
    }
}

// y = y * c + c; with c = -1 neither values nor gradients grow or vanish, however long it is.
ElementwiseChain steady(int operations, std::size_t size) {
    return {operations, std::vector<float>(size, 0.25f), std::vector<float>(size, -1)};
}

Sweep nodes(const Effort& effort) {
    Sweep sweep{"nodes", "Time per node of a chain, forward and backward", "nodes", "ns per node", {}};
    for (const int n : {10, 100, 1000, 10000, 100000, 1000000}) {
        if (effort.quick && n > 100000) break;
        Row row = chain_row(steady(n, 3), n <= 10000);
        Result result = race(row, brief(effort));
        add_times(sweep, n, result, 1);
        line(sweep, "tally, numbers")
            .points.emplace_back(n, race(number_chain_row(n), brief(effort)).sides[0].median);
    }
    return sweep;
}

Sweep elements(const Effort& effort) {
    Sweep sweep{"elements",
                "Chains of 100 operations: how many times longer than tally",
                "numbers in an array",
                "times tally's: above 1, tally is faster",
                {}};
    for (const int size : {1, 10, 100, 1000, 10000, 100000, 1000000}) {
        if (effort.quick && size > 100000) break;
        add_ratios(sweep, size, race(chain_row(steady(100, static_cast<std::size_t>(size))), brief(effort)));
    }
    find_catch_up(sweep, "numbers");
    return sweep;
}

// Of so many sums some are within a rounding of 0, and a ReLU falls to either side of it: one unit's gradient is another.
Row near_zero(Row row) {
    row.tolerance = 0.1;
    return row;
}

Sweep widths(const Effort& effort) {
    Sweep sweep{"widths",
                "MLP 784-w-w-10, 64 as 4x16: how many times longer than tally",
                "w, units in a hidden layer",
                "times tally's: above 1, tally is faster",
                {}};
    for (const std::int64_t w : {16, 32, 64, 128, 256, 512, 1024, 2048}) {
        if (effort.quick && w > 512) break;
        add_ratios(sweep, static_cast<double>(w),
                   race(near_zero(mlp_row({.micro = 16, .sizes = {784, w, w, 10}})), brief(effort)));
    }
    find_catch_up(sweep, "units");
    return sweep;
}

Sweep batches(const Effort& effort) {
    Sweep sweep{"batches",
                "Time per update over B, micro-batches of 16, MLP 784-512-512-10",
                "B, rows in an update",
                "ms",
                {}};
    for (std::int64_t b = 16; b <= (effort.quick ? 128 : 1024); b *= 2)
        add_times(sweep, static_cast<double>(b),
                  race(near_zero(mlp_row({.rows = b, .micro = 16})), brief(effort)), 1e6);
    return sweep;
}

Sweep cuts(const Effort& effort) {
    Sweep sweep{"cuts",
                "Time per update of 64 rows over N, MLP 784-512-512-10",
                "N, micro-batches in an update",
                "ms",
                {}};
    for (std::int64_t n = 1; n <= 64; n *= effort.quick ? 4 : 2)
        for (const int threads : {1, 2})
            add_times(sweep, static_cast<double>(n), race(mlp_row({.micro = 64 / n}, threads), brief(effort)),
                      1e6, threads > 1 ? ", 2 threads" : "");
    return sweep;
}

double processor_ns(const Side& side) {
    const double start = nanoseconds(side.processor_time);
    side.run();
    return nanoseconds(side.processor_time) - start;
}

// How many times as much processor time one takes as the other: updates in turn, the median of their ratios.
double cost_beside(const Side& it, const Side& other, int rounds) {
    const Pinned pinned(1);
    std::vector<double> ratios;
    for (int round = -1; round < rounds; ++round) {
        const double mine = processor_ns(it), its = processor_ns(other);
        if (round >= 0) ratios.push_back(mine / its);
    }
    return median(ratios);
}

// Each side beside itself, so that only what the cut costs is left: processor time, which neighbours disturb least.
Sweep accumulation(const Effort& effort) {
    Sweep sweep{"accumulation",
                "What 64 rows cost as N micro-batches, MLP 784-512-512-10",
                "N, micro-batches in an update",
                "times as much processor time as one of 64",
                {}};
    sweep.as_table = true;
    libtorch_threads(1);
    for (std::int64_t n = 1; n <= 64; n *= effort.quick ? 4 : 2) {
        const Row cut = mlp_row({.micro = 64 / n}), whole = mlp_row({});
        for (std::size_t i = 0; i < cut.sides.size(); ++i) {
            must_agree(cut.sides[i].name + " in " + std::to_string(n) + " micro-batches",
                       whole.sides[i].numbers(), cut.sides[i].numbers(), cut.tolerance);
            line(sweep, cut.sides[i].name)
                .points.emplace_back(n, cost_beside(cut.sides[i], whole.sides[i], 5 * effort.rounds));
        }
    }
    return sweep;
}

// Not a time: what the ledger counts, beyond parameters, gradients and data.
Sweep memory_over_n(const Effort& effort) {
    Sweep sweep{
        "memory", "Memory over N, 8 x (Linear 256 + ReLU)", "N, micro-batches in an update", "MiB", {}};
    for (std::int64_t n = 1; n <= (effort.quick ? 16 : 64); n *= 2) {
        const Row cut = deep_row({.layers = 8, .batch = 4096, .rows = 4096 / n});
        const Row grown = deep_row({.layers = 8, .batch = 64 * n, .rows = 64});
        for (const Side& side : cut.sides)
            line(sweep, side.name + ", 4096 rows").points.emplace_back(n, side.mebibytes.value());
        for (const Side& side : grown.sides)
            line(sweep, side.name + ", 64 N rows").points.emplace_back(n, side.mebibytes.value());
    }
    return sweep;
}

}  // namespace

std::vector<PlannedSweep> sweeps() {
    return {{"nodes", nodes}, {"elements", elements},         {"widths", widths},       {"batches", batches},
            {"cuts", cuts},   {"accumulation", accumulation}, {"memory", memory_over_n}};
}

}  // namespace tally::bench
