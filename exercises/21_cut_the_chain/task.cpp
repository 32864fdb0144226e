// Cut twelve unequal layers.
//
// Twelve layers keep 10 to 80 KiB each, and only 120 KiB may be kept at a time. So the chain is cut into segments. Each
// but the last is a checkpoint: on the way back it runs again, and keeps its layers only then. The last segment never
// runs again, since the way back begins there.
//
// Return where to cut. The ledger measures what your segments really keep, and a counter how many layers ran again.
// The fewer the better: which segment should be as long as it can be? (You may count on kept[i] <= budget.)
#include "given.hpp"

std::vector<int> cuts(const std::vector<int>& kept, int budget) {
    std::vector<int> first_layers;
    todo();
    return first_layers;
}
