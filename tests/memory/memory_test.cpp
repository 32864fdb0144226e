// Tests the memory account, which stores bytes by class, peaks and budgets, also with several threads.
#include "tally/memory/memory.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "memory_helpers.hpp"
#include "tally/base/text.hpp"
#include "tally/device/backend.hpp"

using namespace tally;
using namespace tally::test;

namespace {

constexpr std::size_t row(MemoryClass memory_class) { return static_cast<std::size_t>(memory_class); }

}  // namespace

TEST_CASE("memory: a new buffer is aligned, rounded to 64 bytes, temporary and counted") {
    const std::size_t before = memory::in_use();
    for (const std::size_t bytes : {1u, 12u, 63u, 64u, 65u, 4096u, 65536u, 65537u, 1000000u}) {
        memory::detail::Storage* storage = allocate(bytes);
        CHECK(reinterpret_cast<std::uintptr_t>(storage->data) % 64 == 0);
        CHECK(storage->bytes == (bytes + 63) / 64 * 64);
        CHECK(memory::detail::ref_count(storage) == 1);
        CHECK(memory::detail::saved_count(storage) == 0);
        CHECK(storage->version == 0);
        CHECK(memory::detail::memory_class(storage) == MemoryClass::temporary);
        CHECK(storage->device == Device::cpu);
        CHECK(memory::in_use() == before + storage->bytes);
        std::memset(storage->data, 1, bytes);
        memory::detail::unref(storage);
        CHECK(memory::in_use() == before);
    }
}

TEST_CASE("memory: a reused buffer has fresh counts, version and class") {
    memory::detail::Storage* storage = allocate(100);
    storage->version = 7;
    memory::detail::ref(storage);
    memory::detail::ref_saved(storage);
    memory::detail::reclassify(storage, MemoryClass::gradient);
    CHECK(memory::detail::ref_count(storage) == 3);
    memory::detail::unref(storage);
    memory::detail::unref(storage);
    memory::detail::unref_saved(storage);
    storage = allocate(100);
    CHECK(memory::detail::ref_count(storage) == 1);
    CHECK(memory::detail::saved_count(storage) == 0);
    CHECK(storage->version == 0);
    CHECK(memory::detail::memory_class(storage) == MemoryClass::temporary);
    memory::detail::unref(storage);
}

TEST_CASE("memory: an empty buffer has no memory and is not counted") {
    const memory::Report before = memory::report();
    memory::detail::Storage* storage = allocate(0);
    CHECK(storage->bytes == 0);
    CHECK(storage->bytes == 0);
    memory::detail::reclassify(storage, MemoryClass::parameter);
    memory::detail::unref(storage);
    const memory::Report after = memory::report();
    CHECK(after.allocations == before.allocations);
    CHECK(after.reused == before.reused);
    CHECK(after.in_use == before.in_use);
    CHECK(after.cached == before.cached);
}

TEST_CASE("memory: bytes are counted by class, and move with the buffer from class to class") {
    const memory::Report before = memory::report();
    const auto held = [&](MemoryClass memory_class) {
        return memory::report().in_use_by[row(memory_class)] - before.in_use_by[row(memory_class)];
    };
    memory::detail::Storage* weights = allocate(640);
    memory::detail::Storage* value = allocate(128);
    memory::detail::reclassify(weights, MemoryClass::parameter);
    CHECK(held(MemoryClass::parameter) == 640);
    CHECK(held(MemoryClass::temporary) == 128);

    memory::detail::ref_saved(value);
    memory::detail::ref_saved(value);
    CHECK(held(MemoryClass::saved) == 128);
    CHECK(held(MemoryClass::temporary) == 0);
    memory::detail::unref_saved(value);
    CHECK(held(MemoryClass::saved) == 128);
    memory::detail::unref_saved(value);
    CHECK(held(MemoryClass::saved) == 0);
    CHECK(held(MemoryClass::temporary) == 128);

    memory::detail::ref_saved(weights);  // the buffer of a saved parameter stays in class `parameter`
    CHECK(held(MemoryClass::parameter) == 640);
    memory::detail::unref_saved(weights);
    CHECK(held(MemoryClass::parameter) == 640);

    memory::detail::ref_saved(value);
    memory::detail::unref(value);
    CHECK(held(MemoryClass::saved) == 128);  // only the saved value owns the buffer
    memory::detail::unref_saved(value);
    CHECK(held(MemoryClass::saved) == 0);  // the bytes are subtracted from the class `saved`
    memory::detail::unref(weights);
    CHECK(held(MemoryClass::parameter) == 0);
    CHECK(memory::in_use() == before.in_use);
}

