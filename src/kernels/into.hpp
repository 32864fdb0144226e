// An Into describes the destination of a result, and says whether to set or to add the result.
#pragma once

namespace tally {

// As a number, `how` is the factor of the old value in dst = v + how * dst, like beta in BLAS.
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
