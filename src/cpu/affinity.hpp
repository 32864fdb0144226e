// Which core a thread is on, and how another one is woken elsewhere.
#pragma once

#include <functional>
#include <thread>

namespace tally::cpu {

int this_core();  // -1 where the system does not say

// Calls wake(), which wakes the thread, while it may not run on `core`, unless it has no other. Afterwards it may again.
void wake_off_core(std::thread& thread, int core, const std::function<void()>& wake);

}  // namespace tally::cpu
