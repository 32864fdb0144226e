// Functions that several ranks call together. Lessons 24 and 36.
#pragma once

#include "course/kit/on_ranks.hpp"
#include "course/kit/window_gradient.hpp"

namespace {
inline real mean_over(ProcessGroup& ranks, double own) {
    return ranks.all_reduce(Array<real>::full({}, real(own))).item() / real(ranks.size());
}

// Opens a Window on ranks whose weights may differ, and returns its error.
inline std::string error_of_window(ProcessGroup& ranks, double own_weight) {
    const Tensor w = parameter(Array<real>::full({}, real(own_weight)));
    Sgd<real> sgd({w}, {.learning_rate = 1});
    DataParallel<real> parallel(ranks);
    try {
        Window<real> window(sgd, {}, &parallel);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}
}  // namespace
