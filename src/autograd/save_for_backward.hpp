// Which values an operation's rule reads: save(x, y), or save_if(needed, x).
#pragma once

#include <tuple>
#include <type_traits>

#include "tally/array/value.hpp"

namespace tally {

namespace detail {
// The values a rule reads, in the order of its arguments. Nothing is copied before it is known that a node
// will be made.
template <class T> struct SaveRequest {
    using saved = Saved<T>;
    const T* value;  // null: not needed this time
    const void* address() const { return value; }
    template <class Result> const T* pick(const Result* before_move, const Result* after_move) const {
        if constexpr (std::is_same_v<T, Result> && !Number<T>)  // a number stays where it is moved from
            return value == before_move ? after_move : value;
        else
            return value;
    }
};
template <class T> inline const T nothing{};
template <class T, int Place> struct NothingSaved {  // takes no room in the node
    struct saved {
        explicit saved(const T*) {}
        void drop() {}
        const T& get(const char*) const { return nothing<T>; }
    };
    template <class Result> const T* pick(const Result*, const Result*) const { return nullptr; }
    const void* address() const { return nullptr; }
};
}  // namespace detail

// Values that a rule reads, in the order of its arguments after dy: save() keeps none, save_if only what is
// needed.
template <class... T> std::tuple<detail::SaveRequest<T>...> save(const T&... x) {
    return {detail::SaveRequest<T>{&x}...};
}
template <class T> detail::SaveRequest<T> save_if(bool needed, const T& value) {
    return {needed ? &value : nullptr};
}
template <bool Ever, int Place, class T> auto save_if(bool needed, const T& value) {
    if constexpr (Ever)
        return save_if(needed, value);
    else
        return detail::NothingSaved<T, Place>();
}

}  // namespace tally
