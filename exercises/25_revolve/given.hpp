// Declares what exercise revolve provides.
#pragma once
#include "exercise.hpp"

// Memory holds the input of a chain of `steps`, and has room for `free` more snapshots. Returns how many steps to
// run before the next snapshot, from 1 to steps - 1. The check calls it only with steps > 1 and free > 0.
int next_snapshot(int steps, int free);
HAND_IN(next_snapshot);
