// A `Team` is a group of lanes (threads of a GPU) that together process one row. On a GPU a team is a thread,
// a warp or a block. On the host a team is a loop that adds in the same order as a GPU. In fold(), lane l
// combines the elements l, l + lanes, l + 2 lanes, ... in order. Afterwards fold() combines the upper half of
// the lanes with the lower half, until one lane is left.
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>

#include "tally/gpu/host_device.hpp"
#include "tally/kernels/functors.hpp"
#include "tally/kernels/into.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

struct Plus {
    template <class T> TALLY_HOST_DEVICE constexpr T operator()(T a, T b) const { return a + b; }
};

struct Larger {  // returns NaN if a or b is NaN
    template <class T> TALLY_HOST_DEVICE constexpr T operator()(T a, T b) const {
        return detail::select(a == a, detail::select(a > b, a, b), a);
    }
};

struct Smaller {
    template <class T> TALLY_HOST_DEVICE constexpr T operator()(T a, T b) const { return b < a ? b : a; }
};

// Functions of a Team. Element i always belongs to lane i % lanes, so a lane may read its own writes, but not
// the writes of another lane.
//  - each(n, f) calls f(i) for every i < n;
//  - fold(n, nothing, combine, f) combines all f(i) and returns the result to every lane;
//  - alone(f) calls f() in lane 0.
// A thread and a warp also have add_in_order(n, place, f), which adds f(0), f(1), ... to *place in order, in lane 0.
template <class T>
concept Team = requires(T team, double (*term)(std::size_t), void (*visit)(std::size_t), void (*once)()) {
    { T::lanes } -> std::convertible_to<std::size_t>;
    { team.fold(std::size_t(), double(), Plus(), term) } -> std::same_as<double>;
    team.each(std::size_t(), visit);
    team.alone(once);
};

// Returns -0 as the start of a sum, since -0 + x is x for every x, including -0. Returns 0 without terms.
template <class S> TALLY_HOST_DEVICE constexpr S sum_identity(std::size_t terms) {
    return terms ? -S(0) : S(0);
}

template <class S> TALLY_HOST_DEVICE constexpr S start_of(Into<S[]> into, std::size_t i, std::size_t terms) {
    return into.how == Write::set ? sum_identity<S>(terms) : into.dst[i];
}

template <class S> TALLY_HOST_DEVICE constexpr void store(Into<S[]> into, std::size_t i, S value) {
    into.dst[i] = into.how == Write::set ? value : into.dst[i] + value;
}

template <class S> TALLY_HOST_DEVICE constexpr S lowest() { return -std::numeric_limits<S>::infinity(); }

template <class S, class T, class F> TALLY_HOST_DEVICE constexpr S sum_in_team(T& team, std::size_t n, F f) {
    return team.fold(n, -S(0), Plus(), f);
}

inline constexpr std::size_t warp = 32, block = 256;

// Adds n terms to *place, in order or as one sum over the lanes. A thread adds in order in any case, and a block in no case.
template <class S, class T, class F>
TALLY_HOST_DEVICE constexpr void add_terms(T& team, std::size_t n, bool in_order, Into<S[]> place, F f) {
    if constexpr (T::lanes == 1) {
        team.add_in_order(n, place, f);
    } else {
        if constexpr (T::lanes == warp)
            if (in_order) return team.add_in_order(n, place, f);
        const S total = sum_in_team<S>(team, n, f);
        team.alone([&] { place.dst[0] = start_of(place, 0, n) + total; });
    }
}

struct SingleThread {
    static constexpr std::size_t lanes = 1;

    template <class F> TALLY_HOST_DEVICE constexpr void each(std::size_t n, F f) {
        for (std::size_t i = 0; i < n; ++i) f(i);
    }
    template <class T, class Combine, class F>
    TALLY_HOST_DEVICE constexpr T fold(std::size_t n, T nothing, Combine combine, F f) {
        for (std::size_t i = 0; i < n; ++i) nothing = combine(nothing, f(i));
        return nothing;
    }
    template <class S, class F>
    TALLY_HOST_DEVICE constexpr void add_in_order(std::size_t n, Into<S[]> place, F f) {
        S total = start_of(place, 0, n);
        constexpr std::size_t at_once = 8;  // terms that are loaded together
        std::size_t i = 0;
        for (; i + at_once <= n; i += at_once) {
            S term[at_once];
            for (std::size_t t = 0; t < at_once; ++t) term[t] = f(i + t);
            for (std::size_t t = 0; t < at_once; ++t) total += term[t];
        }
        for (; i < n; ++i) total += f(i);
        *place.dst = total;
    }
    template <class F> TALLY_HOST_DEVICE constexpr void alone(F f) { f(); }
};
static_assert(Team<SingleThread>);

// Starts a team for each of `count` rows of n terms. Only the length of a row determines its number of lanes,
// so repeated calls compute the same bits.
template <class On, class Body>
void team_per_row(const char* name, std::size_t count, std::size_t n, const Body& body) {
    if (n <= 4)
        On::template teams<1>(name, count, body);
    else if (n <= detail::longest_sequential_sum)
        On::template teams<warp>(name, count, body);
    else
        On::template teams<block>(name, count, body);
}

}  // namespace tally::gpu
