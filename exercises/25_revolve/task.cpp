// Repair a function that returns the position of the next snapshot.
//
// Backward visits a chain of steps from the last to the first, and each step needs its input. A snapshot is a stored
// input of a step. Memory holds the input of the chain, and has room for `free` more snapshots. With l steps and
// c = free + 1 snapshots (the chain's input is one of them), the algorithm Revolve works like this:
//     Run k steps, and take a snapshot: the input of the other l - k steps. Process these steps with c - 1
//     snapshots. Then release the snapshot, and process the first k steps with all c snapshots.
//
// For l steps and c snapshots, p(l, c) is the smallest number of steps that run only to compute the input of
// a later step:
//     p(1, c) = 0,    p(l, 1) = l (l - 1) / 2,    p(l, c) = min over k of  k + p(l - k, c - 1) + p(k, c)
//
// Return k, the best position of the next snapshot, for a chain of `steps` steps with `free` more snapshots.
// k is a number from 1 to steps - 1. The check calls your function only with steps > 1 and free > 0. The code
// below returns the middle of the chain.
//
// Example: p(10, 3) is 15. If you take each snapshot in the middle, a chain of 10 steps with 2 more snapshots
// runs more than 15 steps to compute inputs.
//
// The question: a search with the formula needs the same values p(l, c) many times. How do you compute each
// value only once? The check uses chains of up to 64 steps and up to 10 snapshots. The check takes the
// snapshots at your positions, and counts the steps that run only to compute an input.
#include "given.hpp"

int next_snapshot(int steps, int free) { return steps / 2; }
