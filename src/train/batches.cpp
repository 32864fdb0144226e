// Implements Items: makes ordered lists, divides them into parts, and copies rows of arrays.
#include "tally/train/batches.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "tally/base/error.hpp"
#include "tally/base/random.hpp"

namespace tally {
namespace {

constexpr std::uint64_t first_stream = std::uint64_t{0x73687566} << 32;  // "shuf"; each epoch has a stream

}  // namespace

Items::Items(std::int64_t from, std::int64_t to) : from_(from), to_(to) {
    if (from < 0 || to < from)
        throw Error("[items] from " + std::to_string(from) + " to " + std::to_string(to) +
                    " is not a range; give 0 <= from <= to");
}

Items::Items(std::vector<std::int32_t> numbers)
    : numbers_(std::make_shared<const std::vector<std::int32_t>>(std::move(numbers))),
      from_(0),
      to_(static_cast<std::int64_t>(numbers_->size())) {}

Items Items::part(std::int64_t from, std::int64_t to) const {
    if (from < 0 || to < from || to > count())
        throw Error("[items] " + std::to_string(from) + " to " + std::to_string(to) + " are not within " +
                    std::to_string(count()));
    Items part = *this;
    part.from_ = from_ + from;
    part.to_ = from_ + to;
    return part;
}

Items Items::shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
    if (count < 0 || epoch < 0)
        throw Error("[Items::shuffled] " + std::to_string(count) + " items in epoch " +
                    std::to_string(epoch) + ": neither may be negative");
    return Items(random::detail::permutation(static_cast<std::size_t>(count), seed,
                                             first_stream + static_cast<std::uint64_t>(epoch)));
}

std::vector<Items> split(const Items& items, std::int64_t size) {
    if (size < 1) throw Error("[split] a part cannot have " + std::to_string(size) + " items");
    std::vector<Items> parts;
    for (std::int64_t from = 0; from < items.count();) {
        const std::int64_t to = from + std::min(size, items.count() - from);
        parts.push_back(items.part(from, to));
        from = to;
    }
    return parts;
}

std::vector<Items> split(const Items& items, const std::vector<std::int64_t>& sizes) {
    std::vector<Items> parts;
    std::int64_t from = 0;
    for (const std::int64_t size : sizes) {
        if (size < 0) throw Error("[split] a part cannot have " + std::to_string(size) + " items");
        if (size > items.count() - from)
            throw Error("[split] after " + std::to_string(from) + " of " + std::to_string(items.count()) +
                        " items there are no " + std::to_string(size) + " more");
        parts.push_back(items.part(from, from + size));
        from += size;
    }
    if (from != items.count())
        throw Error("[split] the parts hold " + std::to_string(from) + " of " +
                    std::to_string(items.count()) + " items");
    return parts;
}

template <class S> Array<S> rows(const Array<S>& array, const Items& items) {
    if (items.plain()) return array.slice_rows(items[0], items[0] + items.count());
    if (array.shape().rank() == 0) throw Error("[rows] a single number has no rows");
    std::vector<std::int64_t> extents(array.shape().begin(), array.shape().end());
    const std::int64_t height = std::exchange(extents[0], items.count());
    const Shape shape{std::span<const std::int64_t>(extents)};
    Array<S> picked = Array<S>::empty(shape);
    if (picked.size() == 0) return picked;
    const std::span<const S> from = array.span();
    const std::size_t width = from.size() / static_cast<std::size_t>(std::max<std::int64_t>(height, 1));
    S* to = picked.raw();
    for (std::int64_t i = 0; i < items.count(); ++i, to += width) {
        if (items[i] < 0 || items[i] >= height)
            throw Error("[rows] row " + std::to_string(items[i]) + " is outside " + to_string(array.shape()));
        std::copy_n(from.data() + static_cast<std::size_t>(items[i]) * width, width, to);
    }
    return picked;
}

template Array<float> rows(const Array<float>&, const Items&);
template Array<double> rows(const Array<double>&, const Items&);
template Array<std::int32_t> rows(const Array<std::int32_t>&, const Items&);

}  // namespace tally
