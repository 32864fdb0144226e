// The answer and the check of exercise a-pipe.
#include "given.hpp"

#include "check.hpp"
#include "pipe.hpp"

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

#include "26_a_pipe.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    for (const auto& [stages, micros] : {std::pair{4, 8}, {4, 4}, {2, 6}, {3, 12}, {4, 2}, {1, 3}}) {
        look.with(std::to_string(stages) + " stages and " + std::to_string(micros) + " micro-batches");
        std::vector<std::vector<exercise::PipeWork>> orders;
        if (!look.runs([&, all = stages, parts = micros] {
                for (int stage = 0; stage < all; ++stage) {
                    orders.emplace_back();
                    for (const Work& work : yours.schedule(stage, all, parts))
                        orders.back().push_back({work.backward ? 'B' : 'F', work.micro});
                }
            }))
            continue;
        const exercise::PipeRun ran(orders, micros, "FB");
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
    {.title = "a schedule for four stages, measured in waiting and in memory",
     .minutes = 20,
     .lesson = "the-pipe",
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
