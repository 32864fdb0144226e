// A reserve: what waits there, and what was kept from it, nobody else gets; and afterwards all is as it was.
#include "tally/memory/memory_reserve.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "catch.hpp"
#include "memory/memory_helpers.hpp"

namespace tally::test {

namespace {

constexpr std::size_t odd_size = 1337 * 64;  // asked for by nobody else

std::vector<Storage*> many() {
    std::vector<Storage*> all;
    for (int i = 0; i < 4; ++i) all.push_back(allocate(odd_size));
    return all;
}

void let_go(const std::vector<Storage*>& all) {
    for (Storage* storage : all) memory::forget(storage);
}

}  // namespace

TEST_CASE("Blocks of a reserve are found again in its next use and by nobody else") {
    memory::drop_cache();
    const auto in_use = [] { return memory::in_use(); };
    const std::size_t before = in_use(), cached = memory::report().cached;
    let_go(many());  // these four are the thread's own
    std::optional<memory::Reserve> reserve(Device::cpu);
    std::vector<void*> own;
    {
        const memory::Reserve::Use use(*reserve);
        CHECK(in_use() == before);
        const auto all = many();
        CHECK(use.fresh() == 4);
        for (Storage* storage : all) own.push_back(storage->data);
        CHECK(in_use() == before + 4 * odd_size);
        let_go(all);
        CHECK(in_use() == before);
        let_go(many());
        CHECK(use.fresh() == 4);
    }
    CHECK(in_use() == before + 4 * odd_size);
    const auto others = many();
    for (Storage* storage : others) CHECK(std::count(own.begin(), own.end(), storage->data) == 0);
    let_go(others);
    {
        const memory::Reserve::Use use(*reserve);
        const auto all = many();
        CHECK(use.fresh() == 0);
        for (Storage* storage : all) CHECK(std::count(own.begin(), own.end(), storage->data) == 1);
        let_go(all);
    }
    reserve.reset();
    CHECK(in_use() == before);
    if (caching) CHECK(memory::report().cached == cached + 8 * odd_size);
    memory::drop_cache();
}

TEST_CASE("What is held from a use is given to nobody before the reserve has gone") {
    memory::drop_cache();
    const std::size_t before = memory::in_use();
    std::optional<memory::Reserve> reserve(Device::cpu);
    Storage* kept = nullptr;
    {
        const memory::Reserve::Use use(*reserve, true);
        let_go(many());
        kept = allocate(odd_size);
        memory::reclassify(kept, MemoryClass::parameter);  // looks at the peaks meanwhile
        memory::reclassify(kept, MemoryClass::temporary);
        let_go({allocate(odd_size)});
    }
    const void* const place = kept->data;
    memory::forget(kept);
    const auto others = many();
    for (Storage* storage : others) CHECK(storage->data != place);
    let_go(others);
    reserve.reset();
    CHECK(memory::in_use() == before);
    memory::drop_cache();
    CHECK(memory::report().cached == 0);
}

TEST_CASE("A use leaves the cache's limit as it was") {
    memory::drop_cache();
    const std::size_t before = memory::report().cached;
    {
        Budget budget(1 * MiB);
        memory::Reserve reserve(Device::cpu);
        {
            const memory::Reserve::Use use(reserve);
            let_go({allocate(64 * KiB)});
            CHECK(memory::report().in_use == 0);
        }
        Storage* const all = allocate(900 * KiB);
        CHECK(message_of_failed(200 * KiB) != "no error");  // the reserve's 64 KiB are in use
        memory::forget(all);
        CHECK(memory::in_use() == 64 * KiB);
    }
    CHECK(memory::report().cached == before);
}

}  // namespace tally::test
