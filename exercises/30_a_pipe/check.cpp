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

#include "30_a_pipe.mistakes.hpp"

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
            "units of time (" + std::to_string(2 * micros) + " of them work; a stage waits in the others)",
            ran.time, 2 * (micros + stages - 1));
        for (std::size_t s = 0; s < ran.kept.size(); ++s)
            look.at_most("micro-batches kept by stage " + std::to_string(s), ran.kept[s],
                         std::min<double>(micros, stages - static_cast<double>(s)));
    }
}

const exercise::Add add(
    {.title = "a schedule for four stages, measured by waiting time and memory",
     .minutes = 20,
     .lesson = "what-a-pipe-keeps",
     .hints = {"Stage 0 has done F(0), the forward pass of micro-batch 0. How many more F can stage 0 do "
               "before it must wait for the gradient of micro-batch 0?",
               "Replace the two loops of the given schedule by one loop. Count the forward passes F and the "
               "backward passes B that are done. Compare the difference of the two counts with the number "
               "of stages after this stage to choose between F and B.",
               "Write a loop that ends when all backward passes B are done. Do the next forward pass F if "
               "one is left, and if at most stages - 1 - stage more F than B are done. Otherwise do the "
               "next B."},
     .why = "The order \"one forward, one backward\" (1F1B) takes the same time as the order with all "
            "forward passes F first. In both orders, P stages with M micro-batches spend the share "
            "(P - 1) / (M + P - 1) of this time waiting. But in 1F1B a stage keeps at most P "
            "micro-batches. More micro-batches reduce the waiting share and need no more memory."},
    examine, answers);

}  // namespace
