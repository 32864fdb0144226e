// Formats options as text, so that a resumed run can compare its options with the saved options.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tally/train/state_reader.hpp"
#include "tally/train/window.hpp"

namespace tally {

using NamedOptions = std::vector<std::pair<std::string, std::string>>;

namespace detail {
inline std::string to_text(bool yes) { return yes ? "yes" : "no"; }
inline std::string to_text(const std::optional<double>& number) { return number ? to_text(*number) : "none"; }
inline std::string to_text(Reduction of) { return of == Reduction::mean ? "mean" : "sum"; }
inline std::string to_text(Weigh what) { return what == Weigh::counted ? "counted" : "micro_batches"; }
inline std::string to_text(Sum how) { return how == Sum::running ? "running" : "exact"; }
inline std::string to_text(Tail policy) {
    constexpr const char* words[] = {"scale", "drop", "carry"};
    return words[static_cast<int>(policy)];
}
inline std::string to_text(NonFinite policy) {
    constexpr const char* words[] = {"raise", "drop_micro", "drop_window"};
    return words[static_cast<int>(policy)];
}
}  // namespace detail

}  // namespace tally
