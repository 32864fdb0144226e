// Complete a function that says which chunk of a gradient a process sends around a ring.
//
// Each of P processes (ranks) has a gradient, divided into P chunks. Each rank needs the sum of the gradients of all
// ranks. In each round, each rank r sends ONE chunk to rank r + 1 (the last rank sends to rank 0). All ranks send at
// the same time. There are two phases:
//     rounds 0 to P - 2         The receiver ADDS the received chunk to its own chunk of the same number.
//                               After these P - 1 rounds, each rank has one complete chunk: the sum of this
//                               chunk over all ranks.
//     rounds P - 1 to 2 P - 3   The receiver OVERWRITES its own chunk of the same number with the received
//                               chunk. The complete chunks travel around the ring.
//
// Return which chunk rank `rank` sends in round `round`. In round 0, rank r sends chunk r.
//
// Example: P is 4. In round 0, rank 1 sends chunk 1, and receives chunk 0 from rank 0.
//
// The question: each chunk must travel on from rank to rank. Which chunk did a rank receive in the round before?
//
// The check sends the chunks that you return, and counts their bytes. In C++, a % b can be negative if a is negative.
//
// Given:
//     struct Send {
//         int chunk;   // the number of the chunk, from 0 to ranks - 1
//         bool add;    // true: the receiver adds the chunk; false: the receiver overwrites its own chunk
//     };
#include "given.hpp"

int rounds(int ranks) { return 2 * (ranks - 1); }

Send send(int rank, int round, int ranks) {
    const bool adding = round < ranks - 1;
    todo();
    return {.chunk = 0, .add = adding};
}