TEST_CASE("memory: each byte is counted once when threads save and release while the class changes") {
    const memory::Report before = memory::report();
    memory::detail::Storage* const storage = allocate(128);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back([storage] {
            for (int i = 0; i < 20000; ++i) {
                memory::detail::ref_saved(storage);
                if (i % 3) memory::detail::ref_saved(storage);
                memory::detail::unref_saved(storage);
                if (i % 3) memory::detail::unref_saved(storage);
            }
        });
    for (int i = 0; i < 20000; ++i)
        memory::detail::reclassify(storage, i % 2 ? MemoryClass::temporary : MemoryClass::gradient);
    for (std::thread& thread : threads) thread.join();
    const auto held = [&](MemoryClass memory_class) {
        return memory::report().in_use_by[row(memory_class)] - before.in_use_by[row(memory_class)];
    };
    CHECK(memory::detail::memory_class(storage) == MemoryClass::temporary);
    CHECK(held(MemoryClass::temporary) == 128);
    CHECK(held(MemoryClass::saved) == 0);
    CHECK(held(MemoryClass::gradient) == 0);
    memory::detail::unref(storage);
    CHECK(memory::in_use() == before.in_use);
}

TEST_CASE("memory: the last of several threads frees a saved buffer") {
    const memory::Report before = memory::report();
    for (int round = 0; round < 200; ++round) {
        memory::detail::Storage* const storage = allocate(256);
        if (round % 2) memory::detail::reclassify(storage, MemoryClass::parameter);
        constexpr int count = 3;
        std::atomic<int> ready{0};
        std::vector<std::thread> threads;
        for (int thread = 0; thread < count; ++thread) {
            memory::detail::ref_saved(storage);
            threads.emplace_back([&ready, storage] {
                for (++ready; ready < count + 1;) std::this_thread::yield();
                memory::detail::unref_saved(storage);
            });
        }
        ++ready;
        memory::detail::unref(storage);
        for (std::thread& thread : threads) thread.join();
    }
    const memory::Report after = memory::report();
    CHECK(after.in_use == before.in_use);
    for (int memory_class = 0; memory_class < memory::detail::memory_classes; ++memory_class)
        CHECK(after.in_use_by[memory_class] == before.in_use_by[memory_class]);
}

TEST_CASE("memory: the peak is exact in total and by class") {
    const std::size_t before = memory::in_use();
    memory::reset_peak();
    CHECK(memory::peak() == before);
    memory::detail::Storage* a = allocate(64 * 10);
    memory::detail::Storage* b = allocate(64 * 5);
    memory::detail::unref(a);
    memory::detail::Storage* c = allocate(64 * 7);
    CHECK(memory::peak() == before + 64 * 15);
    memory::detail::reclassify(c, MemoryClass::gradient);
    CHECK(memory::peak() == before + 64 * 15);
    memory::detail::unref(c);
    const memory::Report now = memory::report();
    CHECK(now.in_use == before + 64 * 5);
    CHECK(now.peak == before + 64 * 15);
    CHECK(now.peak_by[row(MemoryClass::temporary)] - now.in_use_by[row(MemoryClass::temporary)] == 64 * 10);
    CHECK(now.peak_by[row(MemoryClass::gradient)] - now.in_use_by[row(MemoryClass::gradient)] == 64 * 7);
    memory::reset_peak();
    CHECK(memory::peak() == before + 64 * 5);
    memory::detail::Storage* d = allocate(64);
    CHECK(memory::peak() == before + 64 * 6);
    memory::detail::unref(b);
    memory::detail::unref(d);
}

