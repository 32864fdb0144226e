// An ExactSum adds arrays of float or double without rounding, and rounds the sum once. The bits of the
// result do not depend on the order of the additions, or on how the additions are split over several sums.
//
//     ExactSum<float> sum({3}), elsewhere({3});
//     sum.add(a);
//     elsewhere.add(b);
//     sum.merge(elsewhere);
//     Array<float> all = sum.rounded();  // fl(a + b)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "tally/array/array.hpp"

namespace tally {

namespace detail {
// The sum of each element has the digits from `lowest` to `highest`. Digit k is the coefficient of 2^(32 k)
// times the type's smallest positive number. If has_marks is true, each element also has marks, which are
// three counts: of the summands that are +inf, that are -inf, and that are finite but not -0. The third count
// decides the sign of a sum of zeros. A NaN counts as +inf and as -inf.
struct ExactRange {
    std::int64_t lowest = std::numeric_limits<std::int32_t>::max(), highest = -1;  // no digits
    bool has_marks = false;

    std::size_t digit_count() const {
        return static_cast<std::size_t>(std::max<std::int64_t>(highest - lowest + 1, 0));
    }
    std::size_t words_per_number() const { return digit_count() + has_marks; }
    ExactRange united_with(const ExactRange& to) const {  // the smallest range that contains both
        return {std::min(lowest, to.lowest), std::max(highest, to.highest), has_marks || to.has_marks};
    }
    bool operator==(const ExactRange&) const = default;
};

// An ExactSum stores each sum in fixed point. A digit has 32 bits and is stored in an int64, so
// that a million additions need no carry. The exponents of the summands determine the number of digits.
//
// rounded() returns the sum rounded to nearest, ties to even, as IEEE 754 defines it. A NaN, or infinities of
// both signs, give a NaN that always has the same bits. If all summands are -0, the sum is -0. All other
// zeros are +0 (docs/mathematics.md, 2.7).
template <class S> class ExactSum {
public:
    // The maximum of additions() after add() or merge(). Digits and marks can store twice as many additions.
    static constexpr std::int64_t most_additions = (std::int64_t{1} << 20) - 1;

    explicit ExactSum(const Shape& shape) : shape_(shape) {}
    ExactSum(ExactSum&&) noexcept = default;
    ExactSum& operator=(ExactSum&&) noexcept = default;

    void add(const Array<S>& summand);     // from any device; the sum itself is in the CPU's memory
    void merge(const ExactSum& summands);  // adds all summands of another sum
    Array<S> rounded() const;
    void round_to(S* dst) const;  // writes rounded() to the CPU's memory
    void clear() { *this = ExactSum(shape_); }

    const Shape& shape() const { return shape_; }
    bool empty() const { return additions_ == 0; }
    std::size_t bytes() const { return words_.storage() ? words_.size() * sizeof(std::int64_t) : 0; }

    // ---- for files and sums over processes: sums of the same range are added digit by digit ----
    const ExactRange& range() const { return range_; }
    void widen(const ExactRange& to);  // includes `to`; new digits are 0
    // Propagates carries, so that each digit is less than 2^32. A carried sum counts as one addition.
    void carry();
    // Returns the lowest digits of all elements, then the next higher digits, and so on, and last the marks.
    std::span<std::int64_t> words() { return {words_.raw(), shape_.size() * range_.words_per_number()}; }
    // Returns the number of additions since the last carry(), where a carried sum counts as one addition. The
    // digits of several sums can be added if the sum of their additions() is at most 2 * most_additions.
    std::int64_t additions() const { return additions_; }
    void set_additions(std::int64_t additions) { additions_ = additions; }  // after writing to words()

private:
    static ExactRange range_of(std::span<const S> summand);
    void add_digits(std::span<const S> summand);
    void add_marks(std::span<const S> summand);
    bool carry_in_range();

    Shape shape_;
    ExactRange range_;
    Array<std::int64_t> words_;
    std::int64_t additions_ = 0;
};

extern template class ExactSum<float>;
extern template class ExactSum<double>;
}  // namespace detail

}  // namespace tally
