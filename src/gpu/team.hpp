// A team: some lanes that work on one row together, and what a kernel body may ask of them.
//
// On a GPU the lanes are a thread, a warp or a block; on the host a loop. Both add in the same order, so both
// give the same bits:
//  - lane l of a fold takes the elements l, l + lanes, l + 2 lanes, ... one after the other; then the upper
//  half of the lanes is combined into the lower half, until one is left;
//  - what is in order is in order.
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>

#include "tally/gpu/host_device.hpp"
#include "tally/kernels/functors.hpp"
#include "tally/kernels/into.hpp"

namespace tally::gpu {

struct Plus {
    template <class T> TALLY_HOST_DEVICE constexpr T operator()(T a, T b) const { return a + b; }
};

struct Larger {  // NaN wins
    template <class T> TALLY_HOST_DEVICE constexpr T operator()(T a, T b) const {
        return detail::select(a == a, detail::select(a > b, a, b), a);
    }
};

struct Smaller {
    template <class T> TALLY_HOST_DEVICE constexpr T operator()(T a, T b) const { return b < a ? b : a; }
};

// What every Team offers. Element i belongs to lane i % lanes, always: a lane may read what it wrote, not
// what another lane wrote.
//  - each(n, f): f(i) for every i < n;
//  - fold(n, nothing, combine, f): all f(i) combined; every lane gets the result;
//  - add_in_order(n, place, f): *place (+)= f(0), f(1), ... one after the other, touched by one lane alone;
//  - alone(f): f() in the lane that `add_in_order` uses.
template <class T>
concept Team = requires(T team, Into<double[]> place, double (*term)(std::size_t), void (*visit)(std::size_t),
                        void (*once)()) {
    { T::lanes } -> std::convertible_to<std::size_t>;
    { team.fold(std::size_t(), double(), Plus(), term) } -> std::same_as<double>;
    team.each(std::size_t(), visit);
    team.add_in_order(std::size_t(), place, term);
    team.alone(once);
};

// The start of a sum that adds nothing: -0 + x is x for every x, -0 included. A sum of no terms is 0.
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

// *place (+)= the terms: in order, or the team's own sum of them at once.
template <class S, class T, class F>
TALLY_HOST_DEVICE constexpr void add_terms(T& team, std::size_t n, bool in_order, Into<S[]> place, F f) {
    if (in_order) return team.add_in_order(n, place, f);
    const S total = sum_in_team<S>(team, n, f);
    team.alone([&] { place.dst[0] = start_of(place, 0, n) + total; });
}

// A team of one: on a GPU a thread. All it does is in order.
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
        constexpr std::size_t at_once = 8;  // terms that are fetched together
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

// How many lanes work on a row of n neighbours. Only sizes decide, so that the same call gives the same bits.
inline constexpr std::size_t warp = 32, block = 256;

template <class Launch> void with_lanes_for(std::size_t n, Launch launch) {
    if (n <= 4)
        launch.template operator()<1>();
    else if (n <= 1024)
        launch.template operator()<warp>();
    else
        launch.template operator()<block>();
}

}  // namespace tally::gpu
