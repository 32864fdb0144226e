// Declares what exercise revolve provides.
#pragma once
#include "exercise.hpp"

// The input of a chain of `steps` is held, and `free` snapshots can be taken. Returns how many steps to run,
// without recording, before the next snapshot: 1 to steps - 1. Called only with steps > 1 and free > 0.
int next_snapshot(int steps, int free);
HAND_IN(next_snapshot);
