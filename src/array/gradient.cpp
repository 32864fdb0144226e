// What is refused to others while a window holds a parameter, in words.
#include "tally/array/gradient.hpp"

#include "tally/base/error.hpp"

namespace tally::detail {

void throw_locked(const char* what, const std::string& parameter) {
    throw Error(
        std::string("[") + what + "] this parameter of " + parameter +
        " belongs to an open window with micro-batches in it, which alone changes it and its gradient; "
        "finish() or discard() the window first");
}

void throw_average_not_writable(const char* what) {
    throw Error("[" + std::string(what) +
                "] this parameter holds the numbers of a moving average, and swap() would take the change "
                "away; swap() "
                "back first");
}

void throw_holds_average(const char* what, std::size_t parameter) {
    throw Error("[" + std::string(what) + "] parameter " + std::to_string(parameter) +
                " holds the numbers of a moving average; swap() back first");
}

}  // namespace tally::detail
