// Declares what exercise ring provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_ring {

struct Send {
    int chunk;  // the number of the chunk, from 0 to ranks - 1
    bool add;   // true: the receiver adds the chunk to its own; false: it overwrites its own
};

}  // namespace exercise_ring

// rounds() returns the number of rounds. send() returns the chunk that a rank sends to rank (rank + 1) % ranks.
// In a round all ranks send at the same time, with the values from before the round. After the last round,
// each rank has the sum over all ranks in each chunk.
int rounds(int ranks);
Send send(int rank, int round, int ranks);
HAND_IN(rounds);
HAND_IN(send);
