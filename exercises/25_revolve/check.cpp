// The answer and the check of exercise revolve.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
int advances(int steps, int snapshots) {
    static std::vector<std::vector<int>> known(200, std::vector<int>(30, -1));
    if (steps == 1) return 0;
    if (snapshots == 1) return steps * (steps - 1) / 2;
    int& least = known[static_cast<std::size_t>(steps)][static_cast<std::size_t>(snapshots)];
    if (least >= 0) return least;
    int found = steps * steps;
    for (int k = 1; k < steps; ++k)
        found = std::min(found, k + advances(steps - k, snapshots - 1) + advances(k, snapshots));
    return least = found;
}

int next_snapshot(int steps, int free) {
    const int snapshots = free + 1;
    for (int k = 1; k < steps; ++k)
        if (k + advances(steps - k, snapshots - 1) + advances(k, snapshots) == advances(steps, snapshots))
            return k;
    return 1;
}
}  // namespace right

#include "25_revolve.mistakes.hpp"

double choose(int n, int k) {
    double result = 1;
    for (int i = 1; i <= k; ++i) result = result * (n - k + i) / i;
    return result;
}

// Independent check: a closed formula for p(l, c), by Griewank and Walther.
double least(int steps, int snapshots) {
    int sweeps = 0;
    while (choose(snapshots + sweeps, snapshots) < steps) ++sweeps;
    return sweeps == 0 ? 0 : sweeps * static_cast<double>(steps) - choose(snapshots + sweeps, sweeps - 1);
}

// Follows the answer, and counts the steps that run only to reach a position.
struct Walk {
    const Functions& yours;
    int run = 0;
    std::string fault;

    void back_through(int steps, int free) {
        if (steps <= 1 || !fault.empty()) return;
        if (free == 0) {
            run += steps * (steps - 1) / 2;
            return;
        }
        const int k = yours.next_snapshot(steps, free);
        if (k < 1 || k >= steps) {
            fault = "for " + std::to_string(steps) + " steps and " + std::to_string(free) +
                    " free snapshots you return " + std::to_string(k) + "; 1 to " +
                    std::to_string(steps - 1) + " are allowed";
            return;
        }
        run += k;
        back_through(steps - k, free - 1);
        back_through(k, free);
    }
};

void examine(exercise::AnswerTest& look, const Functions& yours) {
    for (const auto& [steps, snapshots] :
         {std::pair{10, 3}, {16, 4}, {10, 1}, {5, 10}, {32, 3}, {40, 5}, {64, 8}}) {
        look.with(std::to_string(steps) + " steps and " + std::to_string(snapshots) +
                  " snapshots, including the input");
        Walk walk{yours, 0, {}};
        if (!look.runs([&, free = snapshots - 1, l = steps] { walk.back_through(l, free); })) continue;
        if (look.holds(walk.fault.empty(), walk.fault))
            look.at_most("steps that run only to reach a position", walk.run, least(steps, snapshots));
    }
}

const exercise::Add add(
    {.title = "the best position of the next snapshot",
     .minutes = 20,
     .lesson = "the-best-schedule",
     .hints = {"The formula for p(l, c) contains a minimum over k, the position of the snapshot. How can "
               "your function find the k that gives this minimum?",
               "Search for the best position k instead of returning the middle of the chain. Write the "
               "formula of p(l, c) as a function that calls itself, except if l = 1 or c = 1. In "
               "next_snapshot(), compute the formula's sum for each k from 1 to steps - 1. Use l = steps "
               "and c = free + 1.",
               "Store each value p(l, c) of the formula in a static std::vector of vectors, filled with -1 "
               "at first. If a stored value is not -1, return this value. In next_snapshot(), return the "
               "position k for which the sum k + p(steps - k, free) + p(k, free + 1) is smallest."},
     .why = "Of c snapshots, the part of the chain after a new snapshot can use only c - 1, and the part "
            "before it can use all c. So the part before the snapshot is the longer part. If each step runs "
            "at most r times, c snapshots suffice for C(c + r, c) steps, where C is the binomial "
            "coefficient. For example, 8 snapshots and r = 3 give 165 steps."},
    examine, answers);

}  // namespace
