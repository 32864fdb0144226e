// The class OnHost runs kernel bodies on the host, to test their arithmetic and indexing without a GPU. Lanes
// and threads run in reverse order, so that tests detect a kernel body that reads another lane's writes.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "tally/base/error.hpp"
#include "tally/gpu/table.hpp"

namespace tally::gpu {

template <std::size_t Lanes> struct HostTeam {
    static constexpr std::size_t lanes = Lanes;

    template <class F> void each(std::size_t n, F f) {
        for (std::size_t i = n; i-- > 0;) f(i);
    }
    template <class T, class Combine, class F> T fold(std::size_t n, T nothing, Combine combine, F f) {
        std::array<T, Lanes> lane;
        for (std::size_t l = Lanes; l-- > 0;) {
            lane[l] = nothing;
            for (std::size_t i = l; i < n; i += Lanes) lane[l] = combine(lane[l], f(i));
        }
        for (std::size_t half = Lanes / 2; half > 0; half /= 2)
            for (std::size_t l = 0; l < half; ++l) lane[l] = combine(lane[l], lane[l + half]);
        return lane[0];
    }
    template <class S, class F> void add_in_order(std::size_t n, Into<S[]> place, F f) {
        SingleThread().add_in_order(n, place, f);
    }
    template <class F> void alone(F f) { f(); }
};

template <> struct HostTeam<1> : SingleThread {};

static_assert(Team<HostTeam<1>> && Team<HostTeam<warp>> && Team<HostTeam<block>>);

struct OnHost {
    template <class Body> static void each(const char*, std::size_t n, const Body& body) {
        for (std::size_t i = n; i-- > 0;) body(i);
    }

    template <std::size_t lanes, class Body>
    static void teams(const char*, std::size_t count, const Body& body) {
        for (std::size_t i = count; i-- > 0;) {
            HostTeam<lanes> team;
            body(team, i);
        }
    }

    // multiply() replaces the BLAS library that a GPU has. multiply() and ProductBody read b in different
    // orders, but add the products in the same order, and therefore give the same bits.
    static Products products() { return Products::blas; }

    template <class S> static void multiply(const Product& p, const S* a, const S* b, Into<S[]> c) {
        if (p.transpose_b) return each("matmul", p.m * p.n, ProductBody<S>{p, a, b, nullptr, c});
        for (std::size_t i = 0; i < p.m; ++i) {
            S* const row = c.dst + i * p.n;
            for (std::size_t j = 0; j < p.n; ++j) row[j] = start_of(c, i * p.n + j, p.k);
            for (std::size_t l = 0; l < p.k; ++l) {
                const S factor = a[p.transpose_a ? l * p.m + i : i * p.k + l];
                for (std::size_t j = 0; j < p.n; ++j) row[j] = std::fma(factor, b[l * p.n + j], row[j]);
            }
        }
    }

    template <class S> class Scratch {
    public:
        explicit Scratch(std::size_t n) : numbers_(n) {}
        S* data() const { return numbers_.data(); }

    private:
        mutable std::vector<S> numbers_;
    };

    static WrongLabel* wrong_label() {
        static thread_local WrongLabel wrong;
        return &wrong;
    }
    static void throw_wrong_label() {
        const WrongLabel seen = *wrong_label();
        *wrong_label() = {};
        if (seen.found) throw Error(words(seen));
    }
};

template <class S> const Kernels<S>& host_table() {
    static const Kernels<S> made = table<OnHost, S>();
    return made;
}

}  // namespace tally::gpu
