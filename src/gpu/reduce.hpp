// Defines the kernel bodies of `sum`, `mean`, `spread` and `max`, and of running sums and products.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tally/gpu/team.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

// The elements that are reduced to one result begin at `first` and are `step` elements apart.
struct RunOf {
    std::size_t first, step;
    TALLY_HOST_DEVICE constexpr RunOf(const detail::ReduceDims& dims, std::size_t result)
        : first(result / dims.inner * dims.reduced * dims.inner + result % dims.inner), step(dims.inner) {}
    TALLY_HOST_DEVICE constexpr std::size_t operator[](std::size_t r) const { return first + r * step; }
};

// One thread reduces each column, because neighbouring threads then read neighbouring numbers. A block cannot add in order.
template <class On, class Body>
void for_each_run(const char* name, const detail::ReduceDims& dims, const Body& body) {
    const std::size_t results = dims.outer * dims.inner;
    if (dims.inner != 1) return On::template teams<1>(name, results, body);
    const std::size_t n = dims.reduced;
    team_per_row<On>(name, results, dims.in_order ? std::min(n, detail::longest_sequential_sum) : n, body);
}

template <class S, bool divides> struct SumBody {
    const S* x;
    Into<S[]> y;
    detail::ReduceDims dims;
    bool in_order;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t result) const {
        const RunOf run(dims, result);
        const Into<S[]> to{y.dst + result, y.how};
        add_terms(team, dims.reduced, in_order, to, [&](std::size_t r) { return x[run[r]]; });
        if constexpr (divides) team.alone([&] { *to.dst = *to.dst / static_cast<S>(dims.reduced); });
    }
};

template <class S> struct SpreadBody {
    const S* dy;
    S divisor;
    Into<S[]> dx;
    detail::ReduceDims dims;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        store(dx, i, dy[i / (dims.reduced * dims.inner) * dims.inner + i % dims.inner] / divisor);
    }
};

template <class S> struct MaxBody {
    const S* x;
    S* y;
    detail::ReduceDims dims;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t result) const {
        const RunOf run(dims, result);
        const S m = team.fold(dims.reduced, lowest<S>(), Larger(), [&](std::size_t r) { return x[run[r]]; });
        team.alone([&] { y[result] = m; });
    }
};

// Follows PyTorch's formula. If y is NaN, no element equals y, so all gradients are 0 / 0 = NaN.
template <class S> struct MaxBackBody {
    const S *dy, *x, *y;
    Into<S[]> dx;
    detail::ReduceDims dims;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t result) const {
        const RunOf run(dims, result);
        const S m = y[result];
        const std::size_t ties = team.fold(dims.reduced, std::size_t(0), Plus(),
                                           [&](std::size_t r) { return std::size_t(x[run[r]] == m); });
        const S share = dy[result] / static_cast<S>(ties), none = S(0) / static_cast<S>(ties);
        team.each(dims.reduced, [&](std::size_t r) { store(dx, run[r], x[run[r]] == m ? share : none); });
    }
};

// ---- running sums and products, with one thread for each run of elements ----

template <class S> struct CumsumBody {
    const S* x;
    Into<S[]> y;
    detail::ReduceDims dims;
    bool from_the_end;
    TALLY_HOST_DEVICE void operator()(std::size_t result) const {
        const RunOf run(dims, result);
        S total = -S(0);
        for (std::size_t r = 0; r < dims.reduced; ++r) {
            const std::size_t at = run[from_the_end ? dims.reduced - 1 - r : r];
            total += x[at];
            store(y, at, total);
        }
    }
};

template <class S> struct ProdBody {
    const S* x;
    S* y;
    detail::ReduceDims dims;
    TALLY_HOST_DEVICE void operator()(std::size_t result) const {
        const RunOf run(dims, result);
        S product = S(1);
        for (std::size_t r = 0; r < dims.reduced; ++r) product *= x[run[r]];
        y[result] = product;
    }
};

template <class S> struct ProdBackBody {
    const S *dy, *x;
    S* dx;
    detail::ReduceDims dims;
    TALLY_HOST_DEVICE void operator()(std::size_t result) const {
        const RunOf run(dims, result);
        S before = S(1), after = dy[result];
        for (std::size_t r = 0; r < dims.reduced; ++r) {
            dx[run[r]] = before;
            before *= x[run[r]];
        }
        for (std::size_t r = dims.reduced; r-- > 0;) {
            dx[run[r]] *= after;
            after *= x[run[r]];
        }
    }
};

template <class S> struct ArgmaxBody {
    const S* x;
    std::int32_t* y;
    detail::ReduceDims dims;
    TALLY_HOST_DEVICE void operator()(std::size_t result) const {
        const RunOf run(dims, result);
        std::size_t best = 0;
        for (std::size_t r = 1; r < dims.reduced; ++r) {
            const S top = x[run[best]], next = x[run[r]];
            if (top == top && (next > top || next != next)) best = r;
        }
        y[result] = static_cast<std::int32_t>(best);
    }
};

template <class On, class S> void sum(const S* x, Into<S[]> y, const detail::ReduceDims& dims) {
    for_each_run<On>("sum", dims, SumBody<S, false>{x, y, dims, dims.inner != 1 || sums_in_order(dims)});
}

template <class On, class S> void mean(const S* x, S* y, const detail::ReduceDims& dims) {
    for_each_run<On>("mean", dims,
                     SumBody<S, true>{x, {y, Write::set}, dims, dims.inner != 1 || sums_in_order(dims)});
}

template <class On, class S>
void spread(const S* dy, S divisor, Into<S[]> dx, const detail::ReduceDims& dims) {
    On::each("spread", dims.outer * dims.reduced * dims.inner, SpreadBody<S>{dy, divisor, dx, dims});
}

template <class On, class S> void max(const S* x, S* y, const detail::ReduceDims& dims) {
    for_each_run<On>("max", dims, MaxBody<S>{x, y, dims});
}

template <class On, class S>
void max_back(const S* dy, const S* x, const S* y, Into<S[]> dx, const detail::ReduceDims& dims) {
    for_each_run<On>("max, backward", dims, MaxBackBody<S>{dy, x, y, dx, dims});
}

template <class On, class S>
void cumsum(const S* x, Into<S[]> y, const detail::ReduceDims& dims, bool from_the_end) {
    On::each("cumsum", dims.outer * dims.inner, CumsumBody<S>{x, y, dims, from_the_end});
}

template <class On, class S> void prod(const S* x, S* y, const detail::ReduceDims& dims) {
    On::each("prod", dims.outer * dims.inner, ProdBody<S>{x, y, dims});
}

template <class On, class S> void prod_back(const S* dy, const S* x, S* dx, const detail::ReduceDims& dims) {
    On::each("prod, backward", dims.outer * dims.inner, ProdBackBody<S>{dy, x, dx, dims});
}

template <class On, class S> void argmax(const S* x, std::int32_t* y, const detail::ReduceDims& dims) {
    On::each("argmax", dims.outer * dims.inner, ArgmaxBody<S>{x, y, dims});
}

template <class On, class S> void install_reduce(Kernels<S>& t) {
    t.sum = sum<On, S>;
    t.mean = mean<On, S>;
    t.spread = spread<On, S>;
    t.max = max<On, S>;
    t.max_back = max_back<On, S>;
    t.cumsum = cumsum<On, S>;
    t.prod = prod<On, S>;
    t.prod_back = prod_back<On, S>;
    t.argmax = argmax<On, S>;
}

}  // namespace tally::gpu
