// Tests budgets, which simulate a device with little memory. Also tests that memory can fragment, that an
// error message states all sizes, and that an allocation frees cached blocks before it fails.
#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "memory_helpers.hpp"
#include "tally/memory/arena.hpp"
#include "tally/memory/memory.hpp"

using namespace tally;
using namespace tally::test;

TEST_CASE("budget: an allocation beyond it throws OutOfMemory with all sizes and a remedy") {
    const Budget budget(100 * MiB);
    CHECK(memory::report().budget == 100 * MiB);
    CHECK(memory::report().largest_free == 100 * MiB);
    memory::detail::Storage* most = allocate(60 * MiB + 200 * KiB);
    CHECK(memory::report().largest_free == 39 * MiB + 824 * KiB);
    CHECK(
        message_of_failed(45 * MiB) ==
        "[memory] out of memory on cpu: asked 45.0 MiB (47185920 bytes), budget 100.0 MiB, in use 60.2 MiB, "
        "cached 0 B, largest free block 39.8 MiB; use smaller micro-batches, checkpoint, or raise the "
        "budget");
    CHECK(memory::in_use() == most->bytes);  // the failed allocation is not counted
    memory::detail::Storage* rest = allocate(39 * MiB + 824 * KiB);
    CHECK(memory::report().largest_free == 0);
    CHECK_THROWS_AS(allocate(1), OutOfMemory);
    CHECK_THROWS_AS(allocate(std::numeric_limits<std::size_t>::max()), OutOfMemory);
    memory::detail::unref(rest);
    memory::detail::unref(most);
    memory::detail::Storage* all = allocate(100 * MiB);
    memory::detail::unref(all);
    CHECK(memory::in_use() == 0);
}

TEST_CASE("budget: fragmented memory cannot hold a larger block, and the Error says so") {
    const Budget budget(10 * MiB);
    std::vector<memory::detail::Storage*> blocks;
    for (int i = 0; i < 10; ++i) blocks.push_back(allocate(MiB));
    // At this point 5 MiB are free, but no two free blocks are adjacent.
    for (std::size_t i = 0; i < 10; i += 2) memory::detail::unref(blocks[i]);
    CHECK(memory::in_use() == 5 * MiB);
    CHECK(memory::report().largest_free == MiB);
    const std::string message = message_of_failed(2 * MiB);
    CHECK_THAT(message,
               contains("asked 2.0 MiB (2097152 bytes), budget 10.0 MiB, in use 5.0 MiB, cached 0 B, largest "
                        "free block 1.0 MiB; 5.0 MiB are free, but fragmented; "));
    memory::detail::unref(blocks[1]);  // this block merges with two free neighbours
    CHECK(memory::report().largest_free == 3 * MiB);
    memory::detail::Storage* joined = allocate(3 * MiB);
    CHECK(joined->data != nullptr);
    memory::detail::unref(joined);
    for (std::size_t i = 3; i < 10; i += 2) memory::detail::unref(blocks[i]);
    CHECK(memory::report().largest_free == 10 * MiB);
}

TEST_CASE("budget: includes cached blocks, and frees them before an allocation fails", "[alone]") {
    if (!caching) TALLY_SKIP("nothing is cached under AddressSanitizer");
    const Budget budget(8 * MiB);
    std::vector<memory::detail::Storage*> blocks;
    for (int i = 0; i < 8; ++i) blocks.push_back(allocate(MiB));
    for (memory::detail::Storage* block : blocks) memory::detail::unref(block);
    CHECK(memory::report().cached == 8 * MiB);
    CHECK(memory::report().largest_free == 8 * MiB);
    const memory::Report before = memory::report();
    memory::detail::Storage* whole =
        allocate(8 * MiB);  // fits only after the eight blocks are freed and merged
    CHECK(memory::report().cached == 0);
    CHECK(memory::report().reused == before.reused);
    memory::detail::unref(whole);
}

TEST_CASE("budget: a thread can use memory that another thread has freed") {
    const Budget budget(2 * MiB);
    for (int i = 0; i < 3; ++i) {
        std::thread([] { memory::detail::unref(allocate(2 * MiB)); }).join();
        memory::detail::Storage* here = allocate(MiB + 64);
        std::thread([here] { memory::detail::unref(here); }).join();
    }
    CHECK(memory::in_use() == 0);
}

TEST_CASE("set_budget: throws Error when the device is in use") {
    memory::detail::Storage* storage = allocate(1000);
    CHECK_THROWS_WITH(
        memory::set_budget(MiB),
        "[memory] cannot set a budget of 1048576 bytes on cpu while 1024 bytes are in use; free all arrays "
        "first");
    CHECK(memory::report().budget == 0);
    memory::detail::unref(storage);
    const Budget budget(MiB);
    storage = allocate(64);
    CHECK_THROWS_AS(memory::set_budget(0), Error);
    CHECK_THROWS_AS(memory::set_budget(2 * MiB), Error);
    memory::detail::unref(storage);
    memory::set_budget(2 * MiB);
    CHECK(memory::report().largest_free == 2 * MiB);
    CHECK_THROWS_AS(memory::set_budget(std::numeric_limits<std::size_t>::max()), OutOfMemory);
    CHECK(memory::report().budget == 2 * MiB);  // the old budget is kept
    memory::set_budget(100);                    // the budget is rounded down to a multiple of 64
    CHECK(memory::report().largest_free == 64);
    memory::set_budget(10);
    CHECK_THROWS_AS(allocate(1), OutOfMemory);
}

TEST_CASE("set_budget: throws Error when another thread has cached blocks", "[alone]") {
    if (!caching) TALLY_SKIP("nothing is cached under AddressSanitizer");
    std::atomic<int> stage{0};
    std::thread other([&] {
        memory::detail::unref(allocate(64));
        stage = 1;
        stage.notify_all();
        stage.wait(1);
    });
    stage.wait(0);
    CHECK_THROWS_WITH(memory::set_budget(MiB), contains("while 64 bytes are cached by other threads"));
    stage = 2;
    stage.notify_all();
    other.join();
    const Budget budget(MiB);
    CHECK(memory::report().budget == MiB);
}

TEST_CASE("Arena: takes the smallest sufficient gap and merges neighbours") {
    memory::Arena arena(1000);
    CHECK(arena.take(300) == 0u);
    CHECK(arena.take(100) == 300u);
    CHECK(arena.take(200) == 400u);
    CHECK(arena.take(50) == 600u);
    arena.give(0, 300);
    arena.give(400, 200);  // free gaps: 300 at 0, 200 at 400, 350 at 650
    CHECK(arena.take(190) == 400u);
    CHECK(arena.take(301) == 650u);
    CHECK_FALSE(arena.take(301));
    CHECK(arena.largest() == 300);
    CHECK(arena.free_bytes() == 359);
    arena.give(300, 100);  // fills the space between two free gaps
    CHECK(arena.largest() == 400);
    arena.give(400, 190);  // 0 to 600 is now one free gap
    CHECK(arena.largest() == 600);
    arena.give(650, 301);
    arena.give(600, 50);
    CHECK(arena.largest() == 1000);
    CHECK(arena.take(1000) == 0u);
}
