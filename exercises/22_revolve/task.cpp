// Where to put the next snapshot.
//
// Backward goes through a chain of 10 steps, the last one first, and each step needs its input. With c snapshots, the
// chain's input among them: run k steps, take a snapshot there, do all behind it (with one snapshot less), let that one
// go, and do the k steps before it. Where none is free, every step runs anew from the held input.
//
//     p(l, c) = the smallest over k of   k + p(l - k, c - 1) + p(k, c),     p(1, c) = 0,   p(l, 1) = l (l - 1) / 2
//
// counts the steps that are run only to come to a place. p(10, 3) = 15. Return the best k for a chain of `steps` with
// `free` snapshots beside the one that holds its input: so c = free + 1. The check walks as you say, and counts, in
// chains of up to 64 steps: p is then asked for the same l and c over and over, and must not find them anew each time.
#include "given.hpp"

int next_snapshot(int steps, int free) {
    return steps / 2;  // in the middle? the part behind has one snapshot less than the part before
}
