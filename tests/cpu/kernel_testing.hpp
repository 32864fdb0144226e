// Functions for tests of kernels, which make buffers and random operands, and compare results.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "tally/cpu/reference.hpp"
#include "tally/kernels/kernels.hpp"
#include "under_test.hpp"

namespace tally::test {

inline const std::vector<std::size_t> awkward_sizes{0,  1,  2,  3,  7,  8,   15,  16,  17,   31,
                                                    32, 33, 63, 64, 65, 255, 256, 257, 1023, 1025};

// Sets the number of threads while the object exists.
struct Threads {
    explicit Threads(int count) { set_threads(count); }
    ~Threads() { set_threads(1); }
    Threads(const Threads&) = delete;
};

// The checksum of all buffers that the current test case has freed. tests/cpu/same_bits.cpp compares it.
inline std::uint64_t bits_of_test = 0;

template <class S> void add_bits(S x) {
    if (x != x) x = S(12345);  // the bits of a NaN are not defined
    if constexpr (sizeof(S) == 8)
        bits_of_test ^= std::bit_cast<std::uint64_t>(x);
    else
        bits_of_test ^= std::bit_cast<std::uint32_t>(x);
    bits_of_test *= 0x100000001b3;
    bits_of_test ^= bits_of_test >> 32;  // otherwise two changes of a sign would cancel
}

// A buffer for n elements, which are aligned to cache lines unless `offset` is set. A test finds accesses
// outside the buffer, because the memory before and after the buffer contains NaN.
template <class S> class Buffer {
public:
    explicit Buffer(std::size_t n, std::size_t offset = 0) : n_(n), start_(line_elements + offset) {
        bytes_ = ((start_ + n) * sizeof(S) + 63) / 64 * 64 + 64;
        memory_ = static_cast<S*>(grab(bytes_));
        std::fill_n(memory_, bytes_ / sizeof(S), poison());
    }
    Buffer(const Buffer& other) : Buffer(other.n_, other.start_ - line_elements) {
        std::memcpy(memory_, other.memory_, bytes_);
    }
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        if constexpr (std::is_arithmetic_v<S>)
            for (const S x : *this) add_bits(x);
        give(memory_);
    }

    S* data() const { return memory_ + start_; }
    std::size_t size() const { return n_; }
    S& operator[](std::size_t i) const { return data()[i]; }
    S* begin() const { return data(); }
    S* end() const { return data() + n_; }

    bool guards_hold() const {
        const S untouched = poison();
        for (std::size_t i = 0; i < bytes_ / sizeof(S); ++i)
            if ((i < start_ || i >= start_ + n_) && std::memcmp(memory_ + i, &untouched, sizeof(S)) != 0)
                return false;
        return true;
    }

private:
    static constexpr std::size_t line_elements = 64 / sizeof(S);
    static S poison() {
        if constexpr (std::numeric_limits<S>::has_quiet_NaN)
            return std::numeric_limits<S>::quiet_NaN();
        else
            return S(-123456789);
    }

    std::size_t n_, start_, bytes_ = 0;
    S* memory_ = nullptr;
};

// ---- random input: every test prints its seed, and TALLY_TEST_SEED is added to the seed ----

class Dice {
public:
    explicit Dice(unsigned seed) : seed_(seed + extra()), engine_(seed_) {}

