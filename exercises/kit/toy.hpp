// The six rows and the weight of the whole course, and micro-batches of them.
#pragma once

#include "answer_test.hpp"

namespace exercise {

inline tally::Tensor toy_rows() {
    return constant(tally::Array<float>(
        {6, 3}, {0.375f, -1.25f, 0.5f, -1.125f, 0.5f, -0.875f, 0.625f, 1.0f, -1.5f, -0.25f, -0.375f, 0.25f,
                 -1.5f, 0.75f, -0.625f, -0.2466f, -0.501f, -1.425f}));
}
inline tally::Tensor toy_weight() { return tally::parameter({0.5f, -1.25f, 0.75f}); }

// Rows of random numbers, or a weight.
inline tally::Tensor random_rows(AnswerTest& look, int rows, int columns) {
    std::vector<float> values;
    for (const double value : look.uniforms(static_cast<std::size_t>(rows * columns)))
        values.push_back(static_cast<float>(value));
    return constant(tally::Array<float>({rows, columns}, values));
}
inline tally::Tensor random_weight(AnswerTest& look, int columns) {
    return tally::parameter(tally::reshape(random_rows(look, 1, columns), {columns}).value());
}

// Returns the gradient of the mean over all rows, computed at once.
inline Numbers full_gradient(const tally::Tensor& x, const tally::Tensor& w) {
    tally::Tensor same = tally::parameter(w.value());
    tally::mean(tally::matmul(x, same)).backward();
    return gradient_of(same);
}

inline std::string sizes_in_words(const std::vector<int>& sizes) {  // returns "4+2"
    std::string text;
    for (const int size : sizes) text += (text.empty() ? "" : "+") + std::to_string(size);
    return text;
}

inline std::vector<tally::Tensor> cut(const tally::Tensor& x, const std::vector<int>& sizes) {
    std::vector<tally::Tensor> micros;
    int from = 0;
    for (const int size : sizes) {
        micros.push_back(tally::slice(x, 0, from, from + size));
        from += size;
    }
    return micros;
}

}  // namespace exercise
