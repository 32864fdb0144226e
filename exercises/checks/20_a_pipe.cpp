// Exercise 20, a pipe: the answer and the check.
#include "20_a_pipe.hpp"

#include "check.hpp"

namespace {

namespace right {
std::vector<Work> schedule(int stage, int stages, int micros) {
    std::vector<Work> order;
    const int ahead = stages - 1 - stage;
    int forward = 0, backward = 0;
    while (backward < micros) {
        if (forward < micros && forward <= backward + ahead) {
            order.push_back(F(forward++));
        } else {
            order.push_back(B(backward++));
        }
    }
    return order;
}
}  // namespace right

#include "20_a_pipe.mistakes.hpp"

std::string in_words(const Work& work) {
    return std::string(work.backward ? "B(" : "F(") + std::to_string(work.micro) + ")";
}

// Lets all stages work, each as soon as what it waits for is done.
struct Simulation {
    int time = 0;
    std::vector<double> kept;  // most micro-batches at a time, by stage
    std::string fault;

    Simulation(const std::vector<std::vector<Work>>& orders, int micros) : kept(orders.size()) {
        const int stages = static_cast<int>(orders.size());
        // When each is done; -1 while it is not.
        std::vector<std::vector<int>> forward(orders.size(),
                                              std::vector<int>(static_cast<std::size_t>(micros), -1)),
            backward = forward;
        std::vector<std::size_t> next(orders.size(), 0);
        std::vector<int> holds(orders.size(), 0);
        for (std::size_t s = 0; s < orders.size(); ++s) {
            std::vector<int> times(static_cast<std::size_t>(2 * micros), 0);
            for (const Work& work : orders[s]) {
                if (work.micro < 0 || work.micro >= micros) {
                    fault = "stage " + std::to_string(s) + " has " + in_words(work) +
                            ", and there are micro-batches 0 to " + std::to_string(micros - 1);
                    return;
                }
                ++times[static_cast<std::size_t>(2 * work.micro + (work.backward ? 1 : 0))];
            }
            for (std::size_t i = 0; i < times.size(); ++i)
                if (times[i] != 1) {
                    fault = "stage " + std::to_string(s) + " does " +
                            in_words({i % 2 == 1, static_cast<int>(i / 2)}) + " " + std::to_string(times[i]) +
                            " times";
                    return;
                }
        }
        for (bool working = true; working;) {
            working = false;
            bool waiting = false;
            const int now = time;
            for (int stage = 0; stage < stages; ++stage) {
                const auto s = static_cast<std::size_t>(stage);
                if (next[s] == orders[s].size()) continue;
                waiting = true;
                const Work work = orders[s][next[s]];
                const auto m = static_cast<std::size_t>(work.micro);
                const auto done = [&](int at) { return at >= 0 && at <= now; };
                const bool ready =
                    work.backward ? done(forward[s][m]) && (stage + 1 == stages || done(backward[s + 1][m]))
                                  : stage == 0 || done(forward[s - 1][m]);
                if (!ready) continue;
                (work.backward ? backward : forward)[s][m] = now + 1;
                holds[s] += work.backward ? -1 : 1;
                kept[s] = std::max<double>(kept[s], holds[s] + (work.backward ? 1 : 0));
                ++next[s];
                working = true;
            }
            if (working) ++time;
            if (!working && waiting) {
                for (std::size_t s = 0; s < orders.size() && fault.empty(); ++s)
                    if (next[s] < orders[s].size())
                        fault = "after " + std::to_string(time) + " units all wait for each other: stage " +
                                std::to_string(s) + " wants to do " + in_words(orders[s][next[s]]);
            }
        }
    }
};

void examine(exercise::Look& look, const Functions& yours) {
    for (const auto& [stages, micros] : {std::pair{4, 8}, {4, 4}, {2, 6}, {3, 12}, {4, 2}, {1, 3}}) {
        look.with(std::to_string(stages) + " stages and " + std::to_string(micros) + " micro-batches");
        std::vector<std::vector<Work>> orders;
        if (!look.runs([&, all = stages, parts = micros] {
                for (int stage = 0; stage < all; ++stage) orders.push_back(yours.schedule(stage, all, parts));
            }))
            continue;
        const Simulation ran(orders, micros);
        if (!look.holds(ran.fault.empty(), ran.fault)) continue;
        look.at_most(
            "units of time (" + std::to_string(2 * micros) + " of them work; the rest is the bubble)",
            ran.time, 2 * (micros + stages - 1));
        for (std::size_t s = 0; s < ran.kept.size(); ++s)
            look.at_most("micro-batches kept by stage " + std::to_string(s), ran.kept[s],
                         std::min<double>(micros, stages - static_cast<double>(s)));
    }
}

const exercise::Add add(
    {.number = 20,
     .slug = "a-pipe",
     .title = "a schedule for four stages, measured in waiting and in memory",
     .minutes = 20,
     .lesson = "checkpointing",
     .hints = {"After its first F, how many micro-batches must the first of four stages have sent before the "
               "first B can come back to it?",
               "Count the F and the B that were done. A stage may do an F as long as it is ahead by no more "
               "than the stages behind it; otherwise it does a B.",
               "A loop until all B are done: if there is an F left, and the F done are at most the B done "
               "plus stages - 1 - stage, do the next F; else the next B."},
     .why = "One forward, one backward: the same time as all forward first, (P - 1) / (M + P - 1) of it "
            "waiting, but a stage keeps only as many micro-batches as are on their way behind it. More "
            "micro-batches make the bubble smaller and the memory no larger."},
    examine, answers);

}  // namespace