TEST_CASE("memory: the peak covers all threads together") {
    constexpr std::size_t unit = 64 * KiB;
    const std::size_t before = memory::in_use();
    memory::detail::unref(allocate(unit * 100));
    memory::reset_peak();
    memory::detail::Storage* here = allocate(unit * 50);
    memory::detail::unref(here);
    here = allocate(unit);
    memory::detail::Storage* left_behind = nullptr;
    std::atomic<int> stage{0};
    std::thread other([&] {
        left_behind = allocate(unit * 40);
        stage = 1;
        stage.notify_all();
        stage.wait(1);
    });
    stage.wait(0);
    CHECK(memory::peak() == before + unit * 50);
    memory::detail::Storage* more = allocate(
        unit * 20);  // less than the peak of this thread, but the sum over all threads has a new peak
    CHECK(memory::peak() == before + unit * 61);
    stage = 2;
    stage.notify_all();
    other.join();
    memory::detail::Storage* alone = allocate(64);  // the buffers of the thread that has ended still count
    memory::detail::unref(alone);
    CHECK(memory::peak() == before + unit * 61 + 64);
    for (memory::detail::Storage* storage : {here, more, left_behind}) memory::detail::unref(storage);
    CHECK(memory::in_use() == before);
}

TEST_CASE("memory: the peak of a class covers all threads together") {
    const std::size_t before = memory::report().in_use_by[row(MemoryClass::parameter)];
    memory::reset_peak();
    memory::detail::Storage* first = allocate(10 * MiB);
    memory::detail::reclassify(first, MemoryClass::parameter);
    memory::detail::unref(first);
    memory::detail::Storage* here = allocate(6 * MiB);
    std::atomic<int> stage{0};
    std::thread other([&] {
        memory::detail::Storage* there = allocate(6 * MiB);
        memory::detail::unref(allocate(64));
        stage = 1;
        stage.notify_all();
        stage.wait(1);
        memory::detail::reclassify(there, MemoryClass::parameter);
        memory::detail::unref(there);
    });
    stage.wait(0);
    memory::detail::unref(allocate(64));
    memory::detail::reclassify(here, MemoryClass::parameter);
    stage = 2;
    stage.notify_all();
    other.join();
    memory::detail::unref(here);
    CHECK(memory::report().peak_by[row(MemoryClass::parameter)] == before + 12 * MiB);
}

TEST_CASE("memory: a thread that shrinks and grows again raises the peak of several threads") {
    // With `parameter`, the buffer that grows the class exists from the beginning.
    const bool parameter = GENERATE(false, true);
    const MemoryClass memory_class = parameter ? MemoryClass::parameter : MemoryClass::temporary;
    const auto allocate_in_class = [&](std::size_t bytes) {
        memory::detail::Storage* storage = allocate(bytes);
        memory::detail::reclassify(storage, memory_class);
        return storage;
    };
    const std::size_t before = memory::report().in_use_by[row(memory_class)];
    memory::reset_peak();
    memory::detail::unref(allocate_in_class(2000 * KiB));
    memory::detail::unref(allocate(900 * KiB));  // the cache keeps this buffer for `later`
    memory::detail::Storage* later = parameter ? allocate(900 * KiB) : nullptr;
    memory::detail::Storage* here = allocate_in_class(1000 * KiB);
    std::atomic<int> stage{0};
    const auto pass = [&](int to) {
        stage = to;
        stage.notify_all();
    };
    std::thread other([&] {
        memory::detail::unref(allocate(64));
        pass(1);
        stage.wait(1);
        memory::detail::Storage* there = allocate_in_class(1500 * KiB);
        pass(3);
        stage.wait(3);
        memory::detail::unref(there);
    });
    stage.wait(0);
    memory::detail::unref(allocate(64));
    memory::detail::unref(here);
    pass(2);
    stage.wait(2);
    if (parameter)
        memory::detail::reclassify(later, memory_class);
    else
        later = allocate(900 * KiB);
    memory::detail::unref(later);
    pass(4);
    other.join();
    CHECK(memory::report().peak_by[row(memory_class)] == before + 2400 * KiB);
}

TEST_CASE("memory: the peak is exact again after the other thread has ended") {
    const std::size_t before = memory::in_use();
    memory::reset_peak();
    memory::detail::unref(allocate(100 * KiB));
    memory::detail::unref(allocate(50 * KiB));  // the cache keeps this buffer for the last allocation
    memory::detail::Storage* left_behind = nullptr;
    std::atomic<int> stage{0};
    std::thread other([&] {
        memory::detail::unref(allocate(64));
        stage = 1;
        stage.notify_all();
        stage.wait(1);
        left_behind = allocate(60 * KiB);
    });
    stage.wait(0);
    memory::detail::unref(allocate(64));
    stage = 2;
    stage.notify_all();
    other.join();
    memory::detail::unref(allocate(50 * KiB));
    CHECK(memory::peak() == before + 110 * KiB);
    memory::detail::unref(left_behind);
}

