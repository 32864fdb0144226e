// Tests invariant 9. All tensors are in memory of tally's allocator, and a training step allocates no new
// memory after the first steps. Also tests that the allocator loses no memory if the host has no memory left.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <utility>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "memory/memory_helpers.hpp"
#include "own_new.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/layer_norm.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/sgd_step.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/memory/arena.hpp"

namespace {

// Counts the host allocations of the whole program, and stores the size of the largest one.
std::atomic<std::size_t> host_allocations{0}, largest_host_allocation{0};

thread_local std::uint64_t until_failure = 0;  // the n-th host allocation of this thread fails if n is not 0

}  // namespace

bool tally::test::allocation_fails(std::size_t bytes) {
    host_allocations.fetch_add(1, std::memory_order_relaxed);
    if (bytes > largest_host_allocation.load(std::memory_order_relaxed))
        largest_host_allocation.store(bytes, std::memory_order_relaxed);
    return until_failure != 0 && --until_failure == 0;
}

using namespace tally;
using namespace tally::test;

namespace {

struct Counted {
    Counted() { largest_host_allocation = 0; }
    std::size_t allocations() const { return host_allocations - before; }
    std::size_t before = host_allocations;
};

// While this object exists, the n-th host allocation of this thread fails once.
struct FailAllocation {
    explicit FailAllocation(std::uint64_t n) { until_failure = n; }
    FailAllocation(const FailAllocation&) = delete;
    FailAllocation& operator=(const FailAllocation&) = delete;
    ~FailAllocation() { until_failure = 0; }
    bool happened() const { return until_failure == 0; }
};

// Calls f for n = 1, 2, ... and makes the n-th host allocation of f fail, until f makes fewer than n
// allocations. Calls `look` after each call of f.
template <class F, class Look> std::uint64_t fail_each(F f, Look look) {
    for (std::uint64_t n = 1;; ++n) {
        const FailAllocation failure(n);
        try {
            f();
        } catch (const std::exception&) {
            if (!failure.happened()) throw;
        }
        if (!failure.happened()) return n - 1;
        look();
    }
}

}  // namespace

TEST_CASE("invariant 9: the counters of host allocations count", "[alone]") {
    if (TALLY_ASAN) TALLY_SKIP("AddressSanitizer owns operator new");
    const Counted counted;
    ::operator delete(::operator new(1000));  // the compiler may remove a plain new-expression
    ::operator delete (::operator new (500, std::align_val_t{64}), std::align_val_t{64});
    void* aligned = nullptr;
    REQUIRE(posix_memalign(&aligned, 64, 2000) == 0);
    std::free(aligned);
    CHECK(counted.allocations() == 3);
    CHECK(largest_host_allocation == 2000);
}

TEST_CASE("invariant 9: random numbers are written to their tensor directly", "[alone]") {
    if (TALLY_ASAN) TALLY_SKIP("AddressSanitizer owns operator new");
    const std::int64_t count = 1 << 16;
    const auto make = [&] { return std::pair(randn({count}, {.seed = 1}), uniform({count}, -1, 1)); };
    make();  // fills the cache of the pool
    const Counted counted;
    const auto [x, y] = make();
    CHECK(x.shape() == y.shape());
    CHECK(largest_host_allocation < 4096);
}

