// Queries the core of this thread, and wakes another thread on a different core.
#pragma once

#include <functional>
#include <thread>

namespace tally::cpu {

int this_core();  // -1 if the system does not report the core

// Calls wake(), which wakes the thread, while the thread's affinity excludes `core`, unless it has no other
// core. Restores the affinity afterwards.
void wake_off_core(std::thread& thread, int core, const std::function<void()>& wake);

}  // namespace tally::cpu
