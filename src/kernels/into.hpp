// Into is the destination of a result: the memory, and whether the result is set or added.
#pragma once

namespace tally {

// The number of each name is the factor of the old value, like beta in BLAS: dst = v + how * dst.
enum class Write { set = 0, add = 1 };

template <class T> struct Into {
    T& dst;
    Write how;
};

// Kernels write to this destination in raw memory. With `set` the memory is uninitialised. A kernel must then
// read none of this memory and write all of it.
template <class S> struct Into<S[]> {
    S* dst;
    Write how;
};

}  // namespace tally
