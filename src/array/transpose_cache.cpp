// Decides for which weights TransposeCache stores a transposed copy, and drops stale copies.
#include "tally/array/transpose_cache.hpp"

#include <algorithm>

#include "tally/array/axes.hpp"

namespace tally::detail {

namespace {

constexpr std::size_t max_used_rows = 12;  // more rows: the product takes so long that a copy gains nothing
constexpr std::size_t copy_at_use = 4;     // making a copy takes about as long as three uses save

template <class S> bool worth_keeping(const Array<S>& b, const Product& p) {
#if defined(__AVX512F__)
    if (p.m == 1) return false;  // for one row, reading a copy takes longer than transposing W in registers
#endif
    return p.m > 0 && p.m <= max_used_rows && b.size() >= 4096 && b.device() == Device::cpu &&
           !skip_compute && memory::detail::memory_class(b.storage()) == MemoryClass::parameter &&
           products() == Products::ordered && memory::detail::budget(Device::cpu) == 0;
}

// Returns the transpose of b, or an empty array if memory runs out.
template <class S> Array<S> transposed_copy(const Array<S>& b, const Product& p) {
    try {
        return transposed(b.reshaped({static_cast<std::int64_t>(p.n), static_cast<std::int64_t>(p.k)}));
    } catch (const OutOfMemory&) {
        return {};
    }
}

}  // namespace

template <class S> Array<S> transposed(const Array<S>& matrix) {
    const Axes order{1, 0};
    Array<S> made = Array<S>::empty(permuted(matrix.shape(), order), matrix.device());
    detail::kernels_for("transposed", matrix)
        .gather(permuted_index(matrix.shape(), order), matrix.data(), {made.raw(), Write::set});
    return made;
}

template <class S> const S* TransposeCache<S>::find_or_add(const Array<S>& b, const Product& p) {
    if (!worth_keeping(b, p)) return nullptr;
    std::erase_if(entries_, [](const Entry& each) {  // weights that were modified or freed
        return each.version != version_of(each.weight) ||
               memory::detail::ref_count(each.weight.storage()) == 1;
    });
    auto entry = std::ranges::find_if(entries_, [&](const Entry& each) {
        return each.weight.data() == b.data() && each.weight.size() == b.size() && each.rows == p.n;
    });
    if (entry == entries_.end()) entry = entries_.insert(entry, {b, version_of(b), p.n});
    if (++entry->uses == copy_at_use) entry->transposed_copy = transposed_copy(b, p);
    return entry->transposed_copy.data();
}

template <class S>
bool TransposeCache<S>::multiply(const Product& p, const Array<S>& a, const Array<S>& b, Into<S[]> c) {
    const Kernels<S>& kernel = kernels_for("matmul", a, b);  // it throws if an operand has no memory
    const S* const copy = find_or_add(b, p);
    if (copy) kernel.matmul({p.m, p.n, p.k, p.transpose_a, false}, a.data(), copy, c);
    return copy != nullptr;
}

template Array<float> transposed(const Array<float>&);
template Array<double> transposed(const Array<double>&);
template class TransposeCache<float>;
template class TransposeCache<double>;

}  // namespace tally::detail
