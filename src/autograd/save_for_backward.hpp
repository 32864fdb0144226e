// save(x, y) and save_if(needed, x) name the values that an operation saves for its backward function.
#pragma once

#include <tuple>
#include <type_traits>

#include "tally/array/value.hpp"

namespace tally {

namespace detail {
// A SaveRequest stores a pointer, so that values are copied only if the operation becomes a node.
template <class T> struct SaveRequest {
    using saved = Saved<T>;
    const T* value;  // null if the value is not needed
    const void* address() const { return value; }
    // Returns the address of the value after the result was moved to `after_move`.
    template <class Result> const T* resolve(const Result* before_move, const Result* after_move) const {
        if constexpr (std::is_same_v<T, Result> && !Number<T>)  // a number is still valid after a move
            return value == before_move ? after_move : value;
        else
            return value;
    }
};
template <class T> inline const T unsaved_value{};
// Replaces a value that no gradient reads. `Slot` makes each placeholder a type of its own: a std::tuple stores
// empty elements without memory only if their types differ.
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

// save() saves values, which the backward function gets after dy. save_if() saves only if `needed` is true.
template <class... T> std::tuple<detail::SaveRequest<T>...> save(const T&... x) {
    return {detail::SaveRequest<T>{&x}...};
}
template <class T> detail::SaveRequest<T> save_if(bool needed, const T& value) {
    return {needed ? &value : nullptr};
}
// `EverNeeded` is false if no gradient reads `value`. `Slot` is the index of `value` among the saved values.
template <bool EverNeeded, int Slot, class T> auto save_if(bool needed, const T& value) {
    if constexpr (EverNeeded)
        return save_if(needed, value);
    else
        return detail::NothingSaved<T, Slot>();
}

}  // namespace tally
