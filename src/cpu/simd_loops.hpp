// SIMD loops apply a function to elements of arrays, and store or sum the results. The last elements are
// padded to a full SIMD batch, so that the same instructions compute every result. The position of an element
// therefore does not change its result.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "tally/cpu/batch.hpp"
#include "tally/kernels/into.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::cpu {

// ---- sources of a loop ----

template <class S> struct Contiguous {  // contiguous elements
    const S* p;
    Batch<S> whole(std::size_t i) const { return Batch<S>::load_unaligned(p + i); }
    Batch<S> part(std::size_t i, std::size_t n) const { return load_part(p + i, n); }
    Contiguous from(std::size_t i) const { return {p + i}; }
};

template <class S> struct Broadcast {  // one number for all elements
    Batch<S> v;
    explicit Broadcast(S x) : v(x) {}
    Batch<S> whole(std::size_t) const { return v; }
    Batch<S> part(std::size_t, std::size_t) const { return v; }
    Broadcast from(std::size_t) const { return *this; }
};

template <class S> struct Strided {  // elements with any other step
    const S* p;
    std::ptrdiff_t step;
    Batch<S> whole(std::size_t i) const { return part(i, lanes<S>); }
    Batch<S> part(std::size_t i, std::size_t n) const {
        return load_copied(p + static_cast<std::ptrdiff_t>(i) * step, step, n);
    }
    Strided from(std::size_t i) const { return {p + static_cast<std::ptrdiff_t>(i) * step, step}; }
};

// Returns the part of a destination that begins at element i.
template <class S, class Index> Into<S[]> from(Into<S[]> d, Index i) { return {d.dst + i, d.how}; }

// ---- elementwise ----

// Applies f to n elements of the sources, and writes or adds the results to dst. With Write::set, the
// elements of dst from n to `capacity` are undefined afterwards.
template <Write how, class S, class F, class... X>
void simd_for_each(std::size_t n, std::size_t capacity, S* dst, F f, X... x) {
    constexpr std::size_t L = lanes<S>;
    std::size_t i = 0;
    for (; i + L <= n; i += L) {
        Batch<S> v = f(x.whole(i)...);
        if constexpr (how == Write::add) v = Batch<S>::load_unaligned(dst + i) + v;
        v.store_unaligned(dst + i);
    }
    if (i == n) return;
    Batch<S> v = f(x.part(i, n - i)...);
    if constexpr (how == Write::add) v = load_part(dst + i, n - i) + v;
    if (how == Write::set && i + L <= capacity)
        v.store_unaligned(dst + i);
    else
        store_part(v, dst + i, n - i);
}

template <class S, class F, class... X> void simd_for_each(std::size_t n, Into<S[]> into, F f, X... x) {
    if (into.how == Write::set)
        simd_for_each<Write::set>(n, n, into.dst, f, x...);
    else
        simd_for_each<Write::add>(n, n, into.dst, f, x...);
}

struct Identity {
    template <class T> T operator()(T x) const { return x; }
};

// ---- sums ----

// Returns -0 as the start of a sum, since -0 + x is x for every x, including -0. Returns 0 without terms.
template <class S> constexpr S sum_identity(std::size_t terms) { return terms ? -S(0) : S(0); }

// A sum uses as many lanes as a cache line has elements, so the order of additions is the same on every CPU.
template <class S> using Line = std::array<Batch<S>, line / sizeof(Batch<S>)>;
template <class S> inline constexpr std::size_t in_line = line / sizeof(S);

// Adds lane i + half to lane i for each i < half.
template <class S, std::size_t half> Batch<S> add_halves(const Batch<S>& v) {
    constexpr std::size_t L = lanes<S>;
    const typename Batch<S>::register_type x = v;
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
        return v + Batch<S>(__builtin_shufflevector(x, x, static_cast<int>((i + half) % L)...));
    }
    (std::make_index_sequence<L>());
}

// Repeatedly adds the upper half of the lanes to the lower half, until one number is left.
template <class S, std::size_t half = lanes<S> / 2> Batch<S> add_lanes(Batch<S> v) {
    v = add_halves<S, half>(v);
    if constexpr (half > 1) v = add_lanes<S, half / 2>(v);
    return v;
}
template <class S> S add_lanes(Line<S> v) {
    for (std::size_t half = v.size() / 2; half > 0; half /= 2)
        for (std::size_t p = 0; p < half; ++p) v[p] = v[p] + v[p + half];
    return add_lanes<S>(v[0]).get(0);
}

