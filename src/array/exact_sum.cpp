// Splits numbers into fixed-point digits, adds the digits, carries, and rounds once.
#include "tally/array/exact_sum.hpp"

#include <array>
#include <bit>
#include <string>
#include <type_traits>
#include <vector>

namespace tally {

namespace {

constexpr int digit_bits = 32;
constexpr std::uint64_t digit_mask = 0xffffffff;
constexpr std::int64_t digit_base = std::int64_t{1} << digit_bits;

// Marks are three counts in one 64-bit word. Each count has 21 bits, enough for 2 * most_additions.
constexpr std::int64_t positive_infinity = 1, negative_infinity = std::int64_t{1} << 21,
                       not_negative_zero = std::int64_t{1} << 42, count_mask = (std::int64_t{1} << 21) - 1;

// IEEE 754: a number is significand() * 2^exponent * the smallest positive number.
template <class S> struct Format {
    using Word = std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint64_t>;
    static constexpr int fraction_bits = std::numeric_limits<S>::digits - 1;  // without the leading 1
    static constexpr Word sign = Word{1} << (sizeof(S) * 8 - 1), leading = Word{1} << fraction_bits,
                          infinity = std::bit_cast<Word>(std::numeric_limits<S>::infinity());

    static Word bits(S x) { return std::bit_cast<Word>(x); }
    static Word zero_unless_finite(Word magnitude) { return magnitude < infinity ? magnitude : Word{0}; }
    static int exponent(Word magnitude) {
        const auto biased = static_cast<int>(magnitude >> fraction_bits);
        return biased - (biased > 0);
    }
    static std::uint64_t significand(Word magnitude) {
        return (magnitude & (leading - 1)) | (magnitude >= leading ? leading : 0);
    }
};

// A SignedDigits stores a sum as its sign and the digits of its absolute value.
class SignedDigits {
public:
    explicit SignedDigits(const detail::ExactRange& range)
        : lowest_(range.lowest), digit_count_(range.digit_count()), digits_(range.digit_count() + 2) {}

    void read(const std::int64_t* digits, std::size_t step) {
        std::int64_t carried = 0;
        for (std::size_t k = 0; k < digit_count_; ++k) {
            carried += digits[k * step];
            digits_[k] = static_cast<std::uint64_t>(carried) & digit_mask;
            carried >>= digit_bits;
        }
        digits_[digit_count_] = static_cast<std::uint64_t>(carried) & digit_mask;
        digits_[digit_count_ + 1] = static_cast<std::uint64_t>(carried >> digit_bits) & digit_mask;
        negative_ = carried < 0;
        if (negative_) negate();
    }
    bool negative() const { return negative_; }

    // Returns the number of bits of the sum in units of the smallest positive number, or 0 if the sum is 0.
    int bit_length() const {
        std::size_t k = digits_.size();
        while (k > 0 && digits_[k - 1] == 0) --k;
        if (k == 0) return 0;
        return (static_cast<int>(k - 1) + static_cast<int>(lowest_)) * digit_bits +
               static_cast<int>(std::bit_width(digits_[k - 1]));
    }
    // Returns the 64 bits from `position` upwards.
    std::uint64_t bits_from(int position) const {
        const int k = position / digit_bits, shift = position % digit_bits;
        const std::uint64_t two = digit(k) | digit(k + 1) << digit_bits;
        return two >> shift | (digit(k + 2) << 1) << (63 - shift);
    }
    bool any_below(int position) const {
        const int k = position / digit_bits;
        for (int below = static_cast<int>(lowest_); below < k; ++below)
            if (digit(below)) return true;
        return (digit(k) & ((std::uint64_t{1} << position % digit_bits) - 1)) != 0;
    }

private:
    std::uint64_t digit(int k) const {
        const auto at = static_cast<std::size_t>(k - static_cast<int>(lowest_));
        return at < digits_.size() ? digits_[at] : 0;  // if k < lowest_, `at` wraps to a huge number
    }
    void negate() {
        std::uint64_t carried = 1;
        for (std::uint64_t& digit : digits_) {
            carried += digit ^ digit_mask;
            digit = carried & digit_mask;
            carried >>= digit_bits;
        }
    }

