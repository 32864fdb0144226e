// Measures the sweeps. A sweep repeats a measurement for several sizes or numbers of threads. Sweeps of several
// programs compare the gradients of all programs.
#include "bench/table/sweeps.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <ctime>
#include <thread>

#include "bench/table/child.hpp"
#include "bench/table/libtorch.hpp"
#include "bench/table/rows.hpp"
#include "bench/timing.hpp"
#include "tally/memory/memory.hpp"

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

// add_ratios() adds the time of each other side divided by tally's time. find_catch_up() finds the x from
// which LibTorch is not slower.
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

// Returns the operations y = y * c + c with c = -1, so that values and gradients neither grow nor vanish.
ElementwiseChain steady(int operations, std::size_t size) {
    return {operations, std::vector<float>(size, 0.25f), std::vector<float>(size, -1)};
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

Sweep widths(const Effort& effort) {
    Sweep sweep{"widths",
                "MLP 784-w-w-10, 64 as 4x16: how many times longer than tally",
                "w, units in a hidden layer",
                "times tally's: above 1, tally is faster",
                {}};
    for (const std::int64_t w : {16, 32, 64, 128, 256, 512, 1024, 2048}) {
        if (effort.quick && w > 512) break;
        Row row = mlp_row({.micro = 16, .sizes = {784, w, w, 10}});
        row.tolerance = 0.1;  // some of the many sums are so near 0 that rounding decides their signs
        add_ratios(sweep, static_cast<double>(w), race(row, brief(effort)));
    }
    find_catch_up(sweep, "units");
    return sweep;
}

double processor_ns(const Side& side) {
    const double start = nanoseconds(side.processor_time);
    side.run();
    return nanoseconds(side.processor_time) - start;
}

// Runs two programs alternately, and returns the median of the ratios of their processor times.
double relative_cost(const Side& it, const Side& other, int rounds) {
    const Pinned pinned(1);
    std::vector<double> ratios;
    for (int round = -1; round < rounds; ++round) {
        const double mine = processor_ns(it), its = processor_ns(other);
        if (round >= 0) ratios.push_back(mine / its);
    }
    return median(ratios);
}

// Compares each program with the same program on a whole batch, so that the ratio shows only the cost of
// dividing the batch into micro-batches. Measures processor time, which other programs disturb least.
Sweep accumulation(const Effort& effort) {
    Sweep sweep{"accumulation",
                "Cost of 64 rows as N micro-batches, MLP 784-512-512-10",
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
                .points.emplace_back(n, relative_cost(cut.sides[i], whole.sides[i], 5 * effort.rounds));
        }
    }
    return sweep;
}

// Returns the mean processor time, in ns, to allocate and free a buffer while `count` threads do so.
double ns_of_allocation(int count, std::size_t bytes) {
    constexpr int allocations = 1'000'000;
    std::atomic<double> total{0};
    std::barrier ready(count);  // all threads allocate at the same time
    const auto allocate = [&] {
        ready.arrive_and_wait();
        const double start = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < allocations; ++i)
            memory::detail::unref(memory::detail::allocate(bytes, Device::cpu));
        total += nanoseconds(CLOCK_THREAD_CPUTIME_ID) - start;
    };
    std::vector<std::thread> others;
    for (int i = 1; i < count; ++i) others.emplace_back(allocate);
    allocate();
    for (std::thread& thread : others) thread.join();
    return total / count / allocations;
}

Sweep allocations(const Effort& effort) {
    Sweep sweep{"allocations",
                "Cost of an allocation while N threads allocate (goal: at most 1.5)",
                "N, threads",
                "processor time relative to one thread",
                {}};
    sweep.as_table = true;
    for (const auto& [name, bytes] :
         {std::pair("tally, 16 KiB", 16 << 10), std::pair("tally, 256 KiB", 256 << 10)})
        for (const int n : {1, 2, 4}) {
            std::vector<double> ratios;
            for (int round = 0; round < effort.rounds; ++round) {
                const double alone = ns_of_allocation(1, static_cast<std::size_t>(bytes));
                ratios.push_back(ns_of_allocation(n, static_cast<std::size_t>(bytes)) / alone);
            }
            line(sweep, name).points.emplace_back(n, median(ratios));
        }
    return sweep;
}

}  // namespace

std::vector<PlannedSweep> sweeps() {
    return {{"elements", elements},
            {"widths", widths},
            {"accumulation", accumulation},
            {"allocations", allocations}};
}

}  // namespace tally::bench
