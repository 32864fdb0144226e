// What is refused to others while a window holds a parameter, in words.
#include "tally/values/gradient.hpp"

#include <unordered_map>
#include <utility>

#include "tally/base/error.hpp"

namespace tally::detail {

namespace {

thread_local std::unordered_map<const std::uint8_t*, CallsReaching*> counted;

}  // namespace

CallsReaching::~CallsReaching() {
    for (std::uint8_t* touched : leaves_) {
        counted.erase(touched);
        if (!(*touched & touch::held)) *touched &= static_cast<std::uint8_t>(~touch::met);
    }
}

void CallsReaching::look_at(std::uint8_t& touched) {
    leaves_.push_back(&touched);
    counted[&touched] = this;
}

std::int64_t CallsReaching::restart() {
    for (std::uint8_t* touched : leaves_)
        if (!(*touched & touch::held)) *touched |= touch::met;
    return std::exchange(calls_, 0);
}

void CallsReaching::note(std::uint8_t& touched) {
    const auto found = counted.find(&touched);
    if (found == counted.end() || std::exchange(found->second->last_, backward_calls) == backward_calls)
        return;
    ++found->second->calls_;
}

void refuse_held(const char* what, const std::string& parameter) {
    throw Error(
        std::string("[") + what + "] this parameter of " + parameter +
        " belongs to an open window with micro-batches in it, which alone changes it and its gradient; "
        "finish() or discard() the window first");
}

void refuse_lent(const char* what, std::size_t parameter) {
    throw Error("[" + std::string(what) + "] parameter " + std::to_string(parameter) +
                " holds the numbers of a moving average; swap() back before a step");
}

}  // namespace tally::detail
