// A `Toy` is the small example of the course, with three weights and six rows of three numbers.
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

// Lessons derive from `Toy`. Each picture needs a new `Toy`, because drawing the picture calls backward().
struct Toy {
    // The arguments replace the last row, because lesson 7 needs short binary fractions in this row.
    template <class S = real>
    static tally::Var<tally::Array<S>> six_rows(double a = -0.2466, double b = -0.5010, double c = -1.4250) {
        return tally::Array<S>({6, 3},
                               {0.375, -1.25, 0.5,    //
                                -1.125, 0.5, -0.875,  //
                                0.625, 1.0, -1.5,     //
                                -0.25, -0.375, 0.25,  //
                                -1.5, 0.75, -0.625,   //
                                S(a), S(b), S(c)},
                               tally::lesson::options().device);
    }
    template <class S = real> static tally::Var<tally::Array<S>> weights() {
        return tally::parameter(tally::Array<S>({3}, {0.5, -1.25, 0.75}, tally::lesson::options().device));
    }

    Tensor x = six_rows(), w = weights();

    // Splits the six rows into micro-batches. `size` is the size of every micro-batch, or a list of sizes.
    template <class Size> std::vector<MicroBatch> micro_batches(const Size& size) const {
        std::vector<MicroBatch> all;
        std::int64_t from = 0;
        for (const Tensor& micro : tally::split(x, size)) {
            const std::int64_t last = from + micro.shape()[0] - 1;
            all.push_back({micro, std::to_string(from) + (last > from ? "-" + std::to_string(last) : "")});
            from = last + 1;
        }
        return all;
    }

    tally::lesson::Shares shares(const std::vector<MicroBatch>& parts, const tally::Array<real>& full,
                                 const std::optional<tally::Array<real>>& sum) const {
        using namespace tally;
        const auto gradient_of = [&](const Tensor& rows) {
            return lesson::values(grad(mean(matmul(rows, w)), {w}).front());
        };
        lesson::Shares all{{}, lesson::values(full), {}, sum ? lesson::values(*sum) : lesson::Vector()};
        for (const auto& [row, number] : micro_batches(1)) all.rows.push_back(gradient_of(row));
        for (const auto& [micro, rows] : parts)
            all.parts.push_back(
                {many_rows(rows), static_cast<std::size_t>(micro.shape()[0]), gradient_of(micro)});
        return all;
    }

    // Returns the exact sum of the rows [from, to) in one column, as an integer in units of 1/10000.
    std::int64_t units(std::size_t from, std::size_t to, std::size_t column) const {
        const std::vector<double> numbers = tally::lesson::values(x);
        std::int64_t sum = 0;
        for (std::size_t row = from; row < to; ++row) sum += std::llround(numbers[3 * row + column] * 10000);
        return sum;
    }
    // Returns the mean of each column over the rows [from, to), computed from units().
    std::vector<double> exact_means(std::size_t from = 0, std::size_t to = 6) const {
        std::vector<double> means;
        for (std::size_t j = 0; j < 3; ++j)
            means.push_back(double(units(from, to, j)) / (10000.0 * double(to - from)));
        return means;
    }
    std::vector<double> column_sums(double factor) const {
        std::vector<double> sums;
        for (std::size_t j = 0; j < 3; ++j) sums.push_back(double(units(0, 6, j)) / 10000 * factor);
        return sums;
    }
    static std::string as_printed(const std::vector<double>& numbers) {
        return "[" + tally::lesson::row_text(numbers, 4) + "]";
    }

    // Returns an error bound for the gradient of the mean. The bound is `factor` times a column's
    // mean magnitude.
    std::vector<double> mean_columns(double factor) const {
        std::vector<double> means(3);
        const std::vector<double> numbers = tally::lesson::values(x);
        for (std::size_t i = 0; i < numbers.size(); ++i) means[i % 3] += factor * std::abs(numbers[i]) / 6;
        return means;
    }
    double largest_column() const {
        std::vector<double> sums(3);
        const std::vector<double> numbers = tally::lesson::values(x);
        for (std::size_t i = 0; i < numbers.size(); ++i) sums[i % 3] += std::abs(numbers[i]);
        return *std::max_element(sums.begin(), sums.end());
    }
};

// The same for lessons that begin with LESSON().
namespace toy {
using tally::lesson::Shares;

inline Tensor rows() { return Toy::six_rows(); }
inline Tensor weights() { return Toy::weights(); }
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
template <class Size> Shares shares(const Size& size, const tally::Array<real>& full,
                                    const std::optional<tally::Array<real>>& sum = {}) {
    const Toy toy;
    return toy.shares(toy.micro_batches(size), full, sum);
}
}  // namespace toy
}  // namespace

using namespace tally;  // a lesson needs no such lines
using namespace tally::lesson;
