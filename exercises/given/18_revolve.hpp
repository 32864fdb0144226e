// Exercise 18, Revolve: what is given.
#pragma once
#include "exercise.hpp"

// A chain of `steps` lies before us; its input is held, and so many snapshots are `free`. Returns how many steps to run
// (without recording them) until the next snapshot is taken: 1 to steps - 1. Asked only where steps > 1 and free > 0.
int next_snapshot(int steps, int free);
HAND_IN(next_snapshot);
