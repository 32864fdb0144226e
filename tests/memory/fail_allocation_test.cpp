// Tests that the n-th allocation of a buffer fails after memory::detail::fail_allocation(n), even if a cached
// buffer would suffice. The memory account stays correct.
#include <thread>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "memory_helpers.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/tensor.hpp"

using namespace tally;
using namespace tally::test;

TEST_CASE("fail_allocation: the n-th buffer fails, even when the cache has one") {
    memory::detail::unref(allocate(1000));  // this block goes to the cache
    for (const std::uint64_t n : {1u, 2u, 5u}) {
        const std::size_t in_use = memory::in_use();
        std::vector<memory::detail::Storage*> held;
        memory::detail::fail_allocation(n);
        for (std::uint64_t i = 1; i < n; ++i) held.push_back(allocate(1000));
        CHECK(message_of_failed(1000).find("[memory] out of memory on cpu: asked 1000 B") == 0);
        held.push_back(allocate(1000));  // the next allocation succeeds
        CHECK(memory::in_use() == in_use + n * 1024);
        for (memory::detail::Storage* storage : held) memory::detail::unref(storage);
        CHECK(memory::in_use() == in_use);
    }
    memory::detail::fail_allocation(1);
    memory::detail::unref(allocate(0));  // an empty buffer needs no memory
    // An allocation in a different thread does not fail.
    std::thread([] { memory::detail::unref(allocate(1000)); }).join();
    memory::detail::fail_allocation(0);
    memory::detail::unref(allocate(1000));
}

TEST_CASE("OutOfMemory: has the requested bytes and the bytes in use") {
    memory::detail::Storage* const here = allocate(64);
    const std::size_t in_use = memory::in_use();
    memory::detail::fail_allocation(1);
    try {
        allocate(4096);
        FAIL("it was served");
    } catch (const OutOfMemory& error) {
        CHECK(error.asked == 4096);
        CHECK(error.in_use == in_use);
        CHECK(error.device == Device::cpu);
    }
    memory::detail::unref(here);
}

TEST_CASE("fail_allocation: counts and classes stay correct while a failure is pending") {
    const auto rows = [](bool awaited) {
        if (awaited) memory::detail::fail_allocation(1000000);
        memory::reset_peak();
        std::vector<std::size_t> seen;
        const auto look = [&] {
            const memory::Report report = memory::report();
            for (std::size_t row = 0; row < memory::detail::memory_classes; ++row)
                seen.push_back(report.in_use_by[row]);
            seen.push_back(report.in_use);
            seen.push_back(report.peak);
            seen.push_back(report.allocations > 0);
        };
        const Tensor64 w = parameter(Array<double>::full({40, 40}, 0.5));
        look();
        {
            const Tensor64 y = mean(tanh(matmul(Tensor64(Array<double>::full({30, 40}, 0.25)), w)));
            look();
            y.backward();
            look();
        }
        look();
        memory::detail::fail_allocation(0);
        return seen;
    };
    CHECK(rows(false) == rows(true));
}
