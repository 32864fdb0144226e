// The syllabus.
#include "tally/lesson/runner/syllabus.hpp"

#include <algorithm>

namespace tally::lesson {

namespace {

const std::vector<Unit> units{
    {"one-number",
     15,
     {},
     "",
     "Backward is the chain rule with a pencil: one small step per operation, from the result to the "
     "inputs.",
     "Draw the graph, and find -30 on it.",
     "./learn graph one-number -o one-number.svg"},
    {"the-diamond",
     25,
     {"one-number"},
     "set-or-add",
     "A value that is used twice gets two gradients, and they add.",
     "Write the rule that sets or adds.",
     "./learn check set-or-add"},
    {"full-batch",
     20,
     {"the-diamond"},
     "",
     "The gradient of a batch is the mean of its items' gradients.",
     "Look at the same batch in float64.",
     "./learn run full-batch --dtype float64 --digits 8"},
    {"forgot-to-divide",
     20,
     {"full-batch"},
     "",
     "Micro-batches' means that are left to add up are N times too large, N being their number.",
     "See the factor with more digits.",
     "./learn run forgot-to-divide --dtype float64 --digits 8"},
    {"divide",
     20,
     {"forgot-to-divide"},
     "divide",
     "Divide each micro-loss by the number of micro-batches, all of one size, and the full batch's gradient "
     "is "
     "back.",
     "Look for the last bits in float64.",
     "./learn run divide --dtype float64 --digits 16"},
    {"unequal",
     25,
     {"divide"},
     "unequal",
     "Micro-batches of unequal sizes weigh b_k/B each; the mean of their means is another gradient.",
     "Write it for any sizes.",
     "./learn check unequal"},
    {"lost-batches",
     25,
     {"divide"},
     "",
     "Backward belongs to each micro-batch, at once: called later, it reaches only the last, or all of them "
     "in "
     "the memory of the full batch.",
     "Do it in float64, with more digits.",
     "./learn run lost-batches --dtype float64 --digits 8"},
    {"the-tail",
     25,
     {"unequal"},
     "the-tail",
     "An epoch's last window is not full: decide whether to drop, scale or carry what is left.",
     "Write the three policies.",
     "./learn check the-tail"},
    {"why-a-large-batch",
     20,
     {"full-batch"},
     "noise",
     "The gradient of b items is an estimate with variance sigma^2/b: b is the knob on the noise.",
     "Draw other items.",
     "./learn run why-a-large-batch --seed 7"},
    {"arrays",
     30,
     {"the-diamond"},
     "un-broadcast",
     "What was repeated on the way forward is summed on the way back; a product has two gradients.",
     "Write the mirror image of broadcasting.",
     "./learn check un-broadcast"},
    {"rounding",
     20,
     {"divide"},
     "sixteen-bits",
     "Equal is three things: the same mathematics, the same within a bound, the same bits.",
     "Count again in float64.",
     "./learn run rounding --dtype float64"},
    {"mean-sum-token",
     40,
     {"unequal"},
     "tokens",
     "Ask of every loss: a mean of what? Divide once, by the number of those things in the window.",
     "Write the mean over tokens.",
     "./learn check tokens"},
    {"once-per-update",
     30,
     {"divide"},
     "once-per-update",
     "Clip, decay, momentum, Adam's t, schedule and average: each once per window, after normalising.",
     "Write an update that does it in the right order.",
     "./learn check once-per-update"},
    {"adam-hides-it",
     25,
     {"forgot-to-divide"},
     "",
     "Adam cancels the size of a gradient, and with it hides a forgotten division.",
     "See with more digits what Adam does not cancel.",
     "./learn run adam-hides-it --digits 8"},
    {"when-it-lies",
     30,
     {"divide"},
     "two-passes",
     "Where items meet in the loss (batch norm, contrastive), micro-batches compute something else.",
     "Write the contrastive loss in two passes.",
     "./learn check two-passes"},
    {"fashion",
     20,
     {"rounding"},
     "",
     "A real epoch in batches of 64 and as 16 x 4 ends at the same weights.",
     "Let BLAS add in an order of its own.",
     "./learn run fashion --products blas"},
    {"wrapper-and-schedule",
     25,
     {"divide"},
     "",
     "A wrapper is as right as what it knows: mean or sum, how many items came, where an epoch ends.",
     "Do it in float64, with more digits.",
     "./learn run wrapper-and-schedule --dtype float64 --digits 8"},
    {"agn",
     25,
     {"divide"},
     "",
     "In accumulated gradient normalisation the weights move within the window; in plain accumulation they "
     "stand still.",
     "Compare the paths with more digits.",
     "./learn run agn --digits 8"},
    {"where-memory-goes",
     40,
     {"lost-batches"},
     "",
     "Memory is fixed + items x A; accumulation makes the second smaller, never the first.",
     "Let float64 double every byte.",
     "./learn run where-memory-goes --dtype float64"},
    {"checkpointing",
     40,
     {"where-memory-goes"},
     "two-segments",
     "Keep a few values and make the others again: fewer bytes, more layers run, the same bits.",
     "Write a checkpoint by hand, measured in bytes.",
     "./learn check two-segments"},
    {"the-best-schedule",
     30,
     {"checkpointing"},
     "revolve",
     "When only c values may be kept, the fewest re-runs are known: place snapshots by the binomial.",
     "Find the best place for the next snapshot.",
     "./learn check revolve"},
    {"on-the-gpu",
     25,
     {"fashion"},
     "",
     "On a GPU ordered products have the same bits, and the rest agrees within a bound; what changes is when "
     "the CPU waits, and what a launch costs.",
     "See it without a GPU.",
     "./learn run on-the-gpu --device pretend"},
};

}  // namespace

const std::vector<Unit>& syllabus() { return units; }

const Unit* unit_of(std::string_view slug) {
    const auto found =
        std::find_if(units.begin(), units.end(), [&](auto& unit) { return unit.slug == slug; });
    return found == units.end() ? nullptr : &*found;
}

const Unit* unit_with_task(std::string_view exercise) {
    const auto found =
        std::find_if(units.begin(), units.end(), [&](const auto& unit) { return unit.task == exercise; });
    return found == units.end() ? nullptr : &*found;
}

int place_of(std::string_view slug, int number) {
    const Unit* unit = unit_of(slug);
    return unit == nullptr ? static_cast<int>(units.size()) + number : static_cast<int>(unit - units.data());
}

}  // namespace tally::lesson
