// Runs programs alternately, so that a machine that becomes slower affects all programs equally. Computes
// medians of times and of ratios of times.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace tally::bench {

struct Contestant {
    std::string name;
    std::function<void()> run;  // one unit of work
    std::size_t repeat;         // units per round, so that a round lasts about a millisecond or more
    double units = 1;           // divisor of the time, such as operations per unit
    clockid_t clock = CLOCK_MONOTONIC;
};

inline double nanoseconds(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

inline double median(std::vector<double> xs) {
    std::sort(xs.begin(), xs.end());
    return xs[xs.size() / 2];
}

// If `warm_up` is true, an untimed run before each measurement wakes the threads. During the time `rest`
// after a measurement, the threads fall asleep.
struct Turn {
    bool warm_up = false;
    std::chrono::milliseconds rest{3};
};

// Runs all contestants in `rounds` rounds, each in a random order, after one untimed round. A program that has filled
// the caches slows the next program, and in a fixed order this would always be the same program. Returns one time for
// each contestant and round, in ns per unit of work. The function `finish` waits for asynchronous work.
inline std::vector<std::vector<double>> measure(
    const std::vector<Contestant>& contestants, int rounds, const std::function<void()>& finish = [] {},
    Turn turn = {}) {
    std::vector<std::vector<double>> times(contestants.size());
    std::vector<std::size_t> order(contestants.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::minstd_rand random(1);
    for (int round = -1; round < rounds; ++round) {
        std::shuffle(order.begin(), order.end(), random);
        for (const std::size_t i : order) {
            const Contestant& c = contestants[i];
            const auto work = [&] {
                for (std::size_t n = 0; n < c.repeat; ++n) c.run();
                finish();
            };
            if (turn.warm_up) work();
            const double start = nanoseconds(c.clock);
            work();
            const double took = nanoseconds(c.clock) - start;
            std::this_thread::sleep_for(turn.rest);
            if (round >= 0) times[i].push_back(took / static_cast<double>(c.repeat) / c.units);
        }
    }
    return times;
}

// Returns the median, over all rounds, of the time of `one` divided by the time of `other`.
inline double times_longer(const std::vector<double>& one, const std::vector<double>& other) {
    std::vector<double> ratios;
    for (std::size_t r = 0; r < one.size(); ++r) ratios.push_back(one[r] / other[r]);
    return median(ratios);
}

}  // namespace tally::bench