TEST_CASE("invariant 9: a training step allocates no tensor byte outside tally's allocator", "[alone]") {
    if (TALLY_ASAN) TALLY_SKIP("AddressSanitizer owns operator new");
    Random random(9);
    // The large arrays of this training step have at least 5 KiB. Other host allocations are smaller.
    const Tensor x(random.array<float>({64, 48})),
        w1 = parameter(random.array<float>({48, 64})), b1 = parameter(random.array<float>({64})),
        gain = parameter(random.array<float>({64})), bias = parameter(random.array<float>({64})),
        w2 = parameter(random.array<float>({64, 40}));
    const Array<std::int32_t> labels = random.integers({64}, 0, 39);
    const auto step = [&] {
        for (const Tensor& micro : split(x, 32)) {
            const Tensor hidden = layer_norm(tanh(linear(micro, w1, b1)), gain, bias);
            const Tensor wide = concat<float>({hidden, exp(hidden * 0.1f)}, 1);
            const Tensor logits =
                matmul(transpose(reshape(sum(reshape(wide, {32, 2, 64}), {1}), {32, 64}), 0, 1), w2,
                       {.transpose_a = true});
            cross_entropy(logits * max(logits, {1}, {.keepdims = true}) + log_softmax(logits),
                          labels.slice_rows(0, 32))
                .mean()
                .backward();
        }
        sgd_step({w1, b1, gain, bias, w2}, 0.001);
        for (const Tensor& p : {w1, b1, gain, bias, w2}) p.zero_grad();
    };
    step();
    step();
    const Counted counted;
    for (int i = 0; i < 3; ++i) step();
    INFO("host allocations: " << counted.allocations() << ", the largest of " << largest_host_allocation
                              << " bytes");
    CHECK(largest_host_allocation < 4096);
}

TEST_CASE("invariant 9: a steady step reuses its buffers") {
    const Tensor x(Array<float>::full({6, 3}, 0.5f)), w = parameter({0.5f, -1.25f, 0.75f});
    const auto step = [&] {
        w.zero_grad();
        for (const Tensor& micro : split(x, 2)) (mean(matmul(micro, w)) / 3).backward();
        sgd_step({w}, 0.1);
    };
    step();
    step();
    const memory::Report before = memory::report();
    for (int i = 0; i < 10; ++i) step();
    const memory::Report after = memory::report();
    CHECK(after.in_use == before.in_use);
    CHECK(after.peak == before.peak);
    if (pool::enabled) CHECK(after.allocations - before.allocations == after.reused - before.reused);
}

TEST_CASE("Arena: loses no memory when the host has none left", "[alone]") {
    if (TALLY_ASAN) TALLY_SKIP("AddressSanitizer owns operator new");
    memory::Arena arena(1000);
    const auto places = fail_each([&] { arena.take(100); },
                                  [&] {
                                      CHECK(arena.free_bytes() == 1000);
                                      CHECK(arena.largest() == 1000);
                                  });
    CHECK(places > 0);
    CHECK(arena.take(200) == 100u);
    CHECK(arena.take(300) == 300u);
    bool asked = false;
    {
        const FailAllocation failure(1);
        arena.give(100, 200);  // this block has no free neighbour
        asked = failure.happened();
    }
    CHECK_FALSE(asked);
    CHECK(arena.free_bytes() == 600);
    CHECK(arena.take(200) == 100u);
}

TEST_CASE("budget: no byte is lost when the host has no memory left", "[alone]") {
    if (TALLY_ASAN) TALLY_SKIP("AddressSanitizer owns operator new");
    const Budget budget(MiB);
    const auto places = fail_each([] { memory::detail::unref(allocate(64 * KiB)); },
                                  [] {
                                      memory::drop_cache();
                                      CHECK(memory::in_use() == 0);
                                      CHECK(memory::report().largest_free == MiB);
                                  });
    CHECK(places > 1);  // allocations for the block and for the free gap behind it
    memory::detail::Storage* const before = allocate(64 * KiB);
    memory::detail::Storage* const between = allocate(128 * KiB);
    memory::detail::Storage* const after = allocate(64 * KiB);
    memory::detail::unref(between);
    bool asked = false;
    {
        const FailAllocation failure(1);
        memory::drop_cache();
        asked = failure.happened();
    }
    CHECK_FALSE(asked);
    CHECK(memory::report().cached == 0);
    memory::detail::unref(before);
    memory::detail::unref(after);
    CHECK(memory::report().largest_free == MiB);
}