    std::int64_t lowest_;
    std::size_t digit_count_;
    std::vector<std::uint64_t> digits_;  // with two more digits for carries out of the highest
    bool negative_ = false;
};

// Rounds to nearest, ties to even. `exponent` is one less than the exponent field of a normal number: the
// leading 1 of the significand is added to this field. A subnormal number has no leading 1, so its field stays
// 0. Rounding up can make the result infinite.
template <class S> S rounded(const SignedDigits& sum, int bit_length) {
    using F = Format<S>;
    const int exponent = std::max(bit_length - (F::fraction_bits + 1), 0);
    std::uint64_t significand = sum.bits_from(std::max(exponent - 1, 0));
    if (exponent > 0) {
        const bool half = significand & 1;
        significand >>= 1;
        if (half && ((significand & 1) || sum.any_below(exponent - 1))) ++significand;
    }
    const std::uint64_t word = (static_cast<std::uint64_t>(exponent) << F::fraction_bits) + significand;
    const auto magnitude =
        static_cast<typename F::Word>(std::min(word, static_cast<std::uint64_t>(F::infinity)));
    return std::bit_cast<S>(
        static_cast<typename F::Word>(magnitude | (sum.negative() ? F::sign : typename F::Word{0})));
}

// If the sum is zero, or if a summand is infinite or NaN, sets `to` to the sum and returns true.
template <class S> bool set_special_value(std::int64_t marks, bool zero, S& to) {
    const bool plus = (marks & count_mask) != 0, minus = ((marks / negative_infinity) & count_mask) != 0;
    if (plus && minus)
        to = std::numeric_limits<S>::quiet_NaN();
    else if (plus || minus)
        to = plus ? std::numeric_limits<S>::infinity() : -std::numeric_limits<S>::infinity();
    else if (zero)
        to = marks / not_negative_zero ? S(0) : S(-0.0);
    else
        return false;
    return true;
}

}  // namespace

template <class S> detail::ExactRange detail::ExactSum<S>::range_of(std::span<const S> summand) {
    using F = Format<S>;
    using Word = typename F::Word;
    Word smallest_nonzero_minus_1 = ~Word{0}, largest_finite = 0, largest = 0;
    Word difference_from_negative_zero = 1;  // 0 means that a summand is -0
    for (const S x : summand) {
        const Word bits = F::bits(x), magnitude = bits & ~F::sign;
        smallest_nonzero_minus_1 =
            std::min<Word>(smallest_nonzero_minus_1, magnitude - 1);  // 0 wraps around to the largest word
        largest_finite = std::max(largest_finite, F::zero_unless_finite(magnitude));
        largest = std::max(largest, magnitude);
        difference_from_negative_zero = std::min<Word>(difference_from_negative_zero, bits ^ F::sign);
    }
    detail::ExactRange range{.has_marks = largest >= F::infinity || difference_from_negative_zero == 0};
    if (largest_finite == 0) return range;
    range.lowest = F::exponent(smallest_nonzero_minus_1 + 1) / digit_bits;
    range.highest = (F::exponent(largest_finite) + F::fraction_bits) / digit_bits;
    return range;
}

template <class S> void detail::ExactSum<S>::widen(const detail::ExactRange& to) {
    const detail::ExactRange wider = range_.united_with(to);
    if (wider == range_) return;
    const std::size_t count = shape_.size();
    auto words = Array<std::int64_t>::empty({static_cast<std::int64_t>(count * wider.words_per_number())});
    memory::detail::reclassify(words.storage(), MemoryClass::gradient);
    std::fill_n(words.raw(), words.size(), 0);
    if (range_.digit_count())
        std::copy_n(words_.data(), count * range_.digit_count(),
                    words.raw() + count * static_cast<std::size_t>(range_.lowest - wider.lowest));
    std::int64_t* const marks = words.raw() + count * wider.digit_count();
    if (range_.has_marks)
        std::copy_n(words_.data() + count * range_.digit_count(), count, marks);
    else if (wider.has_marks && additions_ > 0)
        std::fill_n(marks, count, not_negative_zero);
    words_ = std::move(words);
    range_ = wider;
}

template <class S> void detail::ExactSum<S>::add(const Array<S>& summand) {
    if (!detail::has_memory(summand)) detail::fail_without_memory("exact_sum");
    if (summand.shape() != shape_)
        throw Error("[exact_sum] " + to_string(summand.shape()) + " cannot be added to a sum of " +
                    to_string(shape_));
    const Array<S> here = summand.to(Device::cpu);
    widen(range_of(here.span()));
    if (additions_ >= most_additions) carry();
    if (range_.digit_count()) add_digits(here.span());
    if (range_.has_marks) add_marks(here.span());
    ++additions_;
}

// Adds the digits of 256 numbers at a time. The loops have no branches, so that compilers vectorise them.
template <class S> void detail::ExactSum<S>::add_digits(std::span<const S> summand) {
    using F = Format<S>;
    constexpr std::size_t block_size = 256;
    std::array<std::uint64_t, block_size> significands;
    std::array<std::int64_t, block_size> exponents, signs;
    for (std::size_t from = 0; from < summand.size(); from += block_size) {
        const std::size_t count = std::min(block_size, summand.size() - from);
        std::int64_t highest_bit = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const auto bits = F::bits(summand[from + i]), magnitude = F::zero_unless_finite(bits & ~F::sign);
            significands[i] = F::significand(magnitude);
            exponents[i] = F::exponent(magnitude);
            signs[i] = bits & F::sign ? -1 : 0;
            highest_bit = std::max(highest_bit, exponents[i] + F::fraction_bits);
        }
        // Zeros give highest_bit = fraction_bits, but the range of a loaded sum may end below this bit.
        const std::int64_t highest_digit = std::min(highest_bit / digit_bits, range_.highest);
        for (std::int64_t k = range_.lowest; k <= highest_digit; ++k) {
            std::int64_t* const digits =
                words_.raw() + shape_.size() * static_cast<std::size_t>(k - range_.lowest) + from;
            for (std::size_t i = 0; i < count; ++i) {  // a digit that the number does not reach gets 0
                const std::int64_t up = exponents[i] - k * digit_bits,
                                   left = std::min<std::int64_t>(std::max<std::int64_t>(up, 0), 63),
                                   right = std::min<std::int64_t>(std::max<std::int64_t>(-up, 0), 63);
                const auto part = static_cast<std::int64_t>(significands[i] << left >> right & digit_mask);
                digits[i] += (part ^ signs[i]) - signs[i];
            }
        }
    }
}