TEST_CASE("memory: a thread takes room below the peak from a thread that does not use it") {
    const std::size_t before = memory::in_use();
    memory::reset_peak();
    std::atomic<int> stage{0};
    const auto pass = [&](int to) {
        stage = to;
        stage.notify_all();
    };
    std::thread other([&] {
        memory::detail::unref(allocate(64));
        pass(1);
        stage.wait(1);
        memory::detail::Storage* there = allocate(300 * KiB);
        pass(3);
        stage.wait(3);
        memory::detail::unref(there);
    });
    stage.wait(0);
    memory::detail::unref(allocate(300 * KiB));  // the cache keeps this buffer for the last allocation
    memory::detail::unref(allocate(400 * KiB));
    pass(2);
    stage.wait(2);
    memory::detail::unref(allocate(300 * KiB));
    pass(4);
    other.join();
    CHECK(memory::peak() == before + 600 * KiB);
}

TEST_CASE("memory: the peak of several threads misses at most 64 KiB per thread") {
    // The threads take turns, so that the true peaks are known.
    constexpr std::size_t threads = 3, steps_of_a_turn = 5;
    const std::uint32_t seed = GENERATE(range(1u, 13u));
    CAPTURE(seed);
    const std::size_t largest = std::array{20 * KiB, 200 * KiB, 2000 * KiB}[seed % 3];
    const std::size_t turns = seed % 3 == 2 ? 1000 : 4000;
    const memory::Report before = memory::report();
    std::array<std::size_t, 4> held{}, true_peak{};
    std::size_t all = 0, true_peak_of_all = 0;
    const auto count = [&](const memory::detail::Storage* storage, bool added) {
        std::size_t& sum = held[row(memory::detail::memory_class(storage))];
        sum = added ? sum + storage->bytes : sum - storage->bytes;
        all = added ? all + storage->bytes : all - storage->bytes;
    };
    std::vector<memory::detail::Storage*> buffers;  // each thread also frees the buffers of other threads
    std::mt19937 random(seed);
    const auto step = [&] {
        const std::size_t which = buffers.empty() ? 0 : random() % buffers.size();
        switch (buffers.size() < 8 ? 0 : random() % 4) {
            case 0:
            case 1:
                buffers.push_back(allocate(1 + random() % largest));
                count(buffers.back(), true);
                break;
            case 2:
                count(buffers[which], false);
                memory::detail::reclassify(buffers[which],
                                           std::array{MemoryClass::parameter, MemoryClass::gradient,
                                                      MemoryClass::temporary}[random() % 3]);
                count(buffers[which], true);
                break;
            default:
                for (std::size_t i = random() % buffers.size() / 2 + 1; i > 0; --i) {
                    count(buffers.back(), false);
                    memory::detail::unref(buffers.back());
                    buffers.pop_back();
                }
        }
        true_peak_of_all = std::max(true_peak_of_all, all);
        for (std::size_t i = 0; i < held.size(); ++i) true_peak[i] = std::max(true_peak[i], held[i]);
    };
    std::atomic<std::size_t> turn{0};
    std::vector<std::thread> running;
    memory::reset_peak();
    for (std::size_t t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            for (std::size_t now = turn; now < turns; now = turn) {
                if (now % threads != t) {
                    turn.wait(now);
                    continue;
                }
                for (std::size_t i = 0; i < steps_of_a_turn; ++i) step();
                turn = now + 1;
                turn.notify_all();
            }
        });
    for (std::thread& thread : running) thread.join();
    for (memory::detail::Storage* storage : buffers) memory::detail::unref(storage);
    const memory::Report after = memory::report();
    CHECK(after.in_use == before.in_use);
    CHECK(after.peak <= before.in_use + true_peak_of_all);
    CHECK(after.peak + threads * 64 * KiB >= before.in_use + true_peak_of_all);
    for (std::size_t i = 0; i < held.size(); ++i) {
        CAPTURE(i);
        CHECK(after.peak_by[i] <= before.in_use_by[i] + true_peak[i]);
        CHECK(after.peak_by[i] + threads * 64 * KiB >= before.in_use_by[i] + true_peak[i]);
    }
}

