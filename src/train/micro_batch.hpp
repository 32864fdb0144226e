// How many items fit into memory at once: tried, and halved where they do not. The update is that of the
// whole window all the same.
//
//     MicroBatchSize size(256);
//     for (const Items& batch : split(shuffled(count, seed, epoch), 256))
//         size.update(window, batch.count(), [&](std::int64_t most) {
//             for (const Items& micro : split(batch, most))
//                 window.add(loss(micro, window.begin_micro_batch(micro.count())));
//         });
#pragma once

#include <cstdint>
#include <functional>

#include "tally/train/window.hpp"

namespace tally {

// How many items a micro-batch may have: halved where memory runs out.
class MicroBatchSize {
public:
    explicit MicroBatchSize(std::int64_t begin, std::int64_t retries = 0);

    std::int64_t now() const { return size_; }
    std::int64_t retries() const { return retries_; }  // how often memory has run out

    // An update of so many items: fill(most) adds them to the window, at most `most` at a time, and the
    // window is finished. Where memory runs out on the way nothing is left of the try: gradients are
    // untouched, their memory is given back unless it was there before, effects and counts are gone, and so
    // is what was cached; then the same window is filled anew with half the size, which stays. Where not even
    // one item fits, the Error tells what memory is fixed and what an item takes.
    //
    // The window must be empty and have no planned number of micro-batches. Masks belong to the items, so
    // they stay; whatever else fill() changes outside the window happens with every try.
    template <class S> UpdateResult<S> update(Window<S>& window, std::int64_t items,
                                              const std::function<void(std::int64_t)>& fill);

private:
    std::int64_t size_, retries_;
};

extern template UpdateResult<float> MicroBatchSize::update(Window<float>&, std::int64_t,
                                                           const std::function<void(std::int64_t)>&);
extern template UpdateResult<double> MicroBatchSize::update(Window<double>&, std::int64_t,
                                                            const std::function<void(std::int64_t)>&);

}  // namespace tally