template <class S> void detail::ExactSum<S>::add_marks(std::span<const S> summand) {
    using F = Format<S>;
    std::int64_t* const marks = words_.raw() + shape_.size() * range_.digit_count();
    for (std::size_t i = 0; i < summand.size(); ++i) {
        const auto bits = F::bits(summand[i]);
        const bool nan = (bits & ~F::sign) > F::infinity;
        marks[i] += bits == F::sign                   ? 0
                    : nan                             ? positive_infinity + negative_infinity
                    : bits == F::infinity             ? positive_infinity
                    : bits == (F::infinity | F::sign) ? negative_infinity
                                                      : not_negative_zero;
    }
}

template <class S> void detail::ExactSum<S>::merge(const ExactSum& summands) {
    if (summands.shape_ != shape_)
        throw Error("[exact_sum] a sum of " + to_string(summands.shape_) + " cannot be merged into one of " +
                    to_string(shape_));
    if (&summands == this) throw Error("[exact_sum] a sum cannot be merged into itself");
    if (summands.empty()) return;
    if (additions_ + summands.additions_ > 2 * most_additions) carry();  // prevents an overflow of the marks
    widen(summands.range_);
    const std::size_t count = shape_.size(), digit_words = count * summands.range_.digit_count();
    if (digit_words) {
        std::int64_t* const dst =
            words_.raw() + count * static_cast<std::size_t>(summands.range_.lowest - range_.lowest);
        for (std::size_t i = 0; i < digit_words; ++i) dst[i] += summands.words_.data()[i];
    }
    if (range_.has_marks) {
        std::int64_t* const marks = words_.raw() + count * range_.digit_count();
        for (std::size_t i = 0; i < count; ++i)
            marks[i] +=
                summands.range_.has_marks ? summands.words_.data()[digit_words + i] : not_negative_zero;
    }
    additions_ += summands.additions_;
    if (additions_ > most_additions) carry();
}

template <class S> void detail::ExactSum<S>::carry() {
    if (additions_ <= 1) return;
    while (carry_in_range()) widen({range_.lowest, range_.highest + 1, range_.has_marks});
    additions_ = 1;
}

// Carries within the range. Returns true if the highest digit of an element is too large for the range.
template <class S> bool detail::ExactSum<S>::carry_in_range() {
    const std::size_t count = shape_.size(), digit_count = range_.digit_count();
    std::int64_t* at = words_.raw();
    for (std::size_t k = 0; k + 1 < digit_count; ++k, at += count)
        for (std::size_t i = 0; i < count; ++i) {
            at[count + i] += at[i] >> digit_bits;
            at[i] &= static_cast<std::int64_t>(digit_mask);
        }
    bool beyond = false;
    for (std::size_t i = 0; digit_count && i < count; ++i)
        beyond |= at[i] >= digit_base || at[i] < -digit_base;
    std::int64_t* const marks = words_.raw() + count * digit_count;
    for (std::size_t i = 0; range_.has_marks && i < count; ++i) {
        std::int64_t once = 0;
        for (const std::int64_t mark : {positive_infinity, negative_infinity, not_negative_zero})
            if ((marks[i] / mark) & count_mask) once += mark;
        marks[i] = once;
    }
    return beyond;
}

template <class S> void detail::ExactSum<S>::round_to(S* dst) const {
    const std::size_t count = shape_.size(), digit_count = range_.digit_count();
    const std::int64_t* const all_marks = words_.data() + count * digit_count;
    SignedDigits sum(range_);
    for (std::size_t i = 0; i < count; ++i) {
        if (digit_count) sum.read(words_.data() + i, count);
        const int bit_length = digit_count ? sum.bit_length() : 0;
        const std::int64_t marks = range_.has_marks && additions_ > 0 ? all_marks[i] : not_negative_zero;
        if (!set_special_value(marks, bit_length == 0, dst[i])) dst[i] = tally::rounded<S>(sum, bit_length);
    }
}

template <class S> Array<S> detail::ExactSum<S>::rounded() const {
    Array<S> sum = Array<S>::empty(shape_);
    round_to(sum.raw());
    return sum;
}

template class detail::ExactSum<float>;
template class detail::ExactSum<double>;

}  // namespace tally
