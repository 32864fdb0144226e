// An `Items` is an ordered list of items of a data set.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tally/array/array.hpp"

namespace tally {

// An `Items` stores the item numbers of an epoch, a batch or a micro-batch. Copies share one list.
class Items {
public:
    explicit Items(std::int64_t from, std::int64_t to);  // holds from, from + 1, ..., to - 1
    explicit Items(std::vector<std::int32_t> numbers);   // keeps the given order
    // in_order() keeps the order of the data set. The order of shuffled() depends only on seed and epoch.
    static Items in_order(std::int64_t count) { return Items(0, count); }
    static Items shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch);

    std::int64_t count() const { return to_ - from_; }
    std::int64_t operator[](std::int64_t i) const {
        return numbers_ ? (*numbers_)[static_cast<std::size_t>(from_ + i)] : from_ + i;
    }
    bool plain() const { return numbers_ == nullptr; }     // whether the numbers are consecutive
    Items part(std::int64_t from, std::int64_t to) const;  // the items at positions from <= i < to

private:
    std::shared_ptr<const std::vector<std::int32_t>> numbers_;  // null if item i is at position i
    std::int64_t from_, to_;
};

// Divides the items into parts of `size` items (the last part may be smaller), or into parts of given sizes.
std::vector<Items> split(const Items& items, std::int64_t size);
std::vector<Items> split(const Items& items, const std::vector<std::int64_t>& sizes);

// Returns the rows of `array` that belong to `items`. If the rows are consecutive, the result shares the
// memory of `array`. Rows that are not consecutive are copied on the CPU.
template <class S> Array<S> rows(const Array<S>& array, const Items& items);

template <class T> void rows(const std::vector<T>&, const Items&) {
    static_assert(sizeof(T) == 0, "rows() requires an array: Array<std::int32_t>({count}, labels) of labels");
}

extern template Array<float> rows(const Array<float>&, const Items&);
extern template Array<double> rows(const Array<double>&, const Items&);
extern template Array<std::int32_t> rows(const Array<std::int32_t>&, const Items&);

}  // namespace tally
