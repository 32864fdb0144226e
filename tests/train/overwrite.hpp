// overwrite() writes to the memory of an array in place, like a kernel that a user may write.
#pragma once

#include "tally/array/array.hpp"
#include "tally/memory/memory.hpp"

namespace tally::test {

template <class T> void overwrite(const Array<T>& place, const Array<T>& numbers) {
    Array<T> same = place;
    memory::detail::raise_version(same.storage());
    detail::device_copy::bytes(same.raw(), same.device(), numbers.data(), numbers.device(),
                               same.size() * sizeof(T));
}

}  // namespace tally::test
