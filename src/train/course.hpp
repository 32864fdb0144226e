// The options that decide the course of training, in words: what a resumed one is compared by.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tally/train/require.hpp"
#include "tally/train/window.hpp"

namespace tally {

using Course = std::vector<std::pair<std::string, std::string>>;

namespace detail {

inline std::string in_words(bool yes) { return yes ? "yes" : "no"; }
inline std::string in_words(const std::optional<double>& number) {
    return number ? in_words(*number) : "none";
}
inline std::string in_words(Reduction of) { return of == Reduction::mean ? "mean" : "sum"; }
inline std::string in_words(Weigh what) { return what == Weigh::counted ? "counted" : "micro_batches"; }
inline std::string in_words(Sum how) { return how == Sum::running ? "running" : "exact"; }
inline std::string in_words(Tail policy) {
    switch (policy) {
        case Tail::scale:
            return "scale";
        case Tail::drop:
            return "drop";
        case Tail::carry:
            break;
    }
    return "carry";
}
inline std::string in_words(NonFinite policy) {
    switch (policy) {
        case NonFinite::raise:
            return "raise";
        case NonFinite::drop_micro:
            return "drop_micro";
        case NonFinite::drop_window:
            break;
    }
    return "drop_window";
}

}  // namespace detail

}  // namespace tally
