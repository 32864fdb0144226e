// Reads keys and restores the terminal when the program ends or stops.
#include "course/kit/terminal.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <string_view>

namespace tally::lesson {

namespace {
// Signal handlers may use only the following variables.
termios as_found;
termios with_keys;
volatile std::sig_atomic_t keys_on = 0;
volatile std::sig_atomic_t was_stopped = 0;
pthread_t reader;  // the thread that reads keys; only this thread changes the terminal

// Installs a handler that blocks all signals while it runs. Does nothing if the program ignores `signal`.
void handle_unless_ignored(int signal, void (*handler)(int)) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
    action.sa_handler = handler;
    sigfillset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
}

// Forwards the signal to `reader`, because the operating system may deliver the signal to any thread.
bool passed_to_reader(int signal) {
    return ::pthread_equal(::pthread_self(), reader) == 0 && ::pthread_kill(reader, signal) == 0;
}

bool ours() {
    termios now;
    return ::tcgetattr(STDIN_FILENO, &now) == 0 && now.c_lflag == with_keys.c_lflag &&
           now.c_iflag == with_keys.c_iflag && now.c_oflag == with_keys.c_oflag;
}

// Restores the terminal's settings, unless a shell changed the settings while this program was stopped.
bool restore() {
    if (keys_on == 0 || !ours()) return false;
    sigset_t in_background, usual;  // in the background, tcsetattr() raises SIGTTOU unless SIGTTOU is blocked
    sigemptyset(&in_background);
    sigaddset(&in_background, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &in_background, &usual);
    while (::tcsetattr(STDIN_FILENO, TCSANOW, &as_found) != 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &usual, nullptr);
    return true;
}

// Restores the terminal and begins a new line, unless Ctrl-S blocks the output.
void leave_screen() {
    pollfd screen{STDOUT_FILENO, POLLOUT, 0};
    if (!restore() || ::poll(&screen, 1, 0) != 1) return;
    [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, "\r\n", 2);
}

// Raises the signal with the default action, which ends or stops the program.
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

// Ends the program. All other signals are blocked, so a second signal does not interrupt this handler.
void on_end(int signal) {
    if (passed_to_reader(signal)) return;
    leave_screen();
    if (signal == SIGINT) ::_exit(130);
    as_without_handler(signal);
    ::_exit(128 + signal);  // needed for process 1 of a container, which the signal does not end
}

void on_continue(int signal) {
    if (keys_on == 0 || passed_to_reader(signal)) return;
    was_stopped = 1;
    if (::tcgetpgrp(STDIN_FILENO) == ::getpgrp()) ::tcsetattr(STDIN_FILENO, TCSANOW, &with_keys);
}

void on_stop(int signal) {
    if (passed_to_reader(signal)) return;
    leave_screen();
    as_without_handler(signal);
    on_continue(signal);  // also if the program did not stop, as in an orphaned process group
}

// The result is `nothing` after a timeout, `interrupted` after a signal, and `gone` if the terminal
// is closed.
enum class Got : std::uint8_t { byte, nothing, interrupted, gone };
Got read_byte(char& byte, int milliseconds) {
    if (milliseconds < 0 && was_stopped != 0)
        return Got::interrupted;  // a stop before poll() must not be missed
    pollfd keyboard{STDIN_FILENO, POLLIN, 0};
    const int count = ::poll(&keyboard, 1, milliseconds);
    if (count == 0) return Got::nothing;
    const ssize_t size =
        count < 0 ? -1 : ::read(STDIN_FILENO, &byte, 1);  // one byte, so that tcflush() can discard the rest
    if (size == 1) return Got::byte;
    return size < 0 && errno == EINTR ? Got::interrupted : Got::gone;
}

constexpr int within_a_key = 50;  // milliseconds between the bytes of one key, enough for a slow connection

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

Key meaning_of(char byte) {
    constexpr std::string_view bytes = " \r\nbhgscm?q\4";  // the last is Ctrl-D
    constexpr Key meanings[] = {Key::next, Key::next,   Key::next,        Key::back, Key::hint, Key::graph,
                                Key::skip, Key::checks, Key::lesson_page, Key::keys, Key::quit, Key::quit};
    const std::size_t at = bytes.find(byte);
    return at == std::string_view::npos ? Key::other : meanings[at];
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
    ::signal(SIGINT, SIG_DFL);  // a shell starts background jobs with SIGINT ignored
    handle_unless_ignored(SIGINT, on_end);
    ::signal(SIGPIPE, SIG_IGN);
}

KeyMode::KeyMode() {
    if (::tcgetattr(STDIN_FILENO, &as_found) != 0) return;
    reader = ::pthread_self();
    with_keys = as_found;
    with_keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // ISIG stays: Ctrl-C and Ctrl-Z are signals
    with_keys.c_cc[VMIN] = 1;
    with_keys.c_cc[VTIME] = 0;

    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) handle_unless_ignored(signal, on_end);
    handle_unless_ignored(SIGTSTP, on_stop);
    handle_unless_ignored(SIGCONT, on_continue);
    keys_on = 1;
    while (::tcsetattr(STDIN_FILENO, TCSAFLUSH, &with_keys) != 0 && errno == EINTR) {
    }
}

// Blocks signals, because SIGCONT between restore() and keys_on = 0 would change the settings again.
KeyMode::~KeyMode() {
    sigset_t all, usual;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &usual);
    restore();
    keys_on = 0;
    ::pthread_sigmask(SIG_SETMASK, &usual, nullptr);
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
        if (byte == '\033') return escape_sequence();
        if (byte < '0' || byte > '9') return {meaning_of(byte), 0, byte};
        return {Key::digit, byte - '0', byte};
    }
}

}  // namespace tally::lesson