// Returns v, with `others` in all lanes from lane n on.
template <class S> Batch<S> only_first(Batch<S> v, std::size_t n, S others) {
    alignas(line) static constexpr auto place = [] {
        std::array<S, lanes<S>> made{};
        for (std::size_t i = 0; i < lanes<S>; ++i) made[i] = static_cast<S>(i);
        return made;
    }();
    return xsimd::select(Batch<S>::load_aligned(place.data()) < Batch<S>(static_cast<S>(n)), v,
                         Batch<S>(others));
}

// Combines the values f(x[i]...) in four accumulators. `others` is the neutral element of `combine`.
template <class S, class Combine, class F, class... X>
[[gnu::always_inline]] inline Line<S> fold_lanes(std::size_t n, S others, Combine combine, F f, X... x) {
    constexpr std::size_t L = lanes<S>, W = in_line<S>;
    Line<S> a, b, c, d;
    for (std::size_t p = 0; p < a.size(); ++p) a[p] = b[p] = c[p] = d[p] = Batch<S>(others);
    const auto take = [&](Line<S>& into, std::size_t i) {
        for (std::size_t p = 0; p < into.size(); ++p) into[p] = combine(into[p], f(x.whole(i + p * L)...));
    };
    std::size_t i = 0;
    for (; i + 4 * W <= n; i += 4 * W) {
        take(a, i);
        take(b, i + W);
        take(c, i + 2 * W);
        take(d, i + 3 * W);
    }
    for (; i + W <= n; i += W) take(a, i);
    for (std::size_t p = 0; i < n; ++p, i += L)
        b[p] =
            combine(b[p], i + L <= n ? f(x.whole(i)...) : only_first(f(x.part(i, n - i)...), n - i, others));
    for (std::size_t p = 0; p < a.size(); ++p) a[p] = combine(combine(a[p], b[p]), combine(c[p], d[p]));
    return a;
}

// Prevents the vectorisation of a loop. Vectorisation would make a sum in a fixed order slower.
inline void prevent_vectorisation() { asm volatile(""); }

template <class S> S sum_in_order(S start, const S* x, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i, prevent_vectorisation()) start += x[i];
    return start;
}

// A longer sum is divided into halves, because a long sequence of additions is less accurate.
inline constexpr std::size_t whole_sum = detail::longest_sequential_sum;
constexpr std::size_t half_of(std::size_t n, std::size_t unit) { return (n / unit + 1) / 2 * unit; }

struct Plus {
    template <class T> T operator()(T a, T b) const { return a + b; }
};

template <class S, class F, class... X> [[gnu::noinline]] Line<S> sum_of_halves(std::size_t n, F f, X... x) {
    if (n <= 2 * whole_sum) return fold_lanes(n, -S(0), Plus(), f, x...);
    const std::size_t half = half_of(n, whole_sum);
    Line<S> sum = sum_of_halves<S>(half, f, x...);
    const Line<S> rest = sum_of_halves<S>(n - half, f, x.from(half)...);
    for (std::size_t p = 0; p < sum.size(); ++p) sum[p] = sum[p] + rest[p];
    return sum;
}

// Sums f(x[i]...) for all i < n in SIMD lanes. The order of additions is fixed, but differs from the order of
// the terms.
template <class S, class F, class... X> S sum_in_lanes(std::size_t n, F f, X... x) {
    return add_lanes(n <= 2 * whole_sum ? fold_lanes(n, -S(0), Plus(), f, x...)
                                        : sum_of_halves<S>(n, f, x...));
}
template <class S> [[gnu::noinline]] S sum_in_lanes(const S* x, std::size_t n) {
    return sum_in_lanes<S>(n, Identity(), Contiguous<S>{x});
}

// Adds f(x[i]...) for all i < n to `start`. Adds at most `ordered` terms in order, but more terms in lanes.
template <class S, class F, class... X> S sum_run(S start, std::size_t n, std::size_t ordered, F f, X... x) {
    constexpr std::size_t chunk = 256;
    const bool in_order = n <= ordered;
    if (!in_order && n > whole_sum) return start + sum_in_lanes<S>(n, f, x...);
    S total = in_order ? start : -S(0);
    for (std::size_t i = 0; i < n; i += chunk) {
        const std::size_t count = std::min(chunk, n - i);
        if (in_order) {
            alignas(line) S terms[chunk];
            simd_for_each<Write::set>(count, chunk, terms, f, x.from(i)...);
            total = sum_in_order(total, terms, count);
        } else {
            total = total + add_lanes(fold_lanes(count, -S(0), Plus(), f, x.from(i)...));
        }
    }
    return in_order ? total : start + total;
}

