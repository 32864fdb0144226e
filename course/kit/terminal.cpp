// The real terminal: raw keys, and restoring it on every way out.
#include "tally/lesson/terminal.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>

#include "tally/lesson/signals.hpp"

namespace tally::lesson {

namespace {

// What the signal handlers need; they may touch nothing else.
termios as_found;
termios with_keys;
volatile std::sig_atomic_t keys_on = 0;
volatile std::sig_atomic_t was_stopped = 0;
pthread_t reader;  // the thread that waits for keys, and the only one that sets the terminal

bool in_foreground() { return ::tcgetpgrp(STDIN_FILENO) == ::getpgrp(); }

bool ours() {
    termios now;
    return ::tcgetattr(STDIN_FILENO, &now) == 0 && now.c_lflag == with_keys.c_lflag &&
           now.c_iflag == with_keys.c_iflag && now.c_oflag == with_keys.c_oflag;
}

// In the background only what we set ourselves is undone: a shell may have set its own by then.
bool restore() {
    if (keys_on == 0 || !(in_foreground() || ours())) return false;
    sigset_t in_background, usual;  // where setting a terminal stops whoever does not hold this back
    sigemptyset(&in_background);
    sigaddset(&in_background, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &in_background, &usual);
    while (::tcsetattr(STDIN_FILENO, TCSANOW, &as_found) != 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &usual, nullptr);
    return true;
}

// Also a fresh line for whoever writes next, unless Ctrl-S holds all writing up.
void leave_screen() {
    pollfd screen{STDOUT_FILENO, POLLOUT, 0};
    if (!restore() || ::poll(&screen, 1, 0) != 1) return;
    [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, "\r\n", 2);
}

// BLAS has threads of its own, and the kernel may pick one of them.
bool passed_to_reader(int signal) {
    return ::pthread_equal(::pthread_self(), reader) == 0 && ::pthread_kill(reader, signal) == 0;
}

// Does what the signal does without a handler: here it ends, or stops and goes on.
void as_without_handler(int signal) {
    struct sigaction usual {
    }, ours{};
    usual.sa_handler = SIG_DFL;
    ::sigaction(signal, &usual, &ours);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    ::raise(signal);
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    ::sigaction(signal, &ours, nullptr);
}

// Every other signal is held back in here: a second one, to the group after one to us, finds us gone.
void on_end(int signal, siginfo_t*, void*) {
    if (unhandled(signal) != Unhandled::faults && passed_to_reader(signal)) return;
    leave_screen();
    if (signal == SIGINT) ::_exit(130);
    as_without_handler(signal);
    ::_exit(128 + signal);  // process 1 of a container lives on
}

void on_continue(int signal, siginfo_t*, void*) {
    if (keys_on == 0 || passed_to_reader(signal)) return;
    was_stopped = 1;
    if (in_foreground()) ::tcsetattr(STDIN_FILENO, TCSANOW, &with_keys);
}

void on_stop(int signal, siginfo_t* info, void* context) {
    if (passed_to_reader(signal)) return;
    leave_screen();
    as_without_handler(signal);
    on_continue(signal, info, context);  // also where nobody could stop it: without a shell above
}

// What was done about signals before there were keys.
struct Before {
    struct sigaction action;
    bool changed;
};
std::array<Before, NSIG> before;

void handle_all() {
    for (int signal = 1; signal < NSIG; ++signal) {
        const Unhandled usual = unhandled(signal);
        if (signal != SIGCONT && usual == Unhandled::nothing) continue;
        Before& known = before[static_cast<std::size_t>(signal)];
        const auto handler = signal == SIGCONT ? on_continue : usual == Unhandled::stops ? on_stop : on_end;
        known.changed = handle_unless_ignored(signal, handler, known.action);
    }
}

void handle_none() {
    for (int signal = 1; signal < NSIG; ++signal) {
        const Before& known = before[static_cast<std::size_t>(signal)];
        if (known.changed) ::sigaction(signal, &known.action, nullptr);
    }
}

std::array<char, 1 << 16> spare_stack;

// The next byte, or nothing when none comes within the time (-1: forever), the terminal is gone, or
// a signal came.
enum class Got : std::uint8_t { byte, nothing, interrupted, gone };
Got read_byte(char& byte, int milliseconds) {
    // Ctrl-Z and going on can happen only while it waits, so that a stop just before is noticed too.
    sigset_t stops, usual;
    sigemptyset(&stops);
    for (int signal : {SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT}) sigaddset(&stops, signal);
    ::pthread_sigmask(SIG_BLOCK, &stops, &usual);
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
    ::pthread_sigmask(SIG_SETMASK, &usual, nullptr);

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

std::optional<char> pending;  // read to see whether a digit is the head of something longer

Got next_byte(char& byte) {
    if (!pending) return read_byte(byte, -1);
    byte = *pending;
    pending.reset();
    return Got::byte;
}

Key meaning_of(char byte) {
    switch (byte) {
        case ' ':
        case '\r':
        case '\n':
            return Key::next;
        case 'b':
            return Key::back;
        case 'h':
            return Key::hint;
        case 'g':
            return Key::graph;
        case 'r':
            return Key::restart;
        case 's':
            return Key::skip;
        case 'c':
            return Key::checks;
        case '?':
            return Key::keys;
        case 'q':
        case 4:
            return Key::quit;  // Ctrl-D
        default:
            return Key::other;
    }
}

}  // namespace

std::optional<std::size_t> window_width() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
    return size.ws_col;
}

std::size_t text_width() { return std::clamp<std::size_t>(window_width().value_or(80), 20, 80); }

void catch_interrupts() {
    reader = ::pthread_self();
    struct sigaction action {};
    sigfillset(&action.sa_mask);
    action.sa_sigaction = on_end;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGINT, &action, nullptr);
    action.sa_flags = 0;
    action.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &action, nullptr);
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
    handle_all();
    keys_on = 1;
    while (::tcsetattr(STDIN_FILENO, TCSAFLUSH, &with_keys) != 0 && errno == EINTR) {
    }
}

// A signal in between would find the keys still on, and turn them on once more: it waits.
KeyMode::~KeyMode() {
    sigset_t all, usual;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &usual);
    restore();
    keys_on = 0;
    handle_none();
    ::pthread_sigmask(SIG_SETMASK, &usual, nullptr);
}

void forget_typed_ahead() {
    ::tcflush(STDIN_FILENO, TCIFLUSH);
    pending.reset();
}

KeyPress read_key() {
    for (;;) {
        char byte = 0;
        const Got got = next_byte(byte);
        if (got == Got::gone) return {Key::quit};
        if (got == Got::interrupted && was_stopped != 0) {
            was_stopped = 0;
            return {Key::resumed};
        }
        if (got != Got::byte) continue;
        if (byte == '\033') return escape_sequence();
        if (byte < '0' || byte > '9') return {meaning_of(byte), 0, byte};
        // The tail of a page key whose head was forgotten ("6~") is no answer.
        char after = 0;
        if (read_byte(after, within_a_key) == Got::byte) {
            if (after == '~') return {Key::other};
            pending = after;
        }
        return {Key::digit, byte - '0', byte};
    }
}

}  // namespace tally::lesson
