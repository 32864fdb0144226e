// Exercise 19, a ring: what is given.
#pragma once
#include "exercise.hpp"

inline namespace exercise_19 {

struct Send {
    int chunk;  // which of the `ranks` chunks of the gradient is sent to the next rank, and arrives under the same number
    bool add;  // true: the next rank adds it to its own; false: it overwrites its own
};

}  // namespace exercise_19

// How many rounds there are, and what each rank sends to rank (rank + 1) % ranks in one of them. In a round all ranks
// send at the same time, what they held before it. Afterwards every rank holds the sum of all ranks, in every chunk.
int rounds(int ranks);
Send send(int rank, int round, int ranks);
HAND_IN(rounds);
HAND_IN(send);
