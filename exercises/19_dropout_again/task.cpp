// Dropout inside a checkpoint.
//
// A checkpoint runs its layers a second time, and the second time must give what the first one gave. Dropout draws
// random numbers, and a generator that simply goes on draws others. The remedy: item i's random number is a function of the
// update's seed, of the layer and of the item's number in the window, and of nothing else. Then recomputing gives the
// same mask, and micro-batches have the masks of the full batch, however it is cut.
//
// Write that: factor 0 where random(seed, layer, item) < p, and otherwise 1 / (1 - p), so that the mean stays. The
// items of this micro-batch begin at place.first_item. What is written here remembers where it was.
#include "given.hpp"

std::vector<double> mask(const Place& place, int items, double p) {
    static std::uint64_t drawn = 0;
    std::vector<double> factors;
    for (int i = 0; i < items; ++i)
        factors.push_back(random(place.seed, place.layer, drawn++) < p ? 0 : 1 / (1 - p));
    return factors;
}