TEST_CASE("memory: a thread that ends and empties its cache raises no peak") {
    const std::size_t before = memory::in_use();
    memory::reset_peak();
    std::atomic<bool> stop{false};
    std::thread busy([&] {
        while (!stop) memory::detail::unref(allocate(64));
    });
    constexpr std::size_t large = 4 << 20;
    for (int round = 0; round < 200; ++round)
        std::thread([] {
            memory::detail::unref(allocate(large));
            memory::detail::unref(allocate(large - 64));
        }).join();
    stop = true;
    busy.join();
    CHECK(memory::peak() <= before + large + 64);
}

TEST_CASE("memory: buffers are reused and the reuse is counted", "[alone]") {
    if (!caching) TALLY_SKIP("nothing is cached under AddressSanitizer");
    for (const std::size_t bytes : {std::size_t{100}, 3 * MiB}) {
        memory::drop_cache();
        CHECK(memory::report().cached == 0);
        const memory::Report before = memory::report();
        memory::detail::Storage* first = allocate(bytes);
        void* const data = first->data;
        const std::size_t rounded = first->bytes;
        memory::detail::unref(first);
        CHECK(memory::report().cached == rounded);
        CHECK(allocate(bytes) == first);
        CHECK(first->data == data);
        CHECK(memory::report().cached == 0);
        memory::detail::Storage* other = allocate(bytes - 64);  // a different size needs a different buffer
        CHECK(other->data != data);
        CHECK(memory::report().allocations - before.allocations == 3);
        CHECK(memory::report().reused - before.reused == 1);
        memory::detail::unref(first);
        memory::detail::unref(other);
        memory::drop_cache();
        CHECK(memory::report().cached == 0);
    }
}

TEST_CASE("memory: the cache does not exceed the peak when sizes keep changing") {
    memory::drop_cache();
    memory::reset_peak();
    for (std::size_t i = 0; i < 400; ++i) {
        memory::detail::unref(allocate(MiB + 64 * i));
        REQUIRE(memory::report().cached <= std::max(64 * MiB, memory::peak()));
    }
    memory::drop_cache();
}

TEST_CASE("set_poison: new and reused buffers contain NaN") {
    const Poison poison;
    for (const std::size_t bytes : {60u, 100000u}) {
        for (int round = 0; round < 2; ++round) {
            memory::detail::Storage* storage = allocate(bytes);
            const auto* data = static_cast<unsigned char*>(storage->data);
            CHECK(std::all_of(data, data + bytes, [](unsigned char byte) { return byte == 0xFF; }));
            std::memset(storage->data, 0, bytes);
            memory::detail::unref(storage);
        }
    }
}

TEST_CASE("memory: an impossible request throws OutOfMemory and changes no count") {
    const memory::Report before = memory::report();
    for (const std::size_t bytes :
         {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() - 63,
          std::size_t{1} << 63, std::size_t{1} << 62}) {
        const std::string message = message_of_failed(bytes);
        CHECK_THAT(message, contains("[memory] out of memory on cpu: asked "));
        CHECK_THAT(message, contains("(" + std::to_string(bytes) + " bytes), no budget, in use "));
    }
    const memory::Report after = memory::report();
    CHECK(after.in_use == before.in_use);
    CHECK(after.allocations == before.allocations);
}

TEST_CASE("memory: an unavailable device throws Error", "[alone]") {
    if (available(Device::cuda)) TALLY_SKIP("there is a CUDA device");
    const std::string words = "[memory] " + backend::unavailable_reason();
    CHECK_THROWS_WITH(memory::detail::allocate(64, Device::cuda), words);
    CHECK_THROWS_WITH(memory::detail::allocate(0, Device::cuda), words);
    CHECK_THROWS_WITH(memory::set_budget(MiB, Device::cuda), words);
    CHECK(memory::report(Device::cuda).in_use == 0);
}

