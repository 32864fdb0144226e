// Returns the core on which this thread runs, and wakes another thread on a different core.
#pragma once

#include <functional>
#include <thread>

namespace tally::cpu {

int this_core();  // -1 if the system does not report the core

// Excludes `core` from the affinity mask of the thread, calls wake(), and restores the mask. If the thread
// may run only on `core`, the mask does not change.
void wake_off_core(std::thread& thread, int core, const std::function<void()>& wake);

}  // namespace tally::cpu
