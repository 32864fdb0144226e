// Handling the signals that ask a program to end, to stop or to go on; every other one does what it always does.
#pragma once

#include <pthread.h>

#include <csignal>

namespace tally::lesson {

// With all others held back meanwhile; one that is ignored on purpose (nohup) stays so.
inline void handle_unless_ignored(int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigfillset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
}

// BLAS has threads of its own, and the kernel may pick one of them.
inline bool passed_to(pthread_t thread, int signal) {
    return ::pthread_equal(::pthread_self(), thread) == 0 && ::pthread_kill(thread, signal) == 0;
}

}  // namespace tally::lesson
