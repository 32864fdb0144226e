// save(x, y) and save_if(needed, x) name the values that an operation saves for its backward function.
#pragma once

#include <tuple>
#include <type_traits>

#include "tally/array/value.hpp"

namespace tally {

namespace detail {
// A SaveRequest is a pointer, so that an operation that does not become a node copies nothing.
template <class T> struct SaveRequest {
    using saved = Saved<T>;
    const T* value;  // null if the value is not needed
    const void* address() const { return value; }
    // Returns the address to read from: the node moves its result, so a saved result has another address.
    template <class Result> const T* resolve(const Result* before_move, const Result* after_move) const {
        if constexpr (std::is_same_v<T, Result> && !Number<T>)  // a number is still valid after a move
            return value == before_move ? after_move : value;
        else
            return value;
    }
};
template <class T> inline const T unsaved_value{};
// For a value that is never read. `Slot` makes the types in a tuple distinct, so that they take no memory.
template <class T, int Slot> struct NothingSaved {
    struct saved {
        explicit saved(const T*) {}
        void drop() {}
        const T& get(const char*) const { return unsaved_value<T>; }
    };
    template <class Result> const T* resolve(const Result*, const Result*) const { return nullptr; }
    const void* address() const { return nullptr; }
};
}  // namespace detail

// Saves values for the backward function, which gets them after dy. save_if() saves x only if it is needed.
template <class... T> std::tuple<detail::SaveRequest<T>...> save(const T&... x) {
    return {detail::SaveRequest<T>{&x}...};
}
template <class T> detail::SaveRequest<T> save_if(bool needed, const T& value) {
    return {needed ? &value : nullptr};
}
// For elementwise.hpp: `EverNeeded` is false if no gradient reads `value`; `Slot` is its index in the tuple.
template <bool EverNeeded, int Slot, class T> auto save_if(bool needed, const T& value) {
    if constexpr (EverNeeded)
        return save_if(needed, value);
    else
        return detail::NothingSaved<T, Slot>();
}

}  // namespace tally
