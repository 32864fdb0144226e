// What is refused to others while a window holds a parameter, in words.
#include "tally/values/gradient.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "tally/base/error.hpp"

namespace tally::detail {

namespace {

struct Counted {
    std::mutex changing;
    std::unordered_map<const std::uint8_t*, CallsReaching*> by;
};
Counted& counted() {
    static auto* const all = new Counted;  // never destroyed: what is destroyed at the end may still ask
    return *all;
}
std::atomic<std::size_t> leaves_counted = 0;

}  // namespace

CallsReaching::~CallsReaching() {
    const std::scoped_lock lock(counted().changing);
    leaves_counted -= std::erase_if(counted().by, [this](const auto& each) { return each.second == this; });
}

void CallsReaching::look_at(std::uint8_t& touched) {
    const std::scoped_lock lock(counted().changing);
    leaves_.push_back(&touched);
    leaves_counted += counted().by.insert_or_assign(&touched, this).second ? 1 : 0;
}

std::int64_t CallsReaching::restart() {
    for (std::uint8_t* touched : leaves_)
        if (!(*touched & touch::held)) *touched |= touch::met;
    return std::exchange(calls_, 0);
}

void CallsReaching::note(std::uint8_t& touched) {
    if (leaves_counted == 0) return;
    const std::scoped_lock lock(counted().changing);
    const auto found = counted().by.find(&touched);
    if (found == counted().by.end()) return;
    CallsReaching& calls = *found->second;
    if (std::exchange(calls.last_, backward_calls) == backward_calls) return;
    const auto arrived = [](const std::uint8_t* each) { return (*each & touch::arrived) != 0; };
    if (std::none_of(calls.leaves_.begin(), calls.leaves_.end(), arrived)) calls.calls_ = 0;
    ++calls.calls_;
}

void refuse_held(const char* what, const std::string& parameter) {
    throw Error(
        std::string("[") + what + "] this parameter of " + parameter +
        " belongs to an open window with micro-batches in it, which alone changes it and its gradient; "
        "finish() or discard() the window first");
}

void refuse_written_average(const char* what) {
    throw Error("[" + std::string(what) +
                "] this parameter holds the numbers of a moving average, and swap() would take the change "
                "away; swap() "
                "back first");
}

void refuse_lent(const char* what, std::size_t parameter) {
    throw Error("[" + std::string(what) + "] parameter " + std::to_string(parameter) +
                " holds the numbers of a moving average; swap() back first");
}

}  // namespace tally::detail
