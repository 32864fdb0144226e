// When a weight is worth turning, and when what was turned is stale.
#include "tally/values/turned.hpp"

#include <algorithm>

#include "tally/values/axes.hpp"

namespace tally::detail {

namespace {

constexpr std::size_t min_size = 1 << 12;  // elements
constexpr std::size_t max_rows = 12;       // of more, turning is so small a part that a copy gains nothing

template <class S> bool worth_keeping(const Array<S>& b, const Product& product) {
    return product.m <= max_rows && b.size() >= min_size && b.device() == Device::cpu && !kernels_rest &&
           memory::held_as(b.storage()) == MemoryClass::parameter && products() == Products::ordered &&
           memory::budget(Device::cpu) == 0;
}

template <class S> Array<S> turned(const Array<S>& b, const Product& product) {
    const Shape as_it_lies{static_cast<std::int64_t>(product.n), static_cast<std::int64_t>(product.k)};
    Array<S> made = Array<S>::empty(b.shape());
    kernels<S>(Device::cpu).gather(permuted_walk(as_it_lies, {1, 0}), b.data(), {made.raw(), Write::set});
    return made;
}

}  // namespace

template <class S> const S* TurnedWeights<S>::of(const Array<S>& b, const Product& product) {
    if (!worth_keeping(b, product)) return nullptr;
    const auto kept = std::ranges::find_if(all_, [&](const Kept& each) {
        return each.weight.data() == b.data() && each.weight.size() == b.size();
    });
    if (kept == all_.end()) {
        all_.push_back({b, version_of(b), product.n});
        return nullptr;
    }
    if (kept->rows != product.n || kept->version != version_of(b)) {  // met for the first time, as it is now
        *kept = {b, version_of(b), product.n};
        return nullptr;
    }
    if (!kept->turned.storage()) try {
            kept->turned = turned(b, product);
        } catch (const OutOfMemory&) {
            return nullptr;
        }
    return kept->turned.data();
}

template class TurnedWeights<float>;
template class TurnedWeights<double>;

}  // namespace tally::detail
