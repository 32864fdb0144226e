// The real terminal: keys one by one, and everything put back as it was.
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
    page_down,
    digit,
    other,
    resumed
};

struct KeyPress {
    Key key = Key::other;
    int digit = 0;  // 0 to 9, when it is one
    char byte = 0;  // as it came, of a key that is one byte
};

std::optional<std::size_t> window_width();  // of the terminal on standard output
std::size_t text_width();                   // of the window, from 20 to 80; without one 80

// From here on Ctrl-C is exit code 130, and a closed pipe is an error to report rather than a death.
void catch_interrupts();

// Keys are not echoed and come one by one while one of these is alive. The terminal is restored by its destructor, and
// by a handler on SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGTSTP, which then do what they always do.
class KeyMode {
public:
    KeyMode();
    ~KeyMode();
    KeyMode(const KeyMode&) = delete;
    KeyMode& operator=(const KeyMode&) = delete;
};

void forget_typed_ahead();  // keys pressed before a question never answer it
KeyPress read_key();        // waits; a terminal that is gone counts as quit

}  // namespace tally::lesson
