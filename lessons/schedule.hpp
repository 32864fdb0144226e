// A Walk is a chain of steps that notes its runs. The header also draws these runs and has the formula of Revolve.
#pragma once

#include "tower.hpp"

namespace {
// Uses only the CPU, because the counts are equal on every device.
struct Walk {
    Tensor x = parameter(Array<real>({2}, {0.5, -0.25}));
    Chain<Array<real>> steps;
    std::vector<std::size_t> begun;  // the step of each run, in order

    explicit Walk(std::size_t length) {
        for (std::size_t i = 0; i < length; ++i)
            steps.push_back([this, i](const Tensor& h) {
                begun.push_back(i);
                return sin(h + 0.125 * double(i));
            });
    }
    Walk(const Walk&) = delete;

    // Returns how often each step ran without being recorded. Its last run is recorded.
    std::vector<int> only_run() const {
        std::vector<int> times(steps.size(), -1);
        for (const std::size_t step : begun) ++times[step];
        return times;
    }
    int most() const {
        const std::vector<int> times = only_run();
        return *std::max_element(times.begin(), times.end());
    }
    // Draws the runs: time to the right, the steps upwards.
    void draw() const {
        std::vector<bool> recorded(begun.size()), seen(steps.size());
        std::vector<std::string> rows(steps.size());
        for (std::size_t i = begun.size(); i-- > 0; seen[begun[i]] = true) recorded[i] = !seen[begun[i]];
        for (std::size_t time = 0; time < begun.size(); ++time) {
            rows[begun[time]].resize(2 * time, ' ');
            rows[begun[time]] += recorded[time] ? 'x' : 'o';
        }
        std::string text;
        for (std::size_t step = rows.size(); step-- > 0;)
            text += (step < 9 ? " " : "") + std::to_string(step + 1) + " |" + rows[step] +
                    (step + 1 == rows.size() ? "   o only run   x recorded" : "") + "\n";
        Lanes lanes{{"its input is kept", "only run", "recorded"}, {}};
        for (std::size_t step = steps.size(); step-- > 0;)
            lanes.lanes.push_back({std::to_string(step + 1), "", {}});
        const auto add = [&](std::size_t kind, std::size_t step, std::size_t from, std::size_t until) {
            lanes.lanes[steps.size() - 1 - step].work.push_back({kind, double(from), double(until), ""});
        };
        // An input is kept from the end of the step before it to the last restart from it.
        std::vector<std::size_t> computed(steps.size() + 1);
        for (std::size_t time = 0; time < begun.size(); ++time) {
            const std::size_t step = begun[time];
            if (time > 0 && begun[time - 1] + 1 != step) add(0, step, computed[step], time);
            computed[step + 1] = time + 1;
            add(recorded[time] ? 2 : 1, step, time, time + 1);
        }
        const std::string title =
            tally::lesson::say("{} steps, each recorded once; {} begun", steps.size(), begun.size());
        graph("schedule", sheet_of(title, lanes).svg(), "", text);
    }
};

// C(n, k), the number of ways to choose k of n things.
inline std::uint64_t choose(std::uint64_t n, std::int64_t k) {
    if (k < 0) return 0;
    std::uint64_t ways = 1;
    for (std::uint64_t i = 1; i <= std::min(std::uint64_t(k), n - std::uint64_t(k)); ++i)
        ways = ways * (n - i + 1) / i;
    return ways;
}
// The fewest steps that run without being recorded: r l - C(c + r, r - 1), r the least with C(c + r, c) >= l.
inline std::uint64_t fewest(std::uint64_t l, std::uint64_t c) {
    std::uint64_t r = 0;
    while (choose(c + r, std::int64_t(c)) < l) ++r;
    return r * l - choose(c + r, std::int64_t(r) - 1);
}
// The number of steps before the first new snapshot in the best schedule for l steps and c snapshots.
inline std::uint64_t first_part(std::uint64_t l, std::uint64_t c) {
    std::uint64_t k = 1;
    while (k + fewest(l - k, c - 1) + fewest(k, c) > fewest(l, c)) ++k;
    return k;
}
}  // namespace
