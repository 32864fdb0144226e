// Implements race(), which compares the results of tally and of other programs, and measures their times.
#include "bench/table/row.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "bench/table/child.hpp"
#include "bench/table/libtorch.hpp"
#include "bench/timing.hpp"
#include "tally/base/error.hpp"
#include "tally/base/text.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::bench {
namespace {

std::string short_number(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", number);
    return text;
}

void set_all_threads(int threads) {
    set_threads(threads);
    libtorch_threads(threads);
}

std::string words(const Goal& goal) {
    const std::string number = short_number(goal.number);
    switch (goal.kind) {
        case Goal::faster:
            return ">= " + number + " x as fast as " + goal.compared_with;
        case Goal::at_most:
            return "<= " + number + " x " + goal.compared_with;
        case Goal::at_most_mebibytes:
            return "<= " + number + " MiB, " + goal.compared_with;
    }
    return {};
}

Verdict judge(const Goal& goal, const std::vector<Timed>& sides) {
    Verdict verdict{words(goal), {}};
    for (const Timed& side : sides) {
        if (side.name != goal.compared_with) continue;
        verdict.measured = goal.kind == Goal::faster ? 1 / side.ratio
                           : goal.kind == Goal::at_most
                               ? side.ratio
                               : std::round(side.mebibytes.value());  // goals are in whole MiB
        verdict.holds =
            goal.kind == Goal::faster ? *verdict.measured >= goal.number : *verdict.measured <= goal.number;
    }
    return verdict;
}

Contestant contestant(const Side& side, std::size_t units, double operations, bool processor) {
    const clockid_t clock = processor ? side.processor_time : CLOCK_MONOTONIC;
    if (!side.many) return {side.name, side.run, units, operations, clock};
    return {side.name, [many = side.many, units] { many(units); }, 1, static_cast<double>(units) * operations,
            clock};
}

}  // namespace

void must_agree(const std::string& what, const Numbers& expected, const Numbers& got, double tolerance) {
    if (expected.size() != got.size())
        throw Error("[bench] " + what + ": the number of gradients differs from tally's");
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (expected[i].size() != got[i].size())
            throw Error("[bench] " + what + ": gradient " + std::to_string(i) +
                        " has a different size than tally's gradient");
        double apart = 0, largest = 0;
        for (std::size_t j = 0; j < got[i].size(); ++j) {
            const double difference = std::abs(expected[i][j] - got[i][j]);
            apart = difference <= apart ? apart : difference;  // NaN is not replaced
            largest = std::max(largest, std::abs(expected[i][j]));
        }
        if (!(apart <= tolerance * largest))
            throw Error("[bench] " + what + ": gradient " + std::to_string(i) + " differs from tally's by " +
                        short_number(apart / largest) + " of its largest number");
    }
}

std::size_t units_a_turn(const std::function<void()>& run, double milliseconds) {
    using clock = std::chrono::steady_clock;
    for (std::size_t units = 1;; units *= 2) {
        const auto start = clock::now();
        for (std::size_t i = 0; i < units; ++i) run();
        const std::chrono::duration<double, std::milli> took = clock::now() - start;
        if (took.count() * 2 >= milliseconds)
            return static_cast<std::size_t>(
                std::max(1.0, std::ceil(static_cast<double>(units) * milliseconds / took.count())));
    }
}

Result race(const Row& row, const Effort& effort) {
    const Pinned pinned(row.threads);
    set_all_threads(row.threads);
    const Numbers expected = row.sides.at(0).numbers();
    for (std::size_t i = 1; i < row.sides.size(); ++i)
        must_agree(row.title + ", " + row.sides[i].name, expected, row.sides[i].numbers(), row.tolerance);

    std::vector<Contestant> contestants;
    for (const Side& side : row.sides)
        contestants.push_back(contestant(side, units_a_turn(side.run, effort.milliseconds), row.units,
                                         effort.processor && row.threads == 1));
    const int rounds = std::min(effort.rounds, row.rounds);
    // OpenBLAS's threads spin for about 110 ms after a product, so the pause is longer.
    const Turn turn = row.threads == 1 ? Turn{} : Turn{true, std::chrono::milliseconds(150)};
    const auto times = measure(
        contestants, rounds, [] {}, turn);
    set_all_threads(1);

    Result result{row.name, row.title, row.note, row.threads, rounds, {}, {}, {}};
    for (std::size_t i = 0; i < row.sides.size(); ++i)
        result.sides.push_back({row.sides[i].name, row.sides[i].role, median(times[i]),
                                *std::min_element(times[i].begin(), times[i].end()),
                                times_longer(times[0], times[i]), row.sides[i].mebibytes});
    for (const Goal& goal : row.must) result.must.push_back(judge(goal, result.sides));
    for (const Goal& goal : row.aims) result.aims.push_back(judge(goal, result.sides));
    return result;
}

}  // namespace tally::bench
