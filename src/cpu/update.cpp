// Implements the optimizers. Each kernel updates all tensors of a list, one SIMD batch after another.
#include <array>
#include <atomic>
#include <cmath>

#include "tally/cpu/batch.hpp"
#include "tally/cpu/fast_families.hpp"
#include "tally/cpu/thread_pool.hpp"

namespace tally::cpu {

namespace {

// Updates a batch of elements like update_element(). `load` and `store` access the elements.
template <class Step, class S, class Load, class Store>
[[gnu::always_inline]] inline void update_batch(const Step& step, const Update<S>& u, Load load,
                                                Store store) {
    const auto loaded = [&](const S* p, bool wanted) { return p && wanted ? load(p) : Batch<S>(S(0)); };
    const bool remembers = u.state == Write::add;
    Batch<S> value = loaded(u.value, true), first = loaded(u.first, remembers),
             second = loaded(u.second, remembers);
    step(u, value, loaded(u.gradient, true), first, second);
    if (u.value) store(value, u.value);
    if (u.first && u.gradient) store(first, u.first);
    if (u.second && u.gradient) store(second, u.second);
}

// Updates the elements from i to end - 1. The compiler inlines this twice into update().
template <class Step, class S>
[[gnu::always_inline]] inline void update_range(const Step& given, const Update<S> u, std::size_t i,
                                                std::size_t end) {
    const Step step = given;  // a local copy, which stores cannot alias
    for (; i + lanes<S> <= end; i += lanes<S>)
        update_batch(
            step, u, [i](const S* p) { return Batch<S>::load_unaligned(p + i); },
            [i](Batch<S> v, S* p) { v.store_unaligned(p + i); });
    if (const std::size_t n = end - i; n > 0)
        update_batch(
            step, u, [i, n](const S* p) { return load_part(p + i, n); },
            [i, n](Batch<S> v, S* p) { store_part(v, p + i, n); });
}

// Calls body(first, count) for parts of a large tensor. All parts except the last consist of whole batches.
template <class Body> void parallel_for_elements(std::size_t size, const Body& body) {
    constexpr std::size_t least = 1 << 15;
    if (size < 2 * least) return body(0, size);  // several parts would be slower
    parallel_for_extent(size, 64, size, least, [&](auto first, auto count, auto&) { body(first, count); });
}

template <class Step, class S> void update(std::span<const Update<S>> list, const Step& step) {
    // Starts with the last tensor, which is in the cache if measure() has just read the list.
    for (auto u = list.rbegin(); u != list.rend(); ++u)
        parallel_for_elements(u->size, [&step, u](std::size_t first, std::size_t count) {
            // Without moments, the compiler removes the tests of pointers from the loop.
            if (u->value && u->gradient && !u->first && !u->second) {
                const Update<S> plain{u->value, u->gradient, nullptr, nullptr, u->size, u->state};
                update_range(step, plain, first, first + count);
            } else {
                update_range(step, *u, first, first + count);
            }
        });
}

// Sums f(x) over all elements x in 16 interleaved partial sums.
template <class Sum, class S, class F> Sum sum_of(const S* x, std::size_t n, F f) {
    constexpr std::size_t width = 16;
    std::array<Sum, width> lane{};
    std::size_t i = 0;
    for (; i + width <= n; i += width)
        for (std::size_t l = 0; l < width; ++l) lane[l] += f(static_cast<Sum>(x[i + l]));
    for (; i < n; ++i) lane[i % width] += f(static_cast<Sum>(x[i]));
    for (std::size_t half = width / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
    return lane[0];
}

// Sums v * 0 over the elements v of each part. A sum is NaN if an element is not finite, otherwise 0.
template <class S> bool all_finite(const S* x, std::size_t n) {
    std::atomic<bool> finite = true;
    parallel_for_elements(n, [&](std::size_t first, std::size_t count) {
        if (sum_of<S>(x + first, count, [](S v) { return v * 0; }) != 0) finite = false;
    });
    return finite;
}

template <class S> void measure(std::span<const Update<S>> list, bool squares, double* found) {
    found[0] = found[1] = 0;
    for (const Update<S>& u : list) {
        if (squares) {
            const double sum = sum_of<double>(u.gradient, u.size, [](double x) { return x * x; });
            found[0] += sum;
            if (std::isfinite(sum)) continue;  // then every element is finite
        } else if (all_finite(u.gradient, u.size)) {
            continue;
        }
        for (std::size_t i = 0; i < u.size; ++i) found[1] += std::isfinite(u.gradient[i]) ? 0 : 1;
    }
}

}  // namespace

template <class S> void install_update(Kernels<S>& t) {
    t.sgd = update<SgdStep<S>, S>;
    t.adam = update<AdamStep<S>, S>;
    t.average = update<AverageStep<S>, S>;
    t.limit = update<LimitStep<S>, S>;
    t.measure = measure<S>;
}

template void install_update(Kernels<float>&);
template void install_update(Kernels<double>&);

}  // namespace tally::cpu