TEST_CASE("memory: counts agree with a simple model over random sequences") {
    const unsigned seed = std::random_device{}();
    const std::size_t budget_bytes = GENERATE(std::size_t{0}, 256 * KiB);
    INFO("seed " << seed << ", budget " << budget_bytes);
    const Budget budget(budget_bytes);
    std::mt19937 generator(seed);
    struct Held {
        memory::detail::Storage* storage;
        std::size_t asked;
        unsigned char mark;
    };
    std::vector<Held> held;
    const memory::Report start = memory::report();
    memory::reset_peak();
    std::array<std::size_t, memory::detail::memory_classes> by{};
    std::array<std::size_t, memory::detail::memory_classes> peak_by{};
    for (std::size_t i = 0; i < by.size(); ++i) by[i] = peak_by[i] = start.in_use_by[i];
    std::size_t total = start.in_use, peak = total;
    std::uint64_t allocations = start.allocations;
    std::size_t failures = 0;
    const auto count = [&](MemoryClass memory_class, std::size_t bytes, bool plus) {
        std::size_t& here = by[row(memory_class)];
        here = plus ? here + bytes : here - bytes;
        total = plus ? total + bytes : total - bytes;
        peak_by[row(memory_class)] = std::max(peak_by[row(memory_class)], here);
    };
    for (int step = 0; step < 20000; ++step) {
        const unsigned what = generator() % 8;
        if (held.empty() || what < 4) {
            const std::size_t bytes = generator() % (generator() % 16 == 0 ? 200000u : 3000u);
            try {
                const auto mark = static_cast<unsigned char>(generator());
                held.push_back({allocate(bytes), bytes, mark});
                if (bytes > 0) std::memset(held.back().storage->data, mark, bytes);
                count(MemoryClass::temporary, (bytes + 63) / 64 * 64, true);
                peak = std::max(peak, total);
                allocations += bytes > 0;
            } catch (const OutOfMemory&) {
                REQUIRE(budget_bytes > 0);
                REQUIRE(memory::report().largest_free < bytes);
                ++failures;
            }
        }
        if (held.empty()) continue;
        std::swap(held[generator() % held.size()], held.back());
        memory::detail::Storage* storage = held.back().storage;
        if (what == 4 || what == 5) {
            const auto next = std::array{MemoryClass::parameter, MemoryClass::gradient,
                                         MemoryClass::temporary}[generator() % 3];
            count(memory::detail::memory_class(storage), storage->bytes, false);
            count(next, storage->bytes, true);
            memory::detail::reclassify(storage, next);
        } else if (what > 5 || held.size() > 300) {
            const auto* data = static_cast<const unsigned char*>(storage->data);
            REQUIRE(std::all_of(data, data + held.back().asked,
                                [&](unsigned char byte) { return byte == held.back().mark; }));
            count(memory::detail::memory_class(storage), storage->bytes, false);
            memory::detail::unref(storage);
            held.pop_back();
        }
        if (step % 100 == 0) {
            const memory::Report now = memory::report();
            REQUIRE(now.in_use == total);
            REQUIRE(now.peak == peak);
            REQUIRE(now.allocations == allocations);
            REQUIRE(std::equal(by.begin(), by.end(), now.in_use_by));
            REQUIRE(std::equal(peak_by.begin(), peak_by.end(), now.peak_by));
            if (budget_bytes > 0) REQUIRE(now.in_use + now.cached <= budget_bytes);
        }
    }
    if (budget_bytes > 0) CHECK(failures > 0);
    for (const Held& each : held) memory::detail::unref(each.storage);
    CHECK(memory::in_use() == start.in_use);
    if (budget_bytes > 0) CHECK(memory::report().largest_free == budget_bytes);
}