    std::string text() const { return "seed " + std::to_string(seed_); }
    std::size_t upto(std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n)(engine_);
    }  // upto() includes its bounds
    bool coin() { return upto(1) == 1; }
    template <class T> T pick(const std::vector<T>& from) { return from[upto(from.size() - 1)]; }
    Write how() { return coin() ? Write::add : Write::set; }

    template <class S> Buffer<S> numbers(std::size_t n, double low = -2, double high = 2) {
        Buffer<S> made(n, coin() ? 0 : upto(9));
        for (S& x : made) x = static_cast<S>(std::uniform_real_distribution<double>(low, high)(engine_));
        return made;
    }
    Buffer<std::int32_t> integers(std::size_t n, std::size_t below) {
        Buffer<std::int32_t> made(n, upto(3));
        for (auto& x : made) x = static_cast<std::int32_t>(upto(below - 1));
        return made;
    }
    // Returns a buffer for results, with random numbers for Write::add and with NaN for Write::set.
    template <class S> Buffer<S> destination(std::size_t n, Write how) {
        return how == Write::add ? numbers<S>(n) : Buffer<S>(n, coin() ? 0 : upto(9));
    }

    // Returns a StridedIndex of 4 x 3 x n elements. Operand `repeated` has 3 or 4 x 3 elements, so its gradient sums n terms, by one
    // thread, or by a warp in order or in its lanes.
    template <int Operands> static StridedIndex<Operands> rows_of_terms(unsigned seed, std::size_t repeated) {
        const auto n = std::array<std::ptrdiff_t, 4>{4, 55, 100, 300}[seed % 4];
        StridedIndex<Operands> made;
        made.rank = 3;
        made.extent = {4, 3, static_cast<std::size_t>(n)};
        made.size = 12 * made.extent[2];
        for (std::size_t o = 0; o < Operands; ++o) {
            made.stride[o] = {3 * n, n, 1};
            made.operand_size[o] = made.size;
        }
        const bool all_rows = seed / 4 % 2 == 1;
        made.stride[repeated] = {all_rows ? 0 : 3, 1, 0};
        made.operand_size[repeated] = all_rows ? 3 : 12;
        return made;
    }

    // Returns random extents whose product is at most `most`. Sometimes one extent is 0.
    std::vector<std::size_t> extents(std::size_t rank, std::size_t most = 3000) {
        std::vector<std::size_t> made(rank);
        std::size_t size = 1;
        for (auto& e : made) {
            e = pick<std::size_t>({1, 2, 3, 4, 5, 7, 16, 17, 33, 65, 300});
            if (size * e > most) e = 1 + upto(1);
            if (upto(60) == 0) e = 0;
            size *= std::max<std::size_t>(e, 1);
        }
        std::shuffle(made.begin(), made.end(), engine_);
        return made;
    }

    // Returns a StridedIndex for arrays of shape `extents`. Operands are broadcast along random axes, and the
    // order of axes in memory is random.
    template <int Operands>
    StridedIndex<Operands> walk(const std::vector<std::size_t>& extents, bool permuted, bool repeats = true) {
        StridedIndex<Operands> made;
        made.rank = static_cast<int>(extents.size());
        made.size = 1;
        for (std::size_t axis = 0; axis < extents.size(); ++axis)
            made.size *= made.extent[axis] = extents[axis];
        for (std::size_t o = 0; o < Operands; ++o) {
            std::vector<std::size_t> order(extents.size());
            std::iota(order.begin(), order.end(), std::size_t(0));
            if (permuted && coin()) std::shuffle(order.begin(), order.end(), engine_);
            std::ptrdiff_t step = 1;
            const std::size_t chance = upto(2);
            for (std::size_t i = order.size(); i-- > 0;) {
                const bool repeated = repeats && upto(2) < chance;
                made.stride[o][order[i]] = repeated ? 0 : step;
                if (!repeated) step *= static_cast<std::ptrdiff_t>(extents[order[i]]);
            }
            made.operand_size[o] = static_cast<std::size_t>(step);
        }
        return made;
    }

private:
    static unsigned extra() {
        const char* text = std::getenv("TALLY_TEST_SEED");
        return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 0;
    }

    unsigned seed_;
    std::mt19937 engine_;
};

// ---- comparing ----

template <class S> bool same_bits(S a, S b) { return std::memcmp(&a, &b, sizeof(S)) == 0; }

// Describes the first difference that is larger than `units` rounding errors, or returns "". The rounding
// error is relative to the maximum of |want| and `scale`.
template <class S>
std::string difference(const Buffer<S>& got, const Buffer<S>& want, double units, double scale = 1) {
    std::ostringstream text;
    text.precision(17);
    for (std::size_t i = 0; i < want.size(); ++i) {
        const double g = static_cast<double>(got[i]), w = static_cast<double>(want[i]);
        if (std::isnan(g) && std::isnan(w)) continue;
        if (g == w) continue;
        const double allowed =
            units * static_cast<double>(std::numeric_limits<S>::epsilon()) * std::max(std::abs(w), scale);
        if (std::isnan(g) || std::isnan(w) || std::isinf(w) || !(std::abs(g - w) <= allowed)) {
            text << "element " << i << " of " << want.size() << " is " << g << ", not " << w;
            return text.str();
        }
    }
    if (!got.guards_hold()) return "written beyond the end";
    return "";
}

template <class S> std::string bit_difference(const Buffer<S>& got, const Buffer<S>& want) {
    std::ostringstream text;
    text.precision(17);
    for (std::size_t i = 0; i < want.size(); ++i)
        if (!same_bits(got[i], want[i]) && !(std::isnan(got[i]) && std::isnan(want[i]))) {
            text << "element " << i << " of " << want.size() << " is " << got[i] << ", not " << want[i];
            return text.str();
        }
    if (!got.guards_hold()) return "written beyond the end";
    return "";
}

template <class S> const Kernels<S>& plain() {
    static const Kernels<S> table = reference::table<S>();
    return table;
}

template <class S> Into<S[]> into(const Buffer<S>& buffer, Write how) { return {buffer.data(), how}; }

inline const char* const write_names[] = {"set", "add"};

// Calls visit(index, functor) for each functor in a list. `index` is an index in the kernel table.
template <class List, class Visit> void each_functor(Visit visit) {
    [&]<class... F>(std::tuple<F...>*) {
        const auto make = []<class G>(G*) {
            if constexpr (requires { G{0.0, 0.0}; })
                return G{-0.5, 0.75};
            else if constexpr (requires { G{0.0}; })
                return G{2.5};
            else
                return G{};
        };
        (visit(slot<F, List>, make(static_cast<F*>(nullptr))), ...);
    }(static_cast<List*>(nullptr));
}

}  // namespace tally::test
