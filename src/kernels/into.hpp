// Into, the one idea: whoever computes a gradient is told where to put it, and whether to set or to add.
#pragma once

namespace tally {

// The value of `how` is the beta of a matrix product: dst = v + how * dst.
enum class Write { set = 0, add = 1 };

template <class T> struct Into {
    T& dst;
    Write how;
};

// The same over raw memory, as kernels receive it. With `set` the memory is uninitialised: a kernel
// must not read it and must write all of it.
template <class S> struct Into<S[]> {
    S* dst;
    Write how;
};

}  // namespace tally
