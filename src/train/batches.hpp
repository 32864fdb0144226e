// In which order the items of a data set are visited, and how that order is split into batches, and
// batches into micro-batches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tally/array/array.hpp"

namespace tally {

// Some items of a data set, by their numbers: those of an epoch, a batch or a micro-batch. Copies
// share the list.
class Items {
public:
    explicit Items(std::int64_t from, std::int64_t to);  // from, from + 1, ..., to - 1
    explicit Items(std::vector<std::int32_t> numbers);   // in this order

    std::int64_t count() const { return to_ - from_; }
    std::int64_t operator[](std::int64_t i) const {
        return numbers_ ? (*numbers_)[static_cast<std::size_t>(from_ + i)] : from_ + i;
    }
    bool plain() const { return numbers_ == nullptr; }     // neighbours in the data set, too
    Items part(std::int64_t from, std::int64_t to) const;  // the i-th for from <= i < to

private:
    std::shared_ptr<const std::vector<std::int32_t>> numbers_;  // none: an item's place is its number
    std::int64_t from_, to_;
};

// All items as they come, and all in an order that depends on the seed and the number of the epoch only.
Items in_order(std::int64_t count);
Items shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch);

// `size` at a time (the last part may be smaller), or in the sizes given.
std::vector<Items> split(const Items& items, std::int64_t size);
std::vector<Items> split(const Items& items, const std::vector<std::int64_t>& sizes);

// The rows of these items, one below the other. Plain items share the array's memory; others are copied,
// on the CPU.
template <class S> Array<S> rows(const Array<S>& array, const Items& items);

template <class T> void rows(const std::vector<T>&, const Items&) {
    static_assert(sizeof(T) == 0, "rows() wants an array: Array<std::int32_t>({count}, labels) of labels");
}

extern template Array<float> rows(const Array<float>&, const Items&);
extern template Array<double> rows(const Array<double>&, const Items&);
extern template Array<std::int32_t> rows(const Array<std::int32_t>&, const Items&);

}  // namespace tally
