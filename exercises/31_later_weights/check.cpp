// The answer and the check of exercise later-weights.
#include "given.hpp"

#include "check.hpp"
#include "pipe.hpp"

namespace {

namespace right {
std::vector<Piece> schedule(int stage, int stages, int micros) {
    std::vector<Piece> order;
    const int later = stage;
    int f = 0, w = 0;
    while (f < std::min(micros, stages - stage)) order.push_back(F(f++));
    for (int b = 0; b < micros; ++b) {
        order.push_back(B(b));
        if (b >= later) order.push_back(W(w++));
        if (f < micros) order.push_back(F(f++));
    }
    while (w < micros) order.push_back(W(w++));
    return order;
}
}  // namespace right

#include "31_later_weights.mistakes.hpp"

// Compares with the closed forms of ZB-H1, where F, B and W take equally long (Qi et al. 2023, arXiv 2401.10241).
void look_at(exercise::AnswerTest& look, const Functions& yours, int stages, int micros) {
    look.with(std::to_string(stages) + " stages and " + std::to_string(micros) + " micro-batches");
    std::vector<std::vector<exercise::PipeWork>> orders;
    if (!look.runs([&] {
            for (int stage = 0; stage < stages; ++stage) {
                orders.emplace_back();
                for (const Piece& piece : yours.schedule(stage, stages, micros))
                    orders.back().push_back({piece.what, piece.micro});
            }
        }))
        return;
    const exercise::PipeRun ran(orders, micros, "FBW");
    if (!look.holds(ran.fault.empty(), ran.fault)) return;
    look.at_most("units of time (" + std::to_string(3 * micros) + " of them work)", ran.time,
                 3 * micros + stages - 1 + std::max(0, stages - micros));
    for (std::size_t s = 0; s < ran.kept.size(); ++s)
        look.at_most("micro-batches kept by stage " + std::to_string(s), ran.kept[s],
                     std::min(stages, micros));
}

void examine(exercise::AnswerTest& look, const Functions& yours) {
    look_at(look, yours, 4, 8);
    for (int stages = 1; stages <= 6; ++stages)
        for (int micros = 1; micros <= 12; ++micros) look_at(look, yours, stages, micros);
}

const exercise::Add add(
    {.title = "weight gradients, computed when a stage would wait",
     .minutes = 15,
     .lesson = "what-a-pipe-keeps",
     .hints = {"Stage 3 of four does both parts of backward for micro-batch 0, B(0) and W(0), before "
               "B(1). Stage 2 waits for B(1). Which of B(0) and W(0) could stage 3 do later?",
               "Change the line that appends W(b), the weight gradients of micro-batch b. Count the weight "
               "gradients W separately from the input gradients B: append the next W after B(b) only if b is "
               "at least `stage`. After the loop, append the W that are left.",
               "Declare a counter w of the weight gradients before the loop. In the loop over b, if b >= "
               "stage, append W(w) after B(b) and increase w. After the loop, append W(w) until w equals "
               "micros."},
     .why = "In this schedule, named ZB-H1, a stage sends gradients earlier to the stage before it, and "
            "computes weight gradients W while it would otherwise wait. With P stages, the waiting time "
            "falls from 2 (P - 1) to P - 1 units. No stage keeps more micro-batches than stage 0 kept in "
            "the schedule without postponed W."},
    examine, answers);

}  // namespace
