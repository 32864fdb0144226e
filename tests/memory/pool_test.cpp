// Tests that the pool reuses freed blocks for requests of the same size class, also when a thread ends.
#include "tally/memory/pool.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "catch.hpp"

using namespace tally;

namespace {

struct Taken {
    unsigned char* memory;
    std::size_t bytes;
    unsigned char mark;

    bool intact() const {
        return std::all_of(memory, memory + bytes, [this](unsigned char byte) { return byte == mark; });
    }
};

// The destructor frees blocks after the pool's guard is destroyed. This order occurs if the thread makes its
// GivesLate object before its first call of pool::give().
struct GivesLate {
    std::vector<void*> blocks;
    ~GivesLate() {
        for (void* block : blocks) pool::give(block, 40);
        pool::give(pool::take(40), 40);
    }
};

}  // namespace

TEST_CASE("pool: the next request of the same size class gets the freed block", "[alone]") {
    if (!pool::enabled) TALLY_SKIP("the pool is off under AddressSanitizer");
    void* first = pool::take(33);
    pool::give(first, 33);
    void* other = pool::take(32);  // this size is in a smaller size class
    CHECK(other != first);
    CHECK(pool::take(48) == first);  // sizes from 33 to 48 bytes share a list
    pool::give(first, 48);
    pool::give(other, 32);
}

TEST_CASE("pool: blocks are aligned and disjoint, and keep their content") {
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 generator(seed);
    std::vector<Taken> held;
    for (int step = 0; step < 20000; ++step) {
        if (held.empty() || (held.size() < 500 && generator() % 2 == 0)) {
            const std::size_t bytes = generator() % 8 == 0 ? generator() % 3000 : generator() % 200;
            auto* memory = static_cast<unsigned char*>(pool::take(bytes));
            REQUIRE(reinterpret_cast<std::uintptr_t>(memory) % pool::granule == 0);
            const auto mark = static_cast<unsigned char>(generator());
            if (bytes > 0) std::memset(memory, mark, bytes);
            held.push_back({memory, bytes, mark});
        } else {
            std::swap(held[generator() % held.size()], held.back());
            REQUIRE(held.back().intact());
            pool::give(held.back().memory, held.back().bytes);
            held.pop_back();
        }
    }
    for (const Taken& block : held) pool::give(block.memory, block.bytes);
}

TEST_CASE("pool: blocks can be freed by another thread and after a thread's lists are destroyed") {
    std::vector<void*> from_here;
    for (int i = 0; i < 100; ++i) from_here.push_back(pool::take(40));
    std::thread([blocks = std::move(from_here)]() mutable {
        static thread_local GivesLate late;
        late.blocks = std::move(blocks);
        pool::give(pool::take(40), 40);  // constructs the pool's guard, which is destroyed before `late`
        pool::give(pool::take(640), 640);
    }).join();
    pool::drop();
    SUCCEED("a leak or a double free would end the program under AddressSanitizer or LeakSanitizer");
}
