// What a signal does to a program that does nothing about it.
#pragma once

#include <csignal>
#include <cstdint>

namespace tally::lesson {

enum class Unhandled : std::uint8_t {
    ends,    // the program, because somebody asks it to
    faults,  // ends it, too, because of what it did itself; so it belongs to the thread that gets it
    stops,   // until SIGCONT
    nothing  // or what no program can change
};

inline Unhandled unhandled(int signal) {
    switch (signal) {
        case SIGILL:
        case SIGTRAP:
        case SIGABRT:
        case SIGBUS:
        case SIGFPE:
        case SIGSEGV:
        case SIGSYS:
            return Unhandled::faults;
        case SIGTSTP:
        case SIGTTIN:
        case SIGTTOU:
            return Unhandled::stops;
        case SIGCHLD:
        case SIGCONT:
        case SIGURG:
        case SIGWINCH:
        case SIGKILL:
        case SIGSTOP:
            return Unhandled::nothing;
        default:
            return Unhandled::ends;
    }
}

// Handles a signal, with all others held back meanwhile; one that is ignored on purpose (nohup) stays so.
template <class Handler> bool handle_unless_ignored(int signal, Handler handler, struct sigaction& before) {
    if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) return false;
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;  // a stack overflow needs another stack for its handler
    sigfillset(&action.sa_mask);
    return ::sigaction(signal, &action, nullptr) == 0;
}

}  // namespace tally::lesson
