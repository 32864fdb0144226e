// Declares what exercise cut-the-chain provides.
#pragma once
#include "exercise.hpp"

// Layer i keeps kept[i] KiB for backward. The chain is cut into segments. Each but the last is a checkpoint:
// it keeps only its input, and runs again, alone, when backward reaches it. The last segment keeps all of its
// layers.
//
// Returns the first layer of each segment except the first one: {3, 7} means layers 0 to 2, 3 to 6, and 7 to
// the end. No segment may keep more than `budget` KiB, and as few layers as possible run twice.
std::vector<int> cuts(const std::vector<int>& kept, int budget);
HAND_IN(cuts);
