// Exercise 19, a ring: the answer, the mistakes that are known, and the check.
#include "19_ring.hpp"

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

namespace chunk_of_its_own {
int rounds(int ranks) { return 2 * (ranks - 1); }

Send send(int rank, int round, int ranks) { return {.chunk = rank, .add = round < ranks - 1}; }
}  // namespace chunk_of_its_own

namespace same_chunk_for_all {
int rounds(int ranks) { return 2 * (ranks - 1); }

Send send(int rank, int round, int ranks) { return {.chunk = round % ranks, .add = round < ranks - 1}; }
}  // namespace same_chunk_for_all

namespace against_the_ring {
int rounds(int ranks) { return 2 * (ranks - 1); }

Send send(int rank, int round, int ranks) {
    return {.chunk = (rank + round) % ranks, .add = round < ranks - 1};
}
}  // namespace against_the_ring

namespace always_adding {
int rounds(int ranks) { return 2 * (ranks - 1); }

Send send(int rank, int round, int ranks) {
    const int back = round < ranks - 1 ? round : round - ranks;
    return {.chunk = (rank - back + 2 * ranks) % ranks, .add = true};
}
}  // namespace always_adding

namespace second_phase_missing {
int rounds(int ranks) { return ranks - 1; }

Send send(int rank, int round, int ranks) { return {.chunk = (rank - round + ranks) % ranks, .add = true}; }
}  // namespace second_phase_missing

namespace second_phase_not_shifted {
int rounds(int ranks) { return 2 * (ranks - 1); }

Send send(int rank, int round, int ranks) {
    const bool adding = round < ranks - 1;
    const int back = adding ? round : round - ranks + 1;
    return {.chunk = (rank - back + 2 * ranks) % ranks, .add = adding};
}
}  // namespace second_phase_not_shifted

struct Functions {
    decltype(&::rounds) rounds;
    decltype(&::send) send;
};

void examine(exercise::Look& look, const Functions& yours) {
    for (const int ranks : {4, 2, 3, 8, 1}) {
        look.with(std::to_string(ranks) + (ranks == 1 ? " rank, who has nobody to send to" : " ranks"));
        using Held = std::vector<std::vector<double>>;  // by each rank, a number for each chunk
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
        const double bytes = 1e6;  // of the whole gradient
        look.at_most("bytes that a rank sends, of a gradient of 1000000", bytes * chunks / ranks / ranks,
                     2.0 * (ranks - 1) / ranks * bytes);
    }
}

const exercise::Add add(
    {.number = 19,
     .slug = "ring",
     .title = "add up gradients around a ring, measured in bytes",
     .minutes = 15,
     .lesson = "divide",
     .functions = {"rounds", "send"},
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
    examine, Functions{right::rounds, right::send},
    {{"chunk_of_its_own",
      {chunk_of_its_own::rounds, chunk_of_its_own::send},
      "Each rank sends the chunk of its own number in every round. What it has got from its left must travel "
      "on: the chunk changes from round to round."},
     {"same_chunk_for_all",
      {same_chunk_for_all::rounds, same_chunk_for_all::send},
      "In a round all ranks send the chunk of the same number, so it is added up many times over in the same "
      "place. In one round each rank must send another chunk."},
     {"against_the_ring",
      {against_the_ring::rounds, against_the_ring::send},
      "The numbers go up from round to round. What rank r gets in a round is what rank r - 1 sent; to send "
      "that on, the number must go down."},
     {"always_adding",
      {always_adding::rounds, always_adding::send},
      "The second phase still adds: complete chunks are added to what is there, and come out too large. "
      "There they overwrite."},
     {"second_phase_missing",
      {second_phase_missing::rounds, second_phase_missing::send},
      "After the first phase each rank has one complete chunk, and there you stop. The complete chunks have "
      "to travel around as well."},
     {"second_phase_not_shifted",
      {second_phase_not_shifted::rounds, second_phase_not_shifted::send},
      "The first phase is right. In the second, each rank must begin with the chunk that is complete at its "
      "place: the one that it got last, not the one that it sent first."}});

}  // namespace
