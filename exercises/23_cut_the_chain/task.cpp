// Write a function that cuts a chain of unequal layers into segments.
//
// Layer i keeps kept[i] KiB for backward, but only `budget` KiB may be kept at a time, so you cut the chain into
// segments. Each segment except the last is a checkpoint: it runs a second time when backward reaches it, and keeps
// the results of its layers only then. The last segment runs once, because backward begins there.
//
// Return the first layer of each segment except the first segment, in ascending order: {3, 7} means the layers 0 to 2,
// 3 to 6, and 7 to the end. No segment may keep more than `budget` KiB. Choose the cuts so that as few layers as
// possible run twice. A single layer never keeps more than `budget` KiB.
//
// Example: for layers of 60, 60, 60, 60, 60 and 60 KiB and a budget of 120 KiB, the cuts are {2, 4}.
//
// The question: which segment should contain as many layers as possible?
//
// The check measures the KiB that your segments keep, and counts the layers that run twice.
//
// Given:
//     first_layers.push_back(3)                        // appends 3
//     first_layers.insert(first_layers.begin(), 3)     // puts 3 in front
#include "given.hpp"

std::vector<int> cuts(const std::vector<int>& kept, int budget) {
    std::vector<int> first_layers;
    todo();
    return first_layers;
}
