// An Into contains the destination of a result, and says whether to set or to add the result.
#pragma once

namespace tally {

// As a number, `how` is the factor of the old value in dst = v + how * dst, like beta in BLAS.
enum class Write { set = 0, add = 1 };

template <class T> struct Into {
    T& dst;
    Write how;
};

// An Into<S[]> is a destination in raw memory. If `how` is `set`, the memory is uninitialised, and a kernel
// must write each element without reading the memory.
template <class S> struct Into<S[]> {
    S* dst;
    Write how;
};

}  // namespace tally
