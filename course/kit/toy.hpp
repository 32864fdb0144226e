// Defines the toy, the small example of the course: six rows of three numbers, and three weights.
#pragma once

#include <optional>

#include "course/kit/pictures.hpp"
#include "course/kit/talk.hpp"

namespace {
inline tally::lesson::LessonParameter equal_micro_batches(const std::vector<int>& among = {1, 2, 3, 6}) {
    return tally::lesson::one_of("micro", "equal micro-batches of the six rows", 3, among);
}
inline tally::lesson::LessonParameter learning_rate(double usual, double least, double most) {
    return tally::lesson::real_number("rate", "learning rate", usual, least, most);
}

struct MicroBatch {
    Tensor micro;
    std::string rows;  // "0-1" for the first two rows
};
inline std::string many_rows(const std::string& rows) {
    return (rows.find('-') == std::string::npos ? "row " : "rows ") + rows;
}

namespace toy {
// The arguments replace the last row by shorter binary fractions.
template <class S = real>
tally::Var<tally::Array<S>> rows(double a = -0.2466, double b = -0.5010, double c = -1.4250) {
    return tally::Array<S>({6, 3},
                           {0.375, -1.25, 0.5,    //
                            -1.125, 0.5, -0.875,  //
                            0.625, 1.0, -1.5,     //
                            -0.25, -0.375, 0.25,  //
                            -1.5, 0.75, -0.625,   //
                            S(a), S(b), S(c)},
                           tally::lesson::options().device);
}
template <class S = real> tally::Var<tally::Array<S>> weights() {
    return tally::parameter(tally::Array<S>({3}, {0.5, -1.25, 0.75}, tally::lesson::options().device));
}
inline Tensor ones() { return tally::Array<real>::full({3}, real(1), tally::lesson::options().device); }

// The exact mean of each column: the gradient of the mean of x w.
inline const std::vector<double> mean_of_rows{-2.1216 / 6, 0.124 / 6, -3.675 / 6};
// Returns an error bound for each component of this gradient after `n` roundings.
inline std::vector<double> bound(int n) {
    std::vector<double> magnitudes(3);
    const std::vector<double> x = tally::lesson::values(rows());
    for (std::size_t i = 0; i < x.size(); ++i) magnitudes[i % 3] += roundings(n) * std::abs(x[i]) / 6;
    return magnitudes;
}

// Splits the rows of x into micro-batches. `size` is the size of every micro-batch, or a list of sizes.
template <class Size> std::vector<MicroBatch> micro_batches(const Tensor& x, const Size& size) {
    std::vector<MicroBatch> all;
    std::int64_t first = 0;
    for (const Tensor& micro : tally::split(x, size)) {
        const std::int64_t last = first + micro.shape()[0] - 1;
        all.push_back({micro, std::to_string(first) + (last > first ? "-" + std::to_string(last) : "")});
        first = last + 1;
    }
    return all;
}

// Returns the data of a picture: how much each row counts in its micro-batch, and in the full batch.
inline tally::lesson::Shares shares(const std::vector<MicroBatch>& parts, const tally::Array<real>& full,
                                    const std::optional<tally::Array<real>>& sum = {}) {
    using namespace tally;
    const Tensor x = rows(), w = weights();
    const auto gradient_of = [&](const Tensor& some) {
        return lesson::values(grad(mean(matmul(some, w)), {w}).front());
    };
    lesson::Shares all{{}, lesson::values(full), {}, sum ? lesson::values(*sum) : lesson::Vector()};
    for (const auto& [row, number] : micro_batches(x, 1)) all.rows.push_back(gradient_of(row));
    for (const auto& [micro, rows] : parts)
        all.parts.push_back(
            {many_rows(rows), static_cast<std::size_t>(micro.shape()[0]), gradient_of(micro)});
    return all;
}
template <class Size> tally::lesson::Shares shares(const Size& size, const tally::Array<real>& full,
                                                   const std::optional<tally::Array<real>>& sum = {}) {
    return shares(micro_batches(rows(), size), full, sum);
}
}  // namespace toy
}  // namespace

using namespace tally;  // a lesson needs no such lines
using namespace tally::lesson;
