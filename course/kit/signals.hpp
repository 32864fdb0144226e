// Helpers to handle the signals that end, stop or continue a program.
#pragma once

#include <pthread.h>

#include <csignal>

namespace tally::lesson {

// Installs a handler that runs with all other signals blocked. A signal that is ignored, as by nohup,
// stays ignored.
inline void handle_unless_ignored(int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigfillset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
}

// Forwards the signal to the thread, unless this is that thread. The kernel may deliver a signal to any
// thread, also to one of BLAS.
inline bool passed_to(pthread_t thread, int signal) {
    return ::pthread_equal(::pthread_self(), thread) == 0 && ::pthread_kill(thread, signal) == 0;
}

}  // namespace tally::lesson
