// When memory runs out, `MicroBatchSize` halves the number of items per micro-batch and repeats the update.
//
//     MicroBatchSize size(256);
//     for (const Items& batch : split(Items::shuffled(count, seed, epoch), 256))
//         size.update(window, batch.count(), [&](std::int64_t most) {
//             for (const Items& micro : split(batch, most))
//                 window.add(loss(micro, window.begin_micro_batch(micro.count())));
//         });
#pragma once

#include <cstdint>
#include <functional>

#include "tally/train/window.hpp"

namespace tally {

// A `MicroBatchSize` stores the largest number of items in a micro-batch.
class MicroBatchSize {
public:
    explicit MicroBatchSize(std::int64_t begin, std::int64_t retries = 0);

    std::int64_t now() const { return size_; }
    std::int64_t retries() const { return retries_; }  // how many times memory has run out

    // Makes an update of `items` items. fill(most) adds the items to the `Window` in micro-batches of at most
    // `most` items, and update() then finishes the window. If memory runs out, update() discards the
    // micro-batches, frees new gradients and the cache, and calls fill() with half the size. Later updates
    // begin with the smaller size. If one item does not fit, the `Error` states the required memory.
    //
    // The window must be empty and have no planned number of micro-batches. Dropout masks depend on the
    // items, so fill() draws the same masks again. All other changes by fill() are repeated.
    template <class S> detail::WindowResult<S> update(Window<S>& window, std::int64_t items,
                                                      const std::function<void(std::int64_t)>& fill);

private:
    std::int64_t size_, retries_;
};

extern template detail::WindowResult<float> MicroBatchSize::update(Window<float>&, std::int64_t,
                                                                   const std::function<void(std::int64_t)>&);
extern template detail::WindowResult<double> MicroBatchSize::update(Window<double>&, std::int64_t,
                                                                    const std::function<void(std::int64_t)>&);

}  // namespace tally
