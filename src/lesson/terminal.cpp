// The real terminal: raw keys, and restoring it on every way out.
#include "lesson/terminal.hpp"

#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>

namespace tally::lesson {

namespace {

// What the signal handlers need; they may touch nothing else.
termios as_found;
termios with_keys;
volatile std::sig_atomic_t keys_on = 0;
volatile std::sig_atomic_t was_stopped = 0;
pthread_t reader;  // the thread that waits for keys

void restore() {
    if (keys_on != 0) ::tcsetattr(STDIN_FILENO, TCSANOW, &as_found);
}

// Also the colours, and a fresh line for whoever writes next.
void leave_screen() {
    if (keys_on == 0) return;
    restore();
    [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, "\r\n", 2);
}

void on_interrupt(int) {
    leave_screen();
    ::_exit(130);
}

// Handlers of deadly signals are installed with SA_RESETHAND: raising again does what the signal always does.
void on_deadly(int signal) {
    leave_screen();
    ::raise(signal);
}

void on_continue(int) {
    if (keys_on == 0) return;
    was_stopped = 1;
    // BLAS has threads of its own, and the kernel may pick one of them: the wait must end all the same.
    if (::pthread_equal(::pthread_self(), reader) == 0) ::pthread_kill(reader, SIGCONT);
    if (::tcgetpgrp(STDIN_FILENO) == ::getpgrp()) ::tcsetattr(STDIN_FILENO, TCSANOW, &with_keys);
}

void on_stop(int signal) {
    leave_screen();
    struct sigaction as_usual {
    }, ours{};
    as_usual.sa_handler = SIG_DFL;
    ::sigaction(signal, &as_usual, &ours);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    ::raise(signal);
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);  // here it stops, and here it goes on
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    ::sigaction(signal, &ours, nullptr);
    on_continue(signal);  // also where nobody could stop it: without a shell above
}

void install(int signal, void (*handler)(int), int flags) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
}

constexpr std::array deadly{SIGTERM, SIGHUP, SIGQUIT, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};

// A stack overflow needs somewhere else to run its handler.
std::array<char, 1 << 16> spare_stack;

// The next byte, or nothing when none comes within the time (-1: forever), the terminal is gone, or a signal
// came.
enum class Got : std::uint8_t { byte, nothing, interrupted, gone };
Got read_byte(char& byte, int milliseconds) {
    // Ctrl-Z and going on can happen only while it waits, so that a stop just before is noticed too.
    sigset_t stops, usual;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTSTP);
    sigaddset(&stops, SIGCONT);
    ::sigprocmask(SIG_BLOCK, &stops, &usual);
    const bool forever = milliseconds < 0;
    int count = -1;
    int error = EINTR;
    if (!forever || was_stopped == 0) {
        fd_set ready;
        FD_ZERO(&ready);
        FD_SET(STDIN_FILENO, &ready);
        const timespec patience{milliseconds / 1000, milliseconds % 1000 * 1'000'000L};
        count = ::pselect(STDIN_FILENO + 1, &ready, nullptr, nullptr, forever ? nullptr : &patience, &usual);
        error = errno;
    }
    ::sigprocmask(SIG_SETMASK, &usual, nullptr);

    if (count < 0) return error == EINTR ? Got::interrupted : Got::gone;
    if (count == 0) return Got::nothing;
    const ssize_t size =
        ::read(STDIN_FILENO, &byte, 1);  // one at a time: the rest stays where it can be forgotten
    if (size == 1) return Got::byte;
    return size < 0 && errno == EINTR ? Got::interrupted : Got::gone;
}

constexpr int within_a_key = 50;  // milliseconds between the bytes of one key, also over a slow line

KeyPress escape_sequence() {
    std::string sequence;
    char byte = 0;
    while (sequence.size() < 16 && read_byte(byte, within_a_key) == Got::byte) {
        sequence += byte;
        const bool introducer = sequence.size() == 1 && (byte == '[' || byte == 'O');
        if (!introducer && byte >= '@' && byte <= '~') break;
    }
    if (sequence == "[6~") return {Key::page_down};
    if (sequence == "[5~" || sequence == "[D" || sequence == "OD") return {Key::back};
    if (sequence == "[C" || sequence == "OC") return {Key::next};
    return {Key::other};
}

}  // namespace

std::optional<std::size_t> window_width() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
    return size.ws_col;
}

void catch_interrupts() {
    install(SIGINT, on_interrupt, 0);
    install(SIGPIPE, SIG_IGN, 0);
}

KeyMode::KeyMode() {
    if (::tcgetattr(STDIN_FILENO, &as_found) != 0) return;
    reader = ::pthread_self();
    with_keys = as_found;
    with_keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // ISIG stays: Ctrl-C and Ctrl-Z are signals
    with_keys.c_cc[VMIN] = 1;
    with_keys.c_cc[VTIME] = 0;

    stack_t stack{};
    stack.ss_sp = spare_stack.data();
    stack.ss_size = spare_stack.size();
    ::sigaltstack(&stack, nullptr);
    // SA_NODEFER: a signal raised again in its own handler must act at once.
    for (int signal : deadly)
        install(signal, on_deadly, static_cast<int>(SA_RESETHAND | SA_NODEFER | SA_ONSTACK));
    install(SIGTSTP, on_stop, 0);
    install(SIGCONT, on_continue, 0);
    keys_on = 1;
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &with_keys);
}

KeyMode::~KeyMode() {
    restore();
    keys_on = 0;
    for (int signal : deadly) install(signal, SIG_DFL, 0);
    install(SIGTSTP, SIG_DFL, 0);
    install(SIGCONT, SIG_DFL, 0);
}

void forget_typed_ahead() { ::tcflush(STDIN_FILENO, TCIFLUSH); }

KeyPress read_key() {
    for (;;) {
        char byte = 0;
        const Got got = read_byte(byte, -1);
        if (got == Got::gone) return {Key::quit};
        if (got == Got::interrupted && was_stopped != 0) {
            was_stopped = 0;
            return {Key::resumed};
        }
        if (got != Got::byte) continue;
        switch (byte) {
            case ' ':
            case '\r':
            case '\n':
                return {Key::next};
            case 'b':
                return {Key::back};
            case 'h':
                return {Key::hint};
            case 'g':
                return {Key::graph};
            case 'r':
                return {Key::restart};
            case 's':
                return {Key::skip};
            case 'q':
            case 4:
                return {Key::quit};  // Ctrl-D
            case '\033':
                return escape_sequence();
            default:
                break;
        }
        if (byte < '1' || byte > '9') return {Key::other};
        // The tail of a page key whose head was forgotten ("6~") is no answer.
        char after = 0;
        if (read_byte(after, within_a_key) == Got::byte && after == '~') return {Key::other};
        return {Key::digit, byte - '0'};
    }
}

}  // namespace tally::lesson
