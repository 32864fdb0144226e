// Declares what exercise ring provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_ring {

struct Send {
    int chunk;  // number of the chunk of the gradient, out of `ranks`, on both ranks
    bool add;   // true: the next rank adds the chunk to its own; false: it overwrites its own
};

}  // namespace exercise_ring

// Return the number of rounds, and what each rank sends to rank (rank + 1) % ranks in a round. In a round all
// ranks send at the same time, with the values from before the round. At the end every rank has the sum of
// all ranks in every chunk.
int rounds(int ranks);
Send send(int rank, int round, int ranks);
HAND_IN(rounds);
HAND_IN(send);
