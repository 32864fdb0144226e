// Into is the destination of a result: the memory, and whether the result is set or added.
#pragma once

namespace tally {

// Each number is the factor of the old value, as beta in BLAS: dst = v + how * dst.
enum class Write { set = 0, add = 1 };

template <class T> struct Into {
    T& dst;
    Write how;
};

// A destination in raw memory, for kernels. With `set` the memory is uninitialised. A kernel must not read
// this memory, and must write all of it.
template <class S> struct Into<S[]> {
    S* dst;
    Write how;
};

}  // namespace tally
