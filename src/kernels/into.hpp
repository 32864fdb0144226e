// Into is the destination of a result: the memory, and whether the result is set or added.
#pragma once

namespace tally {

// Each number is the beta of a matrix product: dst = v + how * dst.
enum class Write { set = 0, add = 1 };

template <class T> struct Into {
    T& dst;
    Write how;
};

// A destination in raw memory, for kernels. With `set` the memory is uninitialised: a kernel must not read it
// and must write all of it.
template <class S> struct Into<S[]> {
    S* dst;
    Write how;
};

}  // namespace tally
