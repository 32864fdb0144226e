// Lesson 24: processes share a window's micro-batches, and their update is that of one process.
#include "tally/lesson/on_ranks.hpp"
#include "tally/lesson/toy.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct AcrossProcesses : Toy {
    const int P = dial("ranks");

    void talk() {
        step(say("{} processes.", P));
        predict("Their ranks add up to",
                {right(P * (P - 1) / 2), wrong(P * (P + 1) / 2, "The first rank is 0.")},
                hint("What is the first rank?", "0 + 1 + ..."), "Ranks begin with 0.");
        const auto ranks = on_ranks([&](Processes& processes) { return double(processes.rank()); });
        double sum = 0;
        for (const double rank : ranks) sum += rank;
        show("ranks", ranks);
        show("sum", sum);
        check_equal("their sum", sum, P * (P - 1) / 2.0);
    }
};

const Given<AcrossProcesses> lesson({.number = 24,
                                     .slug = "across-processes",
                                     .title = "one update by several processes",
                                     .minutes = 20,
                                     .steps = 2,
                                     .dials = {whole_number("ranks", "processes", 3, 1, 6)}});

}  // namespace
