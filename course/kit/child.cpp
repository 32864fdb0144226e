// Starts a child process, reads its output and waits for its end.
#include "course/kit/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "course/kit/signals.hpp"

namespace tally::lesson {

namespace {
volatile std::sig_atomic_t child = 0;
volatile std::sig_atomic_t stop_signal = 0;  // the signal to stop that this program has not obeyed yet, or 0
volatile std::sig_atomic_t end_signal = 0;   // the first signal to end this program while a child ran

pthread_t waiting_thread;  // the thread that waits for the child; only this thread handles signals

// Forwards a signal to the child, unless the signal comes from the keyboard and thus also reaches the child.
void forward_signal(int signal, siginfo_t* info, void*) {
    if (passed_to(waiting_thread, signal)) return;
    const bool keyboard = signal == SIGINT || signal == SIGQUIT || signal == SIGTSTP;
    if (signal == SIGTSTP)
        stop_signal = signal;
    else if (end_signal == 0)
        end_signal = signal;
    if (!(keyboard && info->si_code > 0)) ::kill(static_cast<pid_t>(child), signal);
}

void on_child_change(int signal, siginfo_t*, void*) { passed_to(waiting_thread, signal); }

// Forwards signals that end or stop a program to the child first. Only pselect() unblocks these signals.
class SignalForwarding {
public:
    SignalForwarding() {
        sigset_t held_back;
        sigemptyset(&held_back);
        for (const int signal : signals) sigaddset(&held_back, signal);
        ::pthread_sigmask(SIG_BLOCK, &held_back, &mask_before_);
        for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], nullptr, &before_[i]);
    }
    // Installs the handlers. Call watch() after fork(), because the handlers forward signals to the child.
    void watch() {
        end_signal = 0;
        stop_signal = 0;
        waiting_thread = ::pthread_self();
        for (const int signal : signals)
            handle_unless_ignored(signal, signal == SIGCHLD ? on_child_change : forward_signal);
    }
    ~SignalForwarding() {
        for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before_[i], nullptr);
        release();
        if (stop_signal != 0) ::raise(stop_signal);  // the child ended before it could stop
    }
    void release() const { ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr); }
    SignalForwarding(const SignalForwarding&) = delete;
    SignalForwarding& operator=(const SignalForwarding&) = delete;

    const sigset_t& mask_before() const { return mask_before_; }

private:
    static constexpr std::array signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCHLD};
    std::array<struct sigaction, signals.size()> before_{};
    sigset_t mask_before_{};
};

// Restores the terminal if a signal that cannot be caught ended or stopped the child.
class SavedTerminal {
public:
    SavedTerminal() : known_(::tcgetattr(STDIN_FILENO, &found_) == 0) {}
    void restore() const {
        termios now{};
        if (!known_ || ::tcgetpgrp(STDIN_FILENO) != ::getpgrp() || ::tcgetattr(STDIN_FILENO, &now) != 0)
            return;
        if (now.c_lflag == found_.c_lflag) return;
        ::tcsetattr(STDIN_FILENO, TCSANOW, &found_);
        // The child may have stopped in the middle of a line.
        [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, "\n", 1);
    }

private:
    termios found_{};
    bool known_;
};

// If the child has stopped, stops this program too. The child must stop first, because the child restores the
// terminal for the shell. Continues the child if SIGCONT reaches only this program.
void stop_with(pid_t pid, const SavedTerminal& terminal) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOHANG) != 0 || info.si_pid != pid) return;
    terminal.restore();
    stop_signal = 0;
    ::raise(SIGSTOP);
    info = {};
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WCONTINUED | WNOHANG) == 0 && info.si_pid != pid)
        ::kill(pid, SIGCONT);
}

// Returns when the pipe can be read or has been closed.
void wait_for_output(pid_t pid, int pipe, const sigset_t& usual_mask, const SavedTerminal& terminal) {
    for (;;) {
        stop_with(pid, terminal);
        fd_set ready;
        FD_ZERO(&ready);
        FD_SET(pipe, &ready);
        // Signals are blocked outside pselect(), so no signal is lost between stop_with() and pselect().
        if (::pselect(pipe + 1, &ready, nullptr, nullptr, nullptr, &usual_mask) >= 0 || errno != EINTR)
            return;
    }
}

std::array<int, 2> closing_pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    for (int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
    return ends;
}

// Runs in the child process between fork() and execv(), where only async-signal-safe calls are allowed.
[[noreturn]] void exec_child(char* const* words, const SignalForwarding& forwarding, int captured,
                             int captured_descriptor, int failure) {
#ifdef __linux__
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // the child also ends if SIGKILL ends this program
#endif
    ::dup2(captured, captured_descriptor);
    ::fcntl(captured_descriptor, F_SETFD, 0);
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(SIGPIPE, &usual, nullptr);  // execv() resets handlers, but not SIG_IGN
    forwarding.release();
    ::execv(words[0], words);
    const int error = errno;
    [[maybe_unused]] const ssize_t written = ::write(failure, &error, sizeof error);
    ::_exit(127);
}
}  // namespace

ChildResult run_capturing(const std::vector<std::string>& command, int captured_descriptor) {
    const auto ends = closing_pipe();
    const auto failures = closing_pipe();
    std::vector<char*> words;
    for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);

    const SavedTerminal terminal;
    SignalForwarding forwarding;
    // posix_spawn() would wait forever if a signal stopped the child before its exec, so this uses fork().
    const pid_t pid = ::fork();
    int error = errno;
    if (pid == 0) exec_child(words.data(), forwarding, ends[1], captured_descriptor, failures[1]);
    ::close(ends[1]);
    ::close(failures[1]);
    if (pid < 0) throw std::system_error(error, std::generic_category(), "fork");
    child = pid;
    forwarding.watch();

    ChildResult finished;
    std::array<char, 4096> buffer;
    for (;;) {
        wait_for_output(pid, ends[0], forwarding.mask_before(), terminal);
        const ssize_t size = ::read(ends[0], buffer.data(), buffer.size());
        if (size > 0) finished.captured.append(buffer.data(), static_cast<std::size_t>(size));
        if (size == 0 || (size < 0 && errno != EINTR)) break;
    }
    ::close(ends[0]);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    child = 0;
    const bool failed = ::read(failures[0], &error, sizeof error) == static_cast<ssize_t>(sizeof error);
    ::close(failures[0]);
    if (failed)
        throw std::system_error(error, std::generic_category(),
                                fmt::format("cannot start {}", command.front()));
    if (WIFSIGNALED(status)) {
        finished.signal = WTERMSIG(status);
        terminal.restore();
    } else {
        finished.code = WEXITSTATUS(status);
    }
    finished.end_signal = end_signal;
    return finished;
}

std::string captured_from(const std::vector<std::string>& command) {
    ChildResult finished = run_capturing(command, STDOUT_FILENO);
    if (finished.end_signal != 0) throw AskedToEnd{finished.end_signal};
    return std::move(finished.captured);
}

ChildResult run_reporting(const std::vector<std::string>& command) {
    std::vector<std::string> reporting = command;
    reporting.push_back(fmt::format("--report={}", report_descriptor));
    return run_capturing(reporting, report_descriptor);
}

}  // namespace tally::lesson
