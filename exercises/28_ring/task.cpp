// Complete: the sum of gradients around a ring of processes.
//
// Each of P ranks has a gradient in P chunks, and needs the sum over all ranks. In each round, each rank r sends
// ONE chunk to rank r + 1 (the last rank sends to rank 0). All ranks send at the same time. There are two phases:
//     rounds 0 to P - 2         The receiver ADDS the chunk to its own. At the end of this phase each rank has
//                               one complete chunk.
//     rounds P - 1 to 2 P - 3   The receiver OVERWRITES its own chunk. The complete chunks travel around the ring.
//
// Return which chunk rank `rank` sends in round `round`. In round 0, rank r sends chunk r.
//
// Example: P is 4. In round 0, rank 1 sends chunk 1, and receives chunk 0 from rank 0.
//
// The question: a chunk must travel on. Which chunk did a rank receive in the round before?
//
// The check moves your chunks, and counts their bytes. In C++, a % b is negative if a is negative.
//
// Given:
//     struct Send {
//         int chunk;   // its number, from 0 to ranks - 1
//         bool add;    // true: the receiver adds the chunk; false: it overwrites its own
//     };
#include "given.hpp"

int rounds(int ranks) { return 2 * (ranks - 1); }

Send send(int rank, int round, int ranks) {
    const bool adding = round < ranks - 1;
    todo();
    return {.chunk = 0, .add = adding};
}
