// The answer and the check of exercise dropout-again.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
std::vector<double> mask(const Place& place, int items, double p) {
    std::vector<double> factors;
    for (int i = 0; i < items; ++i) {
        const auto item = static_cast<std::uint64_t>(place.first_item + i);
        factors.push_back(random(place.seed, place.layer, item) < p ? 0 : 1 / (1 - p));
    }
    return factors;
}
}  // namespace right

#include "24_dropout_again.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const Place& place, int items, double p) {
        look.with(where);
        std::vector<double> given;
        if (look.runs([&] { given = yours.mask(place, items, p); }))
            look.equal("mask", given, right::mask(place, items, p));
    };
    look_at("seed 1, layer 0, items 0 to 7, p = 0.25", {1, 0, 0}, 8, 0.25);
    look_at("the same arguments again, as in a checkpoint", {1, 0, 0}, 8, 0.25);
    look_at("the second half separately, items 4 to 7", {1, 0, 4}, 4, 0.25);
    look_at("another layer, items 0 to 7", {1, 3, 0}, 8, 0.25);
    look_at("another update, seed 2, items 0 to 7", {2, 0, 0}, 8, 0.25);
    look_at("p = 0, which drops no item", {1, 0, 0}, 4, 0);
    for (int draw = 0; draw < 3; ++draw)
        look_at("random seeds, layers and items",
                {static_cast<std::uint64_t>(look.whole(3, 99)), static_cast<std::uint64_t>(look.whole(1, 9)),
                 look.whole(1, 50)},
                16, look.uniform(0.3, 0.45));
}

const exercise::Add add({.title = "a dropout mask that can be recomputed",
                         .minutes = 5,
                         .lesson = "what-must-not-differ",
                         .hints = {"Can you draw the random number of item 5 without the random numbers "
                                   "of the items 0 to 4? Which arguments does random() need for item 5?",
                                   "The third argument of random() is wrong. Which number does the i-th item "
                                   "of this micro-batch have among all items of the update?",
                                   "Remove the static variable. The third argument of random() is the "
                                   "number of the micro-batch's first item plus i."},
                         .why = "A mask that depends only on seed, layer and item does not depend on earlier "
                                "calls, so a checkpoint can recompute the mask. And four micro-batches of 16 "
                                "items drop the same items as one batch of 64."},
                        examine, answers);

}  // namespace
