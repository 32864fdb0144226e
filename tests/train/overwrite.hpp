// overwrite() changes an array's memory in place, as a user's own kernel may do.
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
