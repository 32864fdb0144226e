#include "tally/array/gradient.hpp"

#include "tally/base/error.hpp"

namespace tally::detail {

void throw_locked(const char* call, const std::string& description) {
    throw Error(std::string("[") + call + "] this parameter of " + description +
                " and its gradient belong to an open window with micro-batches; finish() or discard() the "
                "window first");
}

void throw_holds_average(const char* call) {
    throw Error("[" + std::string(call) +
                "] this parameter holds the numbers of a moving average, and swap() would undo the change; "
                "swap() back first");
}

void throw_holds_average(const char* call, std::size_t index) {
    throw Error("[" + std::string(call) + "] parameter " + std::to_string(index) +
                " holds the numbers of a moving average; swap() back first");
}

}  // namespace tally::detail
