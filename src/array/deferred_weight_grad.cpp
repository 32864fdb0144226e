// Stores deferred rows of weight gradients, and adds the rows in the order in which they were deferred.
#include "tally/array/deferred_weight_grad.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <unordered_map>

namespace tally::detail {

namespace {

constexpr std::size_t max_rows = 16;  // of one gradient; a longer product saves no more time
constexpr std::size_t max_rows_per_call = 8;
constexpr std::size_t min_size = 1 << 12;  // of the gradient, in elements

template <class S> struct Pending {
    Array<S> a, b;
    std::size_t rows = 0;
};

// Stores the deferred rows of all threads, because a different thread may discard a filled Window.
template <class S> struct AllPending {
    std::mutex mutex;
    std::unordered_map<const std::uint8_t*, Pending<S>> by_flags;  // key: the address of the gradient's flags
};
template <class S> AllPending<S>& all_pending() {
    static auto* const all = new AllPending<S>;  // never destroyed: a static window may outlive it
    return *all;
}

template <class S> Pending<S>& pending_of(const std::uint8_t* grad_flags) {
    const std::scoped_lock lock(all_pending<S>().mutex);
    return all_pending<S>().by_flags.at(grad_flags);
}

template <class S> Array<S> new_row_buffer(std::size_t width) {
    return Array<S>::empty({static_cast<std::int64_t>(max_rows), static_cast<std::int64_t>(width)});
}

template <class S> void add_product(Pending<S>& pending, Array<S>& gradient) {
    const std::size_t m = pending.a.size() / max_rows, n = pending.b.size() / max_rows;
    kernels<S>(Device::cpu)
        .matmul({m, n, pending.rows, true, false}, pending.a.data(), pending.b.data(),
                {gradient.raw(), Write::add});
    pending.rows = 0;
}

template <class S> void erase(std::uint8_t& grad_flags) {  // the caller holds the mutex
    all_pending<S>().by_flags.erase(&grad_flags);
    __atomic_fetch_and(&grad_flags, static_cast<std::uint8_t>(~grad_flag::has_deferred), __ATOMIC_RELEASE);
}

// Returns null and defers nothing if a memory budget is set or memory runs out.
template <class S> Pending<S>* begin_deferring(const Product& p, std::uint8_t& grad_flags) {
    if (memory::detail::budget(Device::cpu) > 0) return nullptr;
    try {
        Pending<S> pending{new_row_buffer<S>(p.m), new_row_buffer<S>(p.n)};
        const std::scoped_lock lock(all_pending<S>().mutex);
        Pending<S>& added = all_pending<S>().by_flags.emplace(&grad_flags, std::move(pending)).first->second;
        grad_flags |= grad_flag::has_deferred;
        return &added;
    } catch (const OutOfMemory&) {
        return nullptr;
    }
}

}  // namespace

template <class S>
bool defer_product(const Product& p, const Array<S>& a, const Array<S>& b, const GradientRef<Array<S>>& to) {
    std::uint8_t& grad_flags = *to.grad_flags;
    if (!p.transpose_a || p.transpose_b || p.k > max_rows_per_call || p.m * p.n < min_size ||
        !(grad_flags & grad_flag::locked) || grad_flags & grad_flag::escaped || !to.is_present() ||
        a.device() != Device::cpu || skip_compute || products() != Products::ordered)
        return false;
    require_backward_allowed_and_mark_dirty(*to.value, grad_flags);
    Pending<S>* const pending = grad_flags & grad_flag::has_deferred ? &pending_of<S>(&grad_flags)
                                                                     : begin_deferring<S>(p, grad_flags);
    if (!pending) return false;
    if (pending->rows + p.k > max_rows) add_product(*pending, *to.gradient);
    std::copy_n(a.data(), p.k * p.m, pending->a.raw() + pending->rows * p.m);
    std::copy_n(b.data(), p.k * p.n, pending->b.raw() + pending->rows * p.n);
    pending->rows += p.k;
    return true;
}

template <std::floating_point S> void add_deferred(Array<S>& gradient, std::uint8_t& grad_flags) {
    const std::scoped_lock lock(all_pending<S>().mutex);
    const auto found = all_pending<S>().by_flags.find(&grad_flags);
    if (found == all_pending<S>().by_flags.end())
        return;  // another thread has flushed the rows at the same time
    add_product(found->second, gradient);
    erase<S>(grad_flags);
}

template <std::floating_point S> void discard_deferred(Array<S>&, std::uint8_t& grad_flags) {
    const std::scoped_lock lock(all_pending<S>().mutex);
    erase<S>(grad_flags);
}

#define TALLY_PENDING_PRODUCTS(S)                                                 \
    template bool defer_product(const Product&, const Array<S>&, const Array<S>&, \
                                const GradientRef<Array<S>>&);                    \
    template void add_deferred(Array<S>&, std::uint8_t&);                         \
    template void discard_deferred(Array<S>&, std::uint8_t&);
TALLY_PENDING_PRODUCTS(float)
TALLY_PENDING_PRODUCTS(double)

}  // namespace tally::detail
