// This program tests the kernels on a GPU. The host waits after each launch, and can access the memory of the
// kernels.
#include <map>
#include <vector>

#include "tally/device/backend.hpp"
#include "tally/kernels/kernels.hpp"
#include "under_test.hpp"

namespace tally::test {

extern const bool is_on_gpu = true;

template <class S> const Kernels<S>& fast() {
    backend::wait_after_each_launch(true);
    return kernels<S>(Device::cuda);
}

namespace {

// Reuses blocks of memory, because freeing memory would make the GPU wait. This object is never destroyed.
struct Blocks {
    std::map<std::size_t, std::vector<void*>> spare;
    std::map<void*, std::size_t> size_of;
};
Blocks& blocks() {
    static Blocks& made = *new Blocks;
    return made;
}

}  // namespace

void* grab(std::size_t bytes) {
    std::vector<void*>& spare = blocks().spare[bytes];
    void* memory = nullptr;
    if (!spare.empty()) {
        memory = spare.back();
        spare.pop_back();
    } else {
        memory = backend::pinned_alloc(bytes);
        blocks().size_of[memory] = bytes;
    }
    return memory;
}

void give(void* memory) {
    if (memory != nullptr) blocks().spare[blocks().size_of[memory]].push_back(memory);
}

template const Kernels<float>& fast();
template const Kernels<double>& fast();

}  // namespace tally::test
