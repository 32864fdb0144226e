// Returns the core on which this thread runs, and wakes another thread on a different core.
#pragma once

#include <functional>
#include <thread>

namespace tally::cpu {

int this_core();  // -1 if the system does not report the core

// Removes `core` from the affinity of the thread, calls wake() to wake the thread, and restores the affinity.
// Leaves the affinity unchanged if the thread may run on no other core.
void wake_off_core(std::thread& thread, int core, const std::function<void()>& wake);

}  // namespace tally::cpu
