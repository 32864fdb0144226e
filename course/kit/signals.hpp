// Installs signal handlers, and forwards signals from one thread to another thread.
#pragma once

#include <pthread.h>

#include <csignal>

namespace tally::lesson {

// Installs a handler that blocks all signals while it runs. Does nothing if the program ignores `signal`.
inline void handle_unless_ignored(int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigfillset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
}

// Forwards the signal to `thread`, because the operating system may deliver the signal to any thread.
inline bool passed_to(pthread_t thread, int signal) {
    return ::pthread_equal(::pthread_self(), thread) == 0 && ::pthread_kill(thread, signal) == 0;
}

}  // namespace tally::lesson
