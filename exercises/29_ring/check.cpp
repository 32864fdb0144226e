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

#include "29_ring.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    for (const int ranks : {4, 2, 3, 8, 1}) {
        look.with(std::to_string(ranks) + (ranks == 1 ? " rank, which has no neighbour" : " ranks"));
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
            if (rounds > 100) fault = "rounds() returns " + std::to_string(rounds);
            for (int round = 0; round < rounds && fault.empty(); ++round) {
                const Held before = held;
                for (int rank = 0; rank < ranks; ++rank) {
                    const Send sent = yours.send(rank, round, ranks);
                    if (sent.chunk < 0 || sent.chunk >= ranks) {
                        fault = "rank " + std::to_string(rank) + " sends chunk " +
                                std::to_string(sent.chunk) + " in round " + std::to_string(round) +
                                "; the numbers of chunks are 0 to " + std::to_string(ranks - 1);
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
    {.title = "a sum of gradients around a ring, measured in bytes",
     .minutes = 15,
     .lesson = "one-all-reduce",
     .hints = {"In round 0, rank r sends chunk r. Which chunk does rank r receive in round 0, and which one "
               "can it send in round 1?",
               "Replace the 0 of `.chunk`. A rank sends the chunk that it received in the round before. How "
               "does the chunk's number change from round to round? The number changes in the same way in "
               "the adding phase and in the overwriting phase.",
               "In each round of the adding phase and of the overwriting phase, rank `rank` sends chunk rank "
               "- round, taken modulo `ranks`. Add 2 * ranks before the modulo, so that the number is not "
               "negative."},
     .why = "Each chunk travels around the ring twice: once to be added up, and once to be distributed. So "
            "each of the P ranks sends 2 (P - 1) / P times the size of the gradient. That is less than twice "
            "the size, for any number of ranks."},
    examine, answers);

}  // namespace
