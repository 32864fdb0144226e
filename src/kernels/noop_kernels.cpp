// Defines tables of kernels that do nothing, for operations that are recorded but not computed.
#include "tally/kernels/dual.hpp"
#include "tally/kernels/kernel_slots.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::detail {

namespace {

// DoesNothing converts to any type of function pointer. The function does nothing.
template <std::size_t> struct DoesNothing {
    template <class... Arguments> using Function = void(Arguments...);
    template <class... Arguments> constexpr operator Function<Arguments...>*() const {
        return [](Arguments...) {};
    }
};

}  // namespace

template <class S> const Kernels<S>& noop_kernels() {
    static constexpr Kernels<S> noop = each_slot<S, DoesNothing>();
    return noop;
}

template const Kernels<float>& noop_kernels();
template const Kernels<double>& noop_kernels();
template const Kernels<Dual<double>>& noop_kernels();

}  // namespace tally::detail
