// These helpers run a function in a child process and kill the process, for tests of interrupted training.
#pragma once

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tally/base/error.hpp"

namespace tally::test {

// Runs f in a child process and returns the status of waitpid(). Only files that f has written remain.
template <class F> int in_child(F f) {
    const pid_t child = ::fork();
    if (child < 0) throw Error("no child process");
    if (child == 0) {
        try {
            f();
        } catch (...) {
            ::_exit(1);
        }
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}

inline bool was_killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }

[[noreturn]] inline void die() {
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
}

// Kills this process after a delay, at an arbitrary instruction.
inline void die_in(long microseconds) {
    ::signal(SIGALRM, [](int) { ::kill(::getpid(), SIGKILL); });
    itimerval timer{};
    timer.it_value = {microseconds / 1'000'000, microseconds % 1'000'000};
    ::setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace tally::test
