// These functions compute row-major offsets, broadcast indices, and the groups of a reduction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "programs/program.hpp"

namespace programs {

using Index = std::vector<std::int64_t>;

inline void demand(bool fine, const char* what) {
    if (!fine) throw Invalid(what);
}

inline std::size_t axis_of(std::int64_t axis, const Extents& shape) {
    const auto rank = static_cast<std::int64_t>(shape.size());
    demand(axis >= -rank && axis < rank, "no such axis");
    return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

inline Index index_at(std::size_t place, const Extents& shape) {
    Index index(shape.size());
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        index[axis] = static_cast<std::int64_t>(place) % shape[axis];
        place /= static_cast<std::size_t>(shape[axis]);
    }
    return index;
}

inline std::size_t place_of(const Index& index, const Extents& shape) {
    std::size_t place = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
        place = place * static_cast<std::size_t>(shape[axis]) + static_cast<std::size_t>(index[axis]);
    return place;
}

inline Extents broadcast(const Extents& a, const Extents& b) {
    Extents out(std::max(a.size(), b.size()), 1);
    for (std::size_t i = 1; i <= out.size(); ++i) {
        const std::int64_t p = i <= a.size() ? a[a.size() - i] : 1, q = i <= b.size() ? b[b.size() - i] : 1;
        demand(p == q || p == 1 || q == 1, "shapes do not broadcast");
        out[out.size() - i] = p == 1 ? q : p;
    }
    return out;
}

// Converts an index of the broadcast result to the row-major offset in an array of `shape`.
inline std::size_t broadcast_place(const Index& index, const Extents& shape) {
    Index own(index.end() - static_cast<std::ptrdiff_t>(shape.size()), index.end());
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
        if (shape[axis] == 1) own[axis] = 0;
    return place_of(own, shape);
}

template <class T>
std::vector<T> spread(const std::vector<T>& values, const Extents& shape, const Extents& out) {
    if (shape == out) return values;
    std::vector<T> all(size_of(out));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = values[broadcast_place(index_at(i, out), shape)];
    return all;
}

// Returns one group of row-major offsets for each result of a reduction over the `reduced` axes.
inline std::vector<std::vector<std::size_t>> groups(const Extents& shape, const std::vector<bool>& reduced) {
    Extents rest;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
        if (!reduced[axis]) rest.push_back(shape[axis]);
    std::vector<std::vector<std::size_t>> all(size_of(rest));
    for (std::size_t i = 0; i < size_of(shape); ++i) {
        const Index index = index_at(i, shape);
        Index remains;
        for (std::size_t axis = 0; axis < shape.size(); ++axis)
            if (!reduced[axis]) remains.push_back(index[axis]);
        all[place_of(remains, rest)].push_back(i);
    }
    return all;
}

}  // namespace programs
