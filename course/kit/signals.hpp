// These functions help to handle signals that end, stop or continue a program.
#pragma once

#include <pthread.h>

#include <csignal>

namespace tally::lesson {

// Installs a handler, which blocks all signals while it runs. Signals that are ignored (nohup) stay ignored.
inline void handle_unless_ignored(int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigfillset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
}

// Forwards the signal to the thread, because the kernel may deliver it to a thread of BLAS.
inline bool passed_to(pthread_t thread, int signal) {
    return ::pthread_equal(::pthread_self(), thread) == 0 && ::pthread_kill(thread, signal) == 0;
}

}  // namespace tally::lesson
