// Exercise 17, cut the chain: what is given.
#pragma once
#include "exercise.hpp"

// Layer i keeps kept[i] KiB for the way back. The chain is cut into segments; each but the last is a checkpoint: it
// keeps nothing but its input, and runs again, alone, when the way back comes to it. The last one keeps all of its layers.
//
// Returns the first layer of each segment but the first one: {3, 7} is layers 0 to 2, 3 to 6, and 7 to the end. No
// segment may keep more than `budget` KiB, and as few layers as possible shall run again.
std::vector<int> cuts(const std::vector<int>& kept, int budget);
HAND_IN(cuts);
