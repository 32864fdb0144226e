// ExactSum: adds arrays of float or double without rounding and rounds once, so that no order and no split of the
// additions changes a bit.
//
//     ExactSum<float> sum({3}), elsewhere({3});
//     sum.add(a);
//     elsewhere.add(b);
//     sum.merge(elsewhere);
//     Array<float> all = sum.rounded();  // fl(a + b), whoever added what, and when
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "tally/array/array.hpp"

namespace tally {

namespace detail {
// Which digits each number of an ExactSum has. Digit k counts 2^(32 k) of the type's smallest positive number.
// Of several: their lowest, their highest, and marks where one has them.
struct ExactRange {
    std::int64_t lowest = std::numeric_limits<std::int32_t>::max(), highest = -1;  // none
    bool marks = false;  // whether it is counted how often +inf, -inf (NaN is both) and anything but -0 came

    std::size_t digits() const {
        return static_cast<std::size_t>(std::max<std::int64_t>(highest - lowest + 1, 0));
    }
    std::size_t width() const { return digits() + marks; }
    ExactRange with(const ExactRange& other) const {
        return {std::min(lowest, other.lowest), std::max(highest, other.highest), marks || other.marks};
    }
    bool operator==(const ExactRange&) const = default;
};
}  // namespace detail

// Each number's sum in fixed point: digits of 32 bits, each in an int64 of its own, which takes a million additions
// before anything must be carried. There are as many digits as the exponents that have come need. What
// rounded() gives is the sum rounded to nearest, ties to even, as IEEE 754 has it: denormal and infinite
// where the sum is; NaN, always the same one, of a NaN or of both infinities; -0 of nothing but -0, and +0
// of all other zeros and of no summands. (mathematics.md, 2.7)
template <class S> class ExactSum {
public:
    static constexpr std::int64_t most_additions = (std::int64_t{1} << 20) - 1;  // without a carry

    explicit ExactSum(const Shape& shape) : shape_(shape) {}
    ExactSum(ExactSum&&) noexcept = default;
    ExactSum& operator=(ExactSum&&) noexcept = default;

    void add(const Array<S>& summand);     // from any device; the sum itself lies in the host's memory
    void merge(const ExactSum& summands);  // adds all that another one has added
    Array<S> rounded() const;
    void round_to(S* place) const;  // the same, into memory of the host
    void clear() { *this = ExactSum(shape_); }

    const Shape& shape() const { return shape_; }
    bool empty() const { return additions_ == 0; }
    std::size_t bytes() const { return digits_.storage() ? digits_.size() * sizeof(std::int64_t) : 0; }

    // ---- for sums across machines, and files: int64 that may be added one by one if all have one range ----
    const detail::ExactRange& range() const { return range_; }
    void widen(const detail::ExactRange& to);  // so that it has these digits, too
    // Each digit becomes less than 2^32, and counts as that of one addition.
    void carry();
    // The lowest digit of each number, then the next one of each, and behind the highest their marks.
    std::span<std::int64_t> digits() { return {digits_.raw(), shape_.size() * range_.width()}; }
    // As how many each digit counts. Digits of several must not be added up where theirs are more than
    // 2 * most_additions together: carry() first.
    std::int64_t additions() const { return additions_; }
    void set_additions(std::int64_t additions) {
        additions_ = additions;
    }  // of digits() written from outside

private:
    static detail::ExactRange range_of(std::span<const S> summand);
    void add_digits(std::span<const S> summand);
    void add_marks(std::span<const S> summand);
    bool carry_within();

    Shape shape_;
    detail::ExactRange range_;
    Array<std::int64_t> digits_;  // digit by digit
    std::int64_t additions_ = 0;
};

extern template class ExactSum<float>;
extern template class ExactSum<double>;

}  // namespace tally