TEST_CASE("memory: counts stay correct when several threads allocate and other threads free") {
    const std::size_t budget_bytes = GENERATE(std::size_t{0}, 16 * MiB);
    const Budget budget(budget_bytes);
    const memory::Report before = memory::report();
    memory::reset_peak();
    constexpr std::size_t threads = 4, rounds = 3000, kept = 50;
    std::array<std::vector<memory::detail::Storage*>, threads> leftovers;
    const auto release = [](memory::detail::Storage* storage) {  // frees the array, and then the saved value
        memory::detail::unref(storage);
        memory::detail::unref_saved(storage);
    };
    std::vector<std::thread> running;
    for (std::size_t t = 0; t < threads; ++t) {
        running.emplace_back([&, t] {
            for (std::size_t i = 0; i < rounds; ++i) {
                memory::detail::Storage* storage = allocate(64 + 64 * (i % 7));
                memory::detail::ref_saved(storage);
                if (i % 3 == 0) memory::detail::reclassify(storage, MemoryClass::gradient);
                if (i < kept)
                    leftovers[t].push_back(storage);
                else
                    release(storage);
            }
        });
    }
    for (std::thread& thread : running) thread.join();
    std::size_t left = 0;
    for (const auto& list : leftovers)
        for (const memory::detail::Storage* storage : list) left += storage->bytes;
    const memory::Report after = memory::report();
    CHECK(after.in_use == before.in_use + left);
    CHECK(after.peak >= after.in_use);
    CHECK(after.peak <= before.in_use + left + threads * 7 * 64);
    CHECK(after.allocations == before.allocations + threads * rounds);
    if (budget_bytes == 0) CHECK(after.cached <= before.cached);  // ended threads have emptied their caches
    std::thread([&] {
        for (const auto& list : leftovers)
            for (memory::detail::Storage* storage : list) release(storage);
    }).join();
    CHECK(memory::in_use() == before.in_use);
    CHECK(memory::report().in_use_by[row(MemoryClass::gradient)] ==
          before.in_use_by[row(MemoryClass::gradient)]);
}

TEST_CASE("memory: the consumer's cache stays bounded when another thread produces the buffers") {
    for (int i = 0; i < 40; ++i) {
        std::vector<memory::detail::Storage*> made;
        std::thread([&made] {
            for (int k = 0; k < 4; ++k) made.push_back(allocate(MiB));
        }).join();
        for (memory::detail::Storage* storage : made) memory::detail::unref(storage);
        REQUIRE(memory::report().cached <= std::max(64 * MiB, memory::peak()));
    }
    memory::drop_cache();
}

namespace {

struct LastArray {
    memory::detail::Storage* storage = nullptr;
    ~LastArray() {
        if (storage != nullptr) memory::detail::unref(storage);
        memory::detail::unref(allocate(64));
    }
};
LastArray at_exit;  // is destroyed after the lists of the main thread

}  // namespace

TEST_CASE("memory: buffers can be freed and allocated after the thread's lists are destroyed") {
    const std::size_t before = memory::in_use();
    std::thread([] {
        // `last` is constructed before the thread's lists, so `last` is destroyed after the lists.
        static thread_local LastArray last;
        last.storage = allocate(640);
    }).join();
    CHECK(memory::in_use() == before);
}

TEST_CASE("format_bytes, to_string: format sizes and the report's table") {
    CHECK(detail::format_bytes(0) == "0 B");
    CHECK(detail::format_bytes(1023) == "1023 B");
    CHECK(detail::format_bytes(1024) == "1.0 KiB");
    CHECK(detail::format_bytes(1536) == "1.5 KiB");
    CHECK(detail::format_bytes(MiB - 1) == "1.0 MiB");
    CHECK(detail::format_bytes(45 * MiB) == "45.0 MiB");
    CHECK(detail::format_bytes(std::numeric_limits<std::size_t>::max()) == "16.0 EiB");

    memory::Report report;
    report.in_use = 2048;
    report.peak = 4096;
    report.in_use_by[row(MemoryClass::parameter)] = 2048;
    report.peak_by[row(MemoryClass::parameter)] = 2048;
    report.peak_by[row(MemoryClass::saved)] = 2048;
    report.cached = 64;
    report.allocations = 12;
    report.reused = 10;
    CHECK(to_string(report) ==
          "                in use        peak\n"
          "parameters     2.0 KiB     2.0 KiB\n"
          "gradients          0 B         0 B\n"
          "saved              0 B     2.0 KiB\n"
          "temporary          0 B         0 B\n"
          "together       2.0 KiB     4.0 KiB\n"
          "cached 64 B, no budget; 12 allocations, 10 of them reused\n");
    report.budget = MiB;
    report.largest_free = 512 * KiB;
    CHECK_THAT(to_string(report), contains("budget 1.0 MiB (largest free block 512.0 KiB); 12 allocations"));
}
