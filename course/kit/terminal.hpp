// Reads single keys from the terminal and restores the terminal afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace tally::lesson {

enum class Key : std::uint8_t {
    next,
    back,
    hint,
    graph,
    quit,
    skip,
    keys,
    checks,
    lesson_page,
    page_down,
    digit,
    other,
    resumed
};

struct KeyPress {
    Key key = Key::other;
    int digit = 0;  // 0 to 9, for Key::digit
    char byte = 0;  // the byte of a key that sends a single byte
};

std::optional<std::size_t> window_width();  // of the terminal on standard output
std::size_t text_width();                   // of the window, limited to 20 to 80; 80 without a window

// Makes Ctrl-C end the program with exit code 130. Ignores SIGPIPE, so that writing to a closed pipe fails.
void catch_interrupts();

// While a `KeyMode` exists, keys arrive at once and are not echoed. The destructor restores the terminal, and
// so do the handlers of SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGTSTP.
class KeyMode {
public:
    KeyMode();
    ~KeyMode();
    KeyMode(const KeyMode&) = delete;
    KeyMode& operator=(const KeyMode&) = delete;
};

void forget_typed_ahead();  // discards keys pressed before a question, so that they do not answer it
KeyPress read_key();        // waits for a key; a closed terminal counts as quit

}  // namespace tally::lesson
