// A ring.
//
// Four ranks, processes that share the work, have a gradient each, and every one wants the sum. Each cuts its own into
// four chunks, and sends in each round ONE chunk to its right neighbour, while it gets another one from its left. There
// are two phases:
//
//   - three rounds that add: a chunk travels from rank to rank and collects. After them rank r holds one chunk that is
//     complete;
//   - three rounds that overwrite: the complete chunks travel once around.
//
// So each rank sends 2 (P - 1) chunks of S / P bytes, never quite 2 S, however many ranks there are. The check moves
// your chunks and counts their bytes.
#include "given.hpp"

int rounds(int ranks) { return 2 * (ranks - 1); }

Send send(int rank, int round, int ranks) {
    const bool adding = round < ranks - 1;
    todo();  // which chunk does this rank send? (a % b of a negative a is negative: add `ranks` first)
    return {.chunk = 0, .add = adding};
}
