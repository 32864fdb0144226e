// Repair: the position of the next snapshot.
//
// Backward visits a chain of steps from the last to the first, and each step needs its input. Memory holds the
// input of the chain, and has room for `free` more snapshots. With l steps and c = free + 1 snapshots (the chain's
// input is one of them), Revolve works like this:
//     Run k steps, and take a snapshot. It is the input of the other l - k steps: process them with c - 1
//     snapshots. Then release the snapshot, and process the first k steps with all c snapshots.
//
// p(l, c) is the smallest number of steps that you run only to reach a position:
//     p(1, c) = 0,    p(l, 1) = l (l - 1) / 2,    p(l, c) = min over k of  k + p(l - k, c - 1) + p(k, c)
//
// Return a best k, from 1 to steps - 1, for a chain of `steps` with `free` more snapshots. The check calls your
// function only with steps > 1 and free > 0. The code below returns the middle.
//
// Example: p(10, 3) is 15. For 10 steps and 2 more snapshots, the middle needs more than 15 steps.
//
// The question: p needs the same p(l, c) many times. How do you compute each of them only once? The check uses
// chains of up to 64 steps and up to 10 snapshots, and counts the steps that your positions need.
#include "given.hpp"

int next_snapshot(int steps, int free) { return steps / 2; }
