// Starting a child, waiting for it, and reading what it says.
#include "lesson/runner/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>

extern char** environ;

namespace tally::lesson {

namespace {

volatile std::sig_atomic_t child = 0;

void pass_on(int signal) {
    if (child > 0) ::kill(static_cast<pid_t>(child), signal);
}

void notice(int) {}

// While one of these lives, the keyboard's signals are the child's business, and SIGCHLD waits until it is
// asked for.
class Aside {
public:
    Aside() {
        sigset_t held_back;
        sigemptyset(&held_back);
        for (int signal : {SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&held_back, signal);
        ::sigprocmask(SIG_BLOCK, &held_back, &mask_before_);
        for (std::size_t i = 0; i < signals.size(); ++i) {
            struct sigaction action {};
            const bool for_the_child = signals[i] == SIGTERM || signals[i] == SIGHUP;
            action.sa_handler = signals[i] == SIGCHLD ? notice : for_the_child ? pass_on : SIG_IGN;
            sigemptyset(&action.sa_mask);
            ::sigaction(signals[i], &action, &before_[i]);
        }
    }
    ~Aside() {
        for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before_[i], nullptr);
        ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

    const sigset_t& mask_before() const { return mask_before_; }

    static constexpr std::array signals{SIGINT, SIGQUIT, SIGTSTP, SIGTERM, SIGHUP, SIGCHLD};

private:
    std::array<struct sigaction, signals.size()> before_{};
    sigset_t mask_before_{};
};

// Returns when there is something to read. Meanwhile, when the child stops (Ctrl-Z, once it has put the
// terminal back), so do we; were we to stop first, the shell would have the terminal before the child could
// restore it.
void wait_for_output(pid_t pid, int pipe, const sigset_t& usual_mask) {
    for (;;) {
        siginfo_t info{};
        if (::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOHANG) == 0 && info.si_pid == pid)
            ::raise(SIGSTOP);
        fd_set ready;
        FD_ZERO(&ready);
        FD_SET(pipe, &ready);
        // What is held back can arrive only in here, so that nothing is missed.
        if (::pselect(pipe + 1, &ready, nullptr, nullptr, nullptr, &usual_mask) >= 0 || errno != EINTR)
            return;
    }
}

Finished run(const std::vector<std::string>& command, int captured_descriptor) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    for (int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);

    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, ends[1], captured_descriptor);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    sigset_t usual;
    sigemptyset(&usual);
    for (int signal : Aside::signals) sigaddset(&usual, signal);
    sigaddset(&usual, SIGPIPE);
    ::posix_spawnattr_setsigdefault(&attributes, &usual);
    const Aside aside;
    ::posix_spawnattr_setsigmask(&attributes, &aside.mask_before());
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);

    std::vector<char*> words;
    for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);

    pid_t pid = 0;
    const int error = ::posix_spawn(&pid, words.front(), &files, &attributes, words.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
    ::close(ends[1]);
    if (error != 0) {
        ::close(ends[0]);
        throw std::system_error(error, std::generic_category(),
                                fmt::format("cannot start {}", command.front()));
    }
    child = pid;

    Finished finished;
    std::array<char, 4096> buffer;
    for (;;) {
        wait_for_output(pid, ends[0], aside.mask_before());
        const ssize_t size = ::read(ends[0], buffer.data(), buffer.size());
        if (size > 0) finished.captured.append(buffer.data(), static_cast<std::size_t>(size));
        if (size == 0 || (size < 0 && errno != EINTR)) break;
    }
    ::close(ends[0]);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    child = 0;
    if (WIFSIGNALED(status)) {
        finished.signal = WTERMSIG(status);
    } else {
        finished.code = WEXITSTATUS(status);
    }
    return finished;
}

}  // namespace

Finished run_captured(const std::vector<std::string>& command) { return run(command, STDOUT_FILENO); }

Finished run_reporting(const std::vector<std::string>& command) {
    std::vector<std::string> reporting = command;
    reporting.push_back(fmt::format("--report={}", report_descriptor));
    return run(reporting, report_descriptor);
}

}  // namespace tally::lesson
