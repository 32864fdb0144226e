// Implements map, zip, where and their gradients. Kernels with broadcast operands process one row at a time.
#include <algorithm>

#include "tally/cpu/fast_families.hpp"
#include "tally/cpu/simd_loops.hpp"
#include "tally/cpu/walk.hpp"

namespace tally::cpu {

namespace {

template <class F, class S> void map(const void* functor, const S* x, S* y, std::size_t n) {
    const F f = *static_cast<const F*>(functor);
    simd_for_each<Write::set>(
        n, n, y, [&](auto v) { return f.value(v); }, Contiguous<S>{x});
}

template <class F, class S>
void map_back(const void* functor, const S* dy, const S* kept, Into<S[]> dx, std::size_t n) {
    const F f = *static_cast<const F*>(functor);
    if constexpr (F::keeps == Keep::nothing)
        simd_for_each(
            n, dx, [&](auto d) { return f.back(d, d); }, Contiguous<S>{dy});
    else
        simd_for_each(
            n, dx, [&](auto d, auto v) { return f.back(d, v); }, Contiguous<S>{dy}, Contiguous<S>{kept});
}

// ---- broadcasting: the step of an operand along the last axis selects the type of its source ----

template <class S> struct AsRun {
    Contiguous<S> operator()(const S* p) const { return {p}; }
};
template <class S> struct AsOne {
    Broadcast<S> operator()(const S* p) const { return Broadcast<S>(*p); }
};
template <class S> struct AsStrided {
    std::ptrdiff_t step;
    Strided<S> operator()(const S* p) const { return {p, step}; }
};
template <class S> struct Unread {  // an operand that was not saved
    Broadcast<S> operator()(const S*) const { return Broadcast<S>(S(0)); }
};

template <class S, bool read_a, bool read_b, class Body>
void with_sources(std::ptrdiff_t a, std::ptrdiff_t b, Body body) {
    if constexpr (!read_a && !read_b) {
        body(Unread<S>(), Unread<S>());
    } else if constexpr (!read_b) {
        if (a == 1) return body(AsRun<S>(), Unread<S>());
        if (a == 0) return body(AsOne<S>(), Unread<S>());
        body(AsStrided<S>{a}, Unread<S>());
    } else if constexpr (!read_a) {
        if (b == 1) return body(Unread<S>(), AsRun<S>());
        if (b == 0) return body(Unread<S>(), AsOne<S>());
        body(Unread<S>(), AsStrided<S>{b});
    } else {
        if (a == 1 && b == 1) return body(AsRun<S>(), AsRun<S>());
        if (a == 1 && b == 0) return body(AsRun<S>(), AsOne<S>());
        if (a == 0 && b == 1) return body(AsOne<S>(), AsRun<S>());
        body(AsStrided<S>{a}, AsStrided<S>{b});
    }
}

// Returns whether both operands are contiguous and have at most as many elements as a batch.
template <class S> bool fits_a_batch(const StridedIndex<2>& walk) {
    return walk.rank == 1 && walk.size <= lanes<S> && walk.size > 0 && walk.stride[0][0] == 1 &&
           walk.stride[1][0] == 1;
}

// zip_rows() and zip_rows_back() are not inline, so that zip() and zip_back() save no registers for a batch.
template <class F, class S>
[[gnu::noinline]] void zip_rows(const F& f, const StridedIndex<2>& walk, const S* a, const S* b, S* y) {
    const std::size_t length = row_length(walk);
    with_sources<S, true, true>(row_step(walk, 0), row_step(walk, 1), [&](auto source_a, auto source_b) {
        each_row(walk, [&](std::size_t i, const auto& at) {
            simd_for_each<Write::set>(
                length, walk.size - i, y + i, [&](auto u, auto v) { return f.value(u, v); },
                source_a(a + at[0]), source_b(b + at[1]));
        });
    });
}

template <class F, class S>
void zip(const void* functor, const StridedIndex<2>& walk, const S* a, const S* b, S* y) {
    const F& f = *static_cast<const F*>(functor);
    if (!fits_a_batch<S>(walk)) return zip_rows(f, walk, a, b, y);
    store_part(f.value(load_part(a, walk.size), load_part(b, walk.size)), y, walk.size);
}

// If several terms are added to one element, fills d with zeros and changes `set` to `add`.
template <int Operands, class S>
Into<S[]> sum_destination(const StridedIndex<Operands>& walk, std::size_t operand, Into<S[]> d) {
    if (d.how == Write::add || walk.size == walk.operand_size[operand]) return d;
    std::fill_n(d.dst, walk.operand_size[operand], sum_identity<S>(walk.size));
    return {d.dst, Write::add};
}

// Sets d[i * step] to terms[i], or adds terms[i], for i < n. If `step` is 0, adds all terms to d[0].
template <class S> [[gnu::noinline]] void add_terms(const S* terms, std::size_t n, std::ptrdiff_t step,
                                                    bool in_order, Into<S[]> d) {
    if (step == 0) {
        const S start = d.how == Write::set ? sum_identity<S>(n) : *d.dst;
        *d.dst = in_order ? sum_in_order(start, terms, n) : start + sum_in_lanes(terms, n);
        return;
    }
    for (std::size_t i = 0; i < n; ++i) {
        S& place = d.dst[static_cast<std::ptrdiff_t>(i) * step];
        place = d.how == Write::set ? terms[i] : place + terms[i];
    }
}

// Sets d[i * step] to f(x[i]...), or adds f(x[i]...), for i < n. May overwrite `capacity` elements of d.
template <class S, class F, class... X> void add_row(std::size_t n, std::size_t capacity, std::ptrdiff_t step,
                                                     bool in_order, Into<S[]> d, F f, X... x) {
    if (step == 1) {
        if (d.how == Write::set)
            simd_for_each<Write::set>(n, capacity, d.dst, f, x...);
        else
            simd_for_each<Write::add>(n, n, d.dst, f, x...);
        return;
    }
    constexpr std::size_t chunk = 256;
    alignas(line) S terms[chunk];
    for (std::size_t i = 0; i < n; i += chunk) {
        const std::size_t count = std::min(chunk, n - i);
        simd_for_each<Write::set>(count, chunk, terms, f, x.from(i)...);
        add_terms(terms, count, step, in_order, from(d, static_cast<std::ptrdiff_t>(i) * step));
    }
}

// Sums rows that are narrower than a batch in one register. terms(i) must return row i.
template <class S, class RowTerms>
void sum_narrow_rows(std::size_t rows, std::size_t width, Into<S[]> d, RowTerms terms) {
    Batch<S> total = d.how == Write::set ? Batch<S>(sum_identity<S>(rows)) : load_part(d.dst, width);
    for (std::size_t r = 0; r < rows; ++r) total = total + terms(r);
    store_part(total, d.dst, width);
}

template <class F, std::size_t operand, class S>
[[gnu::noinline]] void zip_rows_back(const F& f, const StridedIndex<2>& walk, const S* dy, const S* a,
                                     const S* b, const S* y, Into<S[]> d) {
    constexpr Keeps keeps = operand == 0 ? F::for_a : F::for_b;
    const auto slope = [&](auto... v) { return detail::slope<operand>(f, v...); };
    const auto source_y = [&](std::size_t i) {
        if constexpr (keeps.y)
            return Contiguous<S>{y + i};
        else
            return Broadcast<S>(S(0));
    };
    const std::size_t length = row_length(walk);
    const std::ptrdiff_t step = row_step(walk, operand);
    const bool rows_add_up = walk.rank == 2 && step == 1 && walk.stride[operand][0] == 0;
    if constexpr (!keeps.a && !keeps.b && !keeps.y)
        if (rows_add_up)
            return sum_rows(dy, d, walk.extent[0], length, [&](auto v) { return slope(v, v, v, v); });
    const bool narrow_rows = rows_add_up && length < lanes<S> && walk.size > 0;
    with_sources<S, keeps.a, keeps.b>(
        row_step(walk, 0), row_step(walk, 1), [&](auto source_a, auto source_b) {
            const auto place = [](const S* p, std::ptrdiff_t at) { return p ? p + at : p; };
            if (narrow_rows)
                return sum_narrow_rows(walk.extent[0], length, d, [&](std::size_t r) {
                    const auto at_a = static_cast<std::ptrdiff_t>(r) * walk.stride[0][0],
                               at_b = static_cast<std::ptrdiff_t>(r) * walk.stride[1][0];
                    return slope(load_part(dy + r * length, length), source_a(place(a, at_a)).part(0, length),
                                 source_b(place(b, at_b)).part(0, length),
                                 source_y(r * length).part(0, length));
                });
            const Into<S[]> sum = sum_destination(walk, operand, d);
            const bool ahead = in_order(walk, operand);
            const bool ordered = sums_in_order(walk, length);
            each_row(walk, [&](std::size_t i, const auto& at) {
                add_row(length, ahead ? walk.size - i : length, step, ordered, from(sum, at[operand]), slope,
                        Contiguous<S>{dy + i}, source_a(place(a, at[0])), source_b(place(b, at[1])),
                        source_y(i));
            });
        });
}

template <class F, std::size_t operand, class S>
void zip_back(const void* functor, const StridedIndex<2>& walk, const S* dy, const S* a, const S* b,
              const S* y, Into<S[]> d) {
    constexpr Keeps keeps = operand == 0 ? F::for_a : F::for_b;
    const F& f = *static_cast<const F*>(functor);
    if (!fits_a_batch<S>(walk)) return zip_rows_back<F, operand>(f, walk, dy, a, b, y, d);
    const std::size_t n = walk.size;
    const auto kept = [n](bool is_kept, const S* p) { return is_kept ? load_part(p, n) : Batch<S>(S(0)); };
    const Batch<S> term =
        slope<operand>(f, load_part(dy, n), kept(keeps.a, a), kept(keeps.b, b), kept(keeps.y, y));
    store_part(d.how == Write::set ? term : load_part(d.dst, n) + term, d.dst, n);
}

// The compiler vectorises the plain loops of where() and where_back().
template <class S>
void where(const StridedIndex<3>& walk, const std::int32_t* c, const S* a, const S* b, S* y) {
    const std::size_t length = row_length(walk);
    const std::ptrdiff_t step_c = row_step(walk, 0), step_a = row_step(walk, 1), step_b = row_step(walk, 2);
    const bool plain = step_c == 1 && step_a == 1 && step_b == 1;
    each_row(walk, [&](std::size_t i, const auto& at) {
        const std::int32_t* from_c = c + at[0];
        const S *from_a = a + at[1], *from_b = b + at[2];
        S* to = y + i;
        for (std::size_t j = 0; plain && j < length; ++j) {
            const S if_true = from_a[j], if_false = from_b[j];  // loading both avoids a branch
            to[j] = from_c[j] ? if_true : if_false;
        }
        for (std::size_t j = 0; !plain && j < length; ++j) {
            const auto k = static_cast<std::ptrdiff_t>(j);
            const S if_true = from_a[k * step_a], if_false = from_b[k * step_b];
            to[j] = from_c[k * step_c] ? if_true : if_false;
        }
    });
}

template <class S>
void where_back(const StridedIndex<3>& walk, const std::int32_t* c, const S* dy, int place, Into<S[]> d) {
    const auto operand = static_cast<std::size_t>(place);
    const std::size_t length = row_length(walk);
    const std::ptrdiff_t step_c = row_step(walk, 0), step = row_step(walk, operand);
    const Into<S[]> sum = sum_destination(walk, operand, d);
    const bool ordered = sums_in_order(walk, length);
    constexpr std::size_t chunk = 256;
    each_row(walk, [&](std::size_t i, const auto& at) {
        const std::int32_t* from_c = c + at[0];
        alignas(line) S terms[chunk];
        for (std::size_t done = 0; done < length; done += chunk) {
            const std::size_t count = std::min(chunk, length - done);
            for (std::size_t j = 0; j < count; ++j) {
                const S slope = dy[i + done + j];
                terms[j] = (from_c[static_cast<std::ptrdiff_t>(done + j) * step_c] != 0) == (place == 1)
                               ? slope
                               : S(0);
            }
            add_row(count, count, step, ordered,
                    from(sum, at[operand] + static_cast<std::ptrdiff_t>(done) * step), Identity(),
                    Contiguous<S>{terms});
        }
    });
}

}  // namespace

template <class S> void install_elementwise(Kernels<S>& t) {
    [&]<class... F>(std::tuple<F...>*) {
        t.map = {map<F, S>...};
        t.map_back = {map_back<F, S>...};
    }(static_cast<UnaryOps*>(nullptr));
    [&]<class... F>(std::tuple<F...>*) {
        t.zip = {zip<F, S>...};
        t.zip_back_a = {zip_back<F, 0, S>...};
        t.zip_back_b = {zip_back<F, 1, S>...};
    }(static_cast<BinaryOps*>(nullptr));
    t.where = where<S>;
    t.where_back = where_back<S>;
}

template void install_elementwise(Kernels<float>&);
template void install_elementwise(Kernels<double>&);

}  // namespace tally::cpu
