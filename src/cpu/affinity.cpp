// Implements thread affinity for Linux. On other systems wake_off_core() only calls wake().
#include "tally/cpu/affinity.hpp"

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace tally::cpu {

#if defined(__linux__)

int this_core() { return sched_getcpu(); }

void wake_off_core(std::thread& thread, int core, const std::function<void()>& wake) {
    const auto handle = thread.native_handle();
    cpu_set_t allowed;
    if (core < 0 || pthread_getaffinity_np(handle, sizeof allowed, &allowed) != 0) return wake();
    cpu_set_t others = allowed;
    CPU_CLR(core, &others);
    const bool kept_off = pthread_setaffinity_np(handle, sizeof others, &others) == 0;
    wake();
    if (kept_off) pthread_setaffinity_np(handle, sizeof allowed, &allowed);
}

#else

int this_core() { return -1; }
void wake_off_core(std::thread&, int, const std::function<void()>& wake) { wake(); }

#endif

}  // namespace tally::cpu
