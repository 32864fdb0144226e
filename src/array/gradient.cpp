#include "tally/array/gradient.hpp"

#include "tally/base/error.hpp"

namespace tally::detail {

void throw_locked(const char* call, const std::string& parameter) {
    throw Error(
        std::string("[") + call + "] this parameter of " + parameter +
        " belongs to an open window with micro-batches in it, which alone changes it and its gradient; "
        "finish() or discard() the window first");
}

void throw_average_not_writable(const char* call) {
    throw Error("[" + std::string(call) +
                "] this parameter holds the numbers of a moving average, and swap() would undo the change; "
                "swap() back first");
}

void throw_holds_average(const char* call, std::size_t parameter) {
    throw Error("[" + std::string(call) + "] parameter " + std::to_string(parameter) +
                " holds the numbers of a moving average; swap() back first");
}

}  // namespace tally::detail
