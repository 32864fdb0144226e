// The answer and the check of exercise barrier.
#include "given.hpp"

#include <regex>

#include "check.hpp"
#include "execute.hpp"

namespace {

namespace right {
std::string kernel() {
    return beginning + R"(
        st.shared.f32 [%place], %own;        // sum[thread] = own;
        mov.u32       %half, 4;              // half = 4;
    round:                                   // do {
        bar.sync      0;                     //     __syncthreads();
        setp.ge.u32   %idle, %thread, %half;
        @%idle bra    halve;                 //     if (thread < half) {
        mad.lo.u32    %there, %half, 4, %place;
        ld.shared.f32 %own, [%place];        //         own = sum[thread];
        ld.shared.f32 %other, [%there];      //         other = sum[thread + half];
        add.rn.f32    %own, %own, %other;
        st.shared.f32 [%place], %own;        //         sum[thread] += other;
    halve:                                   //     }
        shr.u32       %half, %half, 1;       //     half /= 2;
        setp.gt.u32   %more, %half, 0;
        @%more bra    round;                 // } while (half > 0);
    )" + end;
}
}  // namespace right

#include "26_barrier.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    std::string text;
    for (const std::string order : {"forward", "reverse"}) {
        look.with(order == "forward" ? "the threads in the order 0, 1, ..., 7"
                                     : "the threads in the order 7, 6, ..., 0");
        const exercise::Numbers losses = look.uniforms(8);
        const std::vector<float> of_rows(losses.begin(), losses.end());
        float* const result = tally::ptx::in_global_memory(std::vector<float>(1));
        std::vector<std::string> findings;
        if (!look.runs([&] {
                text = yours.kernel();
                findings =
                    tally::ptx::execute(text, {.kernel = "add_rows",
                                               .threads = 8,
                                               .pointers = {tally::ptx::in_global_memory(of_rows), result},
                                               .order = order});
            }))
            return;
        const std::string first = findings.empty() ? "" : findings.front();
        // A line of the PTX is not a line of the learner's file.
        look.holds(findings.empty(), std::regex_replace(first, std::regex(", line \\d+ of the PTX"), ""));
        look.equal("sum", *result, std::accumulate(losses.begin(), losses.end(), 0.0));
        look.at_most("findings", static_cast<double>(findings.size()), 0);
    }
    look.with("the number of barriers");
    const std::size_t barriers = tally::ptx::barriers_in(text, "add_rows");
    look.holds(barriers <= 1,
               "your kernel has " + std::to_string(barriers) + " instructions bar.sync, and one is enough");
}

const exercise::Add add(
    {.title = "the place of a barrier in a kernel that adds eight rows",
     .minutes = 10,
     .lesson = "on-the-gpu",
     .hints =
         {"In round 1, thread 0 reads the number that thread 4 stored before the loop. Which number does "
          "thread 0 read in round 2, and which thread stored it in which round?",
          "Before each round, all threads must have finished the store before the loop, or the round "
          "before. The threads that add nothing in this round must reach the barrier too.",
          "Move the line `bar.sync 0;` into the loop, directly below the line `round:`. There all "
          "threads pass it once before each round."},
     .why = "In each round, a thread reads a number that another thread stored before. At the beginning of "
            "the loop, the barrier separates the store from the first round, and each round from the next. "
            "It is outside the `if`, because all threads of a block must reach a barrier. The additions have "
            "a fixed order, so the sum has the same bits in every order of the threads."},
    examine, answers);

}  // namespace
