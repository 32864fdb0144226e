// The answer and the check of exercise ring.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
int rounds(int ranks) { return 2 * (ranks - 1); }

Send send(int rank, int round, int ranks) {
    const bool adding = round < ranks - 1;
    const int back = adding ? round : round - ranks;
    return {.chunk = (rank - back + 2 * ranks) % ranks, .add = adding};
}
}  // namespace right

#include "25_ring.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    for (const int ranks : {4, 2, 3, 8, 1}) {
        look.with(std::to_string(ranks) + (ranks == 1 ? " rank, who has nobody to send to" : " ranks"));
        using Held = std::vector<std::vector<double>>;  // for each rank, a number per chunk
        Held held;
        std::vector<double> wanted(static_cast<std::size_t>(ranks));
        for (int rank = 0; rank < ranks; ++rank)
            held.push_back(look.uniforms(static_cast<std::size_t>(ranks)));
        for (const auto& own : held)
            for (std::size_t chunk = 0; chunk < wanted.size(); ++chunk) wanted[chunk] += own[chunk];
        int chunks = 0;
        std::string fault;
        const bool ran = look.runs([&] {
            const int rounds = yours.rounds(ranks);
            if (rounds > 100) fault = "you want " + std::to_string(rounds) + " rounds";
            for (int round = 0; round < rounds && fault.empty(); ++round) {
                const Held before = held;
                for (int rank = 0; rank < ranks; ++rank) {
                    const Send sent = yours.send(rank, round, ranks);
                    if (sent.chunk < 0 || sent.chunk >= ranks) {
                        fault = "rank " + std::to_string(rank) + " sends chunk " +
                                std::to_string(sent.chunk) + " in round " + std::to_string(round) +
                                "; there are 0 to " + std::to_string(ranks - 1);
                        return;
                    }
                    const auto chunk = static_cast<std::size_t>(sent.chunk);
                    double& there = held[static_cast<std::size_t>((rank + 1) % ranks)][chunk];
                    there = before[static_cast<std::size_t>(rank)][chunk] + (sent.add ? there : 0);
                    ++chunks;
                }
            }
        });
        if (!ran || !look.holds(fault.empty(), fault)) continue;
        for (int rank = 0; rank < ranks; ++rank)
            look.equal("chunks of rank " + std::to_string(rank), held[static_cast<std::size_t>(rank)],
                       wanted);
        const double bytes = 1e6;  // size of the whole gradient
        look.at_most("bytes that a rank sends, of a gradient of 1000000", bytes * chunks / ranks / ranks,
                     2.0 * (ranks - 1) / ranks * bytes);
    }
}

const exercise::Add add(
    {.title = "add up gradients around a ring, measured in bytes",
     .minutes = 15,
     .lesson = "across-processes",
     .hints = {"In round 0 rank r sends chunk r. Which chunk has rank r got by then from its left, and so "
               "can send on in round 1?",
               "In the first phase the number goes down by one each round. Behind it rank r has got chunk r "
               "+ 1 last, complete: with that one the second phase begins, and goes down again.",
               "First phase: rank - round. Second phase, where round is at least ranks - 1: rank - round + "
               "ranks. Both modulo ranks, made positive before."},
     .why =
         "Each chunk makes one way round to be added up, and one more to be handed out. A rank sends 2 (P "
         "- 1) / P of the gradient: less than twice the gradient, for 4 ranks and for 4000, and nobody is in "
         "the middle. That is why gradients are summed in rings."},
    examine, answers);

}  // namespace