// Sums f(row) over the rows of x in order. Adds four rows at a time, so that y is written less often.
template <class S, class F>
void sum_rows(const S* x, std::size_t pitch, Into<S[]> y, std::size_t rows, std::size_t width, F f) {
    if (rows == 0 || width == 0) {
        if (y.how == Write::set) std::fill_n(y.dst, width, S(0));
        return;
    }
    if (width <= lanes<S>) {  // the sum stays in a register
        Batch<S> total = y.how == Write::set ? Batch<S>(sum_identity<S>(rows)) : load_part(y.dst, width);
        for (std::size_t r = 0; r < rows; ++r) total = total + f(load_part(x + r * pitch, width));
        return store_part(total, y.dst, width);
    }
    const auto add_four = [&](auto v, auto a, auto b, auto c, auto d) {
        return v + f(a) + f(b) + f(c) + f(d);
    };
    const auto add_one = [&](auto v, auto a) { return v + f(a); };
    const auto row = [&](std::size_t r) { return Contiguous<S>{x + r * pitch}; };
    std::size_t r = 0;
    const auto take = [&](auto start) {
        if (rows - r >= 4)
            simd_for_each<Write::set>(width, width, y.dst, add_four, start, row(r), row(r + 1), row(r + 2),
                                      row(r + 3)),
                r += 4;
        else
            simd_for_each<Write::set>(width, width, y.dst, add_one, start, row(r)), r += 1;
    };
    if (y.how == Write::set) take(Broadcast<S>(sum_identity<S>(rows)));
    while (r < rows) take(Contiguous<S>{y.dst});
}
template <class S, class F> void sum_rows(const S* x, Into<S[]> y, std::size_t rows, std::size_t width, F f) {
    sum_rows(x, width, y, rows, width, f);
}

// ---- largest element ----

struct Larger {  // returns NaN if a or b is NaN (tested by ==, because xsimd 8 computes NaN != NaN as false)
    template <class V> V operator()(V a, V b) const { return select(a == a, select(a > b, a, b), a); }
};

template <class S> S largest(const S* x, std::size_t n) {
    using V = Batch<S>;
    constexpr std::size_t L = lanes<S>;
    const S lowest = -std::numeric_limits<S>::infinity();
    V a(lowest), b(lowest);
    auto numbers = a == a;  // true in lanes without NaN; a separate test is faster than Larger
    std::size_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L) {
        const V v = V::load_unaligned(x + i), w = V::load_unaligned(x + i + L);
        a = xsimd::max(a, v);
        b = xsimd::max(b, w);
        numbers = numbers & (v == v) & (w == w);
    }
    for (; i < n; i += L) {
        const V v =
            i + L <= n ? V::load_unaligned(x + i) : only_first(load_part(x + i, n - i), n - i, lowest);
        a = xsimd::max(a, v);
        numbers = numbers & (v == v);
    }
    if (!xsimd::all(numbers)) return std::numeric_limits<S>::quiet_NaN();
    alignas(line) S m[L];
    xsimd::max(a, b).store_aligned(m);
    for (std::size_t half = L / 2; half > 0; half /= 2)
        for (std::size_t j = 0; j < half; ++j) m[j] = m[j] > m[j + half] ? m[j] : m[j + half];
    return m[0];
}

// ---- strips of columns, whose sums fit on the stack ----

inline constexpr std::size_t strip = 256, wide_strip = 1024;

template <std::size_t most = strip, class Body> void for_column_tiles(std::size_t columns, Body body) {
    for (std::size_t i = 0; i < columns; i += most) body(i, std::min(most, columns - i));
}

// Stores the sum of `rows` rows from row `first` on in total[0, width), for width <= wide_strip. add() must
// sum a block of at most block_of_rows rows.
inline constexpr std::size_t block_of_rows = 128;
template <class S, class Add>
void sum_in_halves(std::size_t first, std::size_t rows, std::size_t width, S* total, Add add) {
    if (rows <= block_of_rows) return add(first, rows, total);
    const std::size_t half = half_of(rows, block_of_rows);
    alignas(line) S rest[wide_strip];
    sum_in_halves(first, half, width, total, add);
    sum_in_halves(first + half, rows - half, width, rest, add);
    simd_for_each<Write::add>(width, width, total, Identity(), Contiguous<S>{rest});
}

}  // namespace tally::cpu
