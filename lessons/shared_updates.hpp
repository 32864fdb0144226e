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

// The gradient of micro-batch k: 1000 numbers by a formula, so that a test can compute them without tally.
inline Tensor thousand(int k) {
    std::vector<real> numbers;
    for (int i = 0; i < 1000; ++i)
        numbers.push_back(real((37 * i * i + 11 * k * i + 5 * k) % 127 - 63) / 129);
    return Array<real>({1000}, numbers, options().device);
}
inline Tensor one_item() { return Array<real>::full({}, real(1), options().device); }

inline Array<real> own_gradient(const Tensor& row, const Tensor& w) {
    return grad(mean(matmul(row, w)), {w}).front();
}
inline int different(const std::vector<real>& a, const std::vector<real>& b) {
    int count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
    return count;
}

// Adds two micro-batches to a window whose weights are zero, and calls work(window). Returns its error and
// the weights.
inline std::string error_and_weights(const auto& work) {
    const Tensor v = zeros({3});
    std::string error = "no error";
    try {
        ProcessGroup own_group;  // a rank that fails leaves its group
        DataParallel<real> ranks(own_group);
        Sgd<real> sgd({v}, {.learning_rate = 1});
        Window<real> window(sgd, {}, &ranks);
        for (int micro = 0; micro < 2; ++micro) window.add(Loss(matmul(toy::rows(), v)));
        work(window);
    } catch (const Error& caught) {
        error = caught.what();
    }
    return error + "; w is " + to_string(v.value());
}
}  // namespace
