// Repair a dropout mask that differs when a checkpoint recomputes its layer.
//
// A checkpoint runs its layers twice, and both runs must give the same result. Return the dropout factors of
// `items` items: 0 where the item's random number is below p, and 1 / (1 - p) elsewhere, so that the mean
// output stays the same. Item i of an update must always get the same factor: in each call, and for each way
// to cut the update's items into micro-batches. The code below counts all random numbers since its first
// call, so a second run gets other factors.
//
// Example: items 4 to 7 of an update are the micro-batch with first_item 4. mask() must give them the same
// factors as in a micro-batch of the items 0 to 7. In another layer or another update, the same items get
// other random numbers.
//
// The question: on which three numbers may the factor of an item depend?
//
// Given:
//     struct Place {
//         std::uint64_t seed;        // of this update
//         std::uint64_t layer;
//         std::int64_t first_item;   // the number of the micro-batch's first item in the update
//     };
//     double random(std::uint64_t seed, std::uint64_t layer, std::uint64_t item);   // from 0 to 1
#include "given.hpp"

std::vector<double> mask(const Place& place, int items, double p) {
    static std::uint64_t drawn = 0;
    std::vector<double> factors;
    for (int i = 0; i < items; ++i)
        factors.push_back(random(place.seed, place.layer, drawn++) < p ? 0 : 1 / (1 - p));
    return factors;
}
