// Defines the kernel bodies of `map`, `zip` and `where`, with one thread per element. A thread or a team of
// threads computes each element of a gradient.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tally/gpu/team.hpp"
#include "tally/gpu/walk.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

template <class F, class S> struct MapBody {
    F f;
    const S* x;
    S* y;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const { y[i] = f.value(x[i]); }
};

template <class F, class S> struct MapBackBody {
    F f;
    const S *dy, *kept;
    Into<S[]> dx;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        if constexpr (F::keeps == Keep::nothing)
            store(dx, i, f.back(dy[i], dy[i]));
        else
            store(dx, i, f.back(dy[i], kept[i]));
    }
};

template <class F, class S> struct ZipBody {
    F f;
    StridedIndex<2> walk;
    const S *a, *b;
    S* y;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        const Places<2> at = places_at(walk, i);
        y[i] = f.value(a[at[0]], b[at[1]]);
    }
};

template <class S> struct WhereBody {
    StridedIndex<3> walk;
    const std::int32_t* c;
    const S *a, *b;
    S* y;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        const Places<3> at = places_at(walk, i);
        y[i] = c[at[0]] ? a[at[1]] : b[at[2]];
    }
};

// ---- gradients, summed over the axes along which their operand repeats ----

// Computes one term of a gradient of `zip`. The functor does not read an array that was not saved, so the
// functor receives dy instead of this array.
template <class F, std::size_t operand, class S> struct SlopeTerm {
    F f;
    const S *dy, *a, *b, *y;
    TALLY_HOST_DEVICE S operator()(const Places<3>& at) const {
        constexpr Keeps keeps = operand == 0 ? F::for_a : F::for_b;
        const S d = dy[at[2]];
        S kept_a = d, kept_b = d, kept_y = d;
        if constexpr (keeps.a) kept_a = a[at[0]];
        if constexpr (keeps.b) kept_b = b[at[1]];
        if constexpr (keeps.y) kept_y = y[at[2]];
        return slope<operand>(f, d, kept_a, kept_b, kept_y);
    }
};

template <class S> struct WhereTerm {
    const std::int32_t* c;
    const S* dy;
    bool where_true;
    TALLY_HOST_DEVICE S operator()(const Places<4>& at) const {
        return (c[at[0]] != 0) == where_true ? dy[at[3]] : S(0);
    }
};

template <class S> struct CopyTerm {
    const S* dy;
    TALLY_HOST_DEVICE S operator()(const Places<2>& at) const { return dy[at[1]]; }
};

// Adds all gradient terms of the element with index `place` to d[place], row by row. A team of threads sums
// the terms of a row sequentially or in its lanes. An element that the walk does not visit has no terms.
template <int Operands, class S, class Term> struct SumAlongBody {
    ReductionWalk<Operands> walk;
    std::size_t length;
    bool in_order;
    Term term;
    Into<S[]> d;

    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t place) const {
        Places<Operands + 1> first;
        const std::size_t terms = walk.first_at(place, first) ? walk.repeats.size : 0;
        Into<S[]> to{d.dst + place, d.how};
        if (terms == 0) return team.add_in_order(0, to, [](std::size_t) { return S(0); });
        for (std::size_t row = 0; row < terms; row += length) {
            add_terms(team, length, in_order, to,
                      [&](std::size_t i) { return term(walk.term_at(first, row + i)); });
            to.how = Write::add;
        }
    }
};

template <class On, class S, int Operands, class Term>
void sum_along(const char* name, const StridedIndex<Operands>& walk, std::size_t operand, Into<S[]> d,
               Term term) {
    ReductionWalk<Operands> reduction = reduction_walk(walk, operand);
    const std::size_t places = walk.operand_size[operand];
    const auto last = static_cast<std::size_t>(walk.rank - 1);
    const bool last_repeats = walk.rank > 0 && walk.stride[operand][last] == 0 && walk.extent[last] > 0;
    // If there are several axes, the last axis is not the axis of the samples. Samples are added in order.
    const std::size_t length = last_repeats ? walk.extent[last] : reduction.repeats.size;
    const bool in_order = !last_repeats || sums_in_order(walk, length);
    const SumAlongBody<Operands, S, Term> body{reduction, length, in_order, term, d};
    // A team with all threads of a block would increase the compile time and rarely be faster.
    if (last_repeats && length > 4)
        On::template teams<warp>(name, places, body);
    else
        On::template teams<1>(name, places, body);
}

// ---- the slots ----

template <class On, class F, class S> void map(const void* f, const S* x, S* y, std::size_t n) {
    On::each(F::name, n, MapBody<F, S>{*static_cast<const F*>(f), x, y});
}

template <class On, class F, class S>
void map_back(const void* f, const S* dy, const S* kept, Into<S[]> dx, std::size_t n) {
    On::each(F::name, n, MapBackBody<F, S>{*static_cast<const F*>(f), dy, kept, dx});
}

template <class On, class F, class S>
void zip(const void* f, const StridedIndex<2>& walk, const S* a, const S* b, S* y) {
    On::each(F::name, walk.size, ZipBody<F, S>{*static_cast<const F*>(f), walk, a, b, y});
}

template <class On, class F, std::size_t operand, class S>
void zip_back(const void* f, const StridedIndex<2>& walk, const S* dy, const S* a, const S* b, const S* y,
              Into<S[]> d) {
    sum_along<On>(F::name, walk, operand, d,
                  SlopeTerm<F, operand, S>{*static_cast<const F*>(f), dy, a, b, y});
}

template <class On, class S>
void where(const StridedIndex<3>& walk, const std::int32_t* c, const S* a, const S* b, S* y) {
    On::each("where", walk.size, WhereBody<S>{walk, c, a, b, y});
}

template <class On, class S>
void where_back(const StridedIndex<3>& walk, const std::int32_t* c, const S* dy, int place, Into<S[]> d) {
    sum_along<On>("where", walk, static_cast<std::size_t>(place), d, WhereTerm<S>{c, dy, place == 1});
}

template <class On, class S> void install_elementwise(Kernels<S>& t) {
    [&]<class... F>(std::tuple<F...>*) {
        t.map = {map<On, F, S>...};
        t.map_back = {map_back<On, F, S>...};
    }(static_cast<UnaryOps*>(nullptr));
    [&]<class... F>(std::tuple<F...>*) {
        t.zip = {zip<On, F, S>...};
        t.zip_back_a = {zip_back<On, F, 0, S>...};
        t.zip_back_b = {zip_back<On, F, 1, S>...};
    }(static_cast<BinaryOps*>(nullptr));
    t.where = where<On, S>;
    t.where_back = where_back<On, S>;
}

}  // namespace tally::gpu
