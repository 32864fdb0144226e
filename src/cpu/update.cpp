// Implements the optimizers. Each kernel updates all tensors of a list, one SIMD batch after another.
#include <array>
#include <cmath>

#include "tally/cpu/batch.hpp"
#include "tally/cpu/fast_families.hpp"

namespace tally::cpu {

namespace {

// Updates a batch of elements like update_element(). `load` and `store` access the elements.
template <class Step, class S, class Load, class Store>
void update_batch(const Step& step, const Update<S>& u, Load load, Store store) {
    const auto loaded = [&](const S* p, bool wanted) { return p && wanted ? load(p) : Batch<S>(S(0)); };
    const bool remembers = u.state == Write::add;
    Batch<S> value = loaded(u.value, true), first = loaded(u.first, remembers),
             second = loaded(u.second, remembers);
    step(u, value, loaded(u.gradient, true), first, second);
    if (u.value) store(value, u.value);
    if (u.first && u.gradient) store(first, u.first);
    if (u.second && u.gradient) store(second, u.second);
}

template <class Step, class S> void update(std::span<const Update<S>> list, const Step& given) {
    const Step step = given;  // a local copy, which stores cannot alias
    // The compiler inlines this twice. The copy for tensors without moments does not test pointers for each batch.
    const auto update_tensor = [&](const Update<S> u) __attribute__((always_inline)) {
        std::size_t i = 0;
        for (; i + lanes<S> <= u.size; i += lanes<S>)
            update_batch(
                step, u, [i](const S* p) { return Batch<S>::load_unaligned(p + i); },
                [i](Batch<S> v, S* p) { v.store_unaligned(p + i); });
        if (const std::size_t n = u.size - i; n > 0)
            update_batch(
                step, u, [i, n](const S* p) { return load_part(p + i, n); },
                [i, n](Batch<S> v, S* p) { store_part(v, p + i, n); });
    };
    // Starts with the last tensor, which is in the cache if measure() has just read the list.
    for (auto u = list.rbegin(); u != list.rend(); ++u)
        if (u->value && u->gradient && !u->first && !u->second)
            update_tensor({u->value, u->gradient, nullptr, nullptr, u->size, u->state});
        else
            update_tensor(*u);
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

template <class S> void measure(std::span<const Update<S>> list, bool squares, double* found) {
    found[0] = found[1] = 0;
    for (const Update<S>& u : list) {
        // Without `squares`, the sum is 0, or NaN if an element is not finite. This sum takes half the time.
        const double sum = squares ? sum_of<double>(u.gradient, u.size, [](double x) { return x * x; })
                                   : double{sum_of<S>(u.gradient, u.size, [](S x) { return x * 0; })};
        if (squares) found[0] += sum;
        if (std::isfinite(sum)) continue;  // then every element is finite
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
