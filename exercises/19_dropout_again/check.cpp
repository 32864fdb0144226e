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

#include "19_dropout_again.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const Place& place, int items, double p) {
        look.with(where);
        std::vector<double> given;
        if (look.runs([&] { given = yours.mask(place, items, p); }))
            look.equal("mask", given, right::mask(place, items, p));
    };
    look_at("seed 1, layer 0, items 0 to 7, p = 0.25", {1, 0, 0}, 8, 0.25);
    look_at("the same once more, as a checkpoint asks", {1, 0, 0}, 8, 0.25);
    look_at("its second half alone, items 4 to 7", {1, 0, 4}, 4, 0.25);
    look_at("another layer, items 0 to 7", {1, 3, 0}, 8, 0.25);
    look_at("another update, seed 2, items 0 to 7", {2, 0, 0}, 8, 0.25);
    look_at("p = 0, where nobody is dropped", {1, 0, 0}, 4, 0);
    for (int draw = 0; draw < 3; ++draw)
        look_at("random places",
                {static_cast<std::uint64_t>(look.whole(3, 99)), static_cast<std::uint64_t>(look.whole(1, 9)),
                 look.whole(1, 50)},
                16, look.uniform(0.3, 0.45));
}

const exercise::Add add(
    {.title = "a dropout mask that can be made again",
     .minutes = 5,
     .lesson = "dropout-masks",
     .hints = {"What would you have to know about item 5 to draw its number without drawing those of items 0 "
               "to 4?",
               "random() takes three things and forgets them again. Which number does the i-th item of this "
               "micro-batch have in the window?",
               "The third thing is place.first_item + i; the static variable goes."},
     .why =
         "A mask that is a function of (seed, layer, item) has no history. So a checkpoint can make it "
         "again, in any order, and four micro-batches of 16 drop what one batch of 64 drops, bit for bit."},
    examine, answers);

}  // namespace
