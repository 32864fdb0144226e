// Weights kept turned: made at the fourth use, never stale, and no bit of a product is another.
#include "tally/array/transpose_cache.hpp"

#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "memory/memory_helpers.hpp"
#include "tally/array/products.hpp"

namespace tally::test {

namespace {

using detail::multiply;
using detail::Product;
using detail::ScopedValue;
using detail::TransposeCache;
using detail::UseTransposeCache;

std::int64_t extent(std::size_t n) { return static_cast<std::int64_t>(n); }

// Large enough to be kept turned, both extents beyond a tile.
struct Weights {
    Random random;
    std::size_t in, out;
    Array<float> w;

    explicit Weights(std::uint64_t seed)
        : random(seed),
          in(static_cast<std::size_t>(random.whole(64, 100))),
          out(static_cast<std::size_t>(random.whole(64, 100))),
          w(made()) {}

    Array<float> made() {
        auto weight = random.array<float>({extent(in), extent(out)});
        detail::account_as(weight, MemoryClass::parameter);
        return weight;
    }
    Array<float> rows(std::int64_t count) { return random.array<float>({count, extent(out)}); }

    // dy · Wᵀ, by what is kept where there is something.
    Array<float> back(const Array<float>& dy, TransposeCache<float>* kept, const Array<float>& weight) const {
        const Product p{dy.size() / out, in, out, false, true};
        Array<float> dx = Array<float>::empty({extent(p.m), extent(in)});
        const ScopedValue<TransposeCache<float>*> asked(detail::transpose_cache<float>, kept);
        multiply(p, dy, weight, {dx.raw(), Write::set});
        return dx;
    }
    // What stands in the ledger after as many uses as it takes.
    std::size_t kept_of(const Array<float>& weight, std::int64_t count) {
        TransposeCache<float> kept;
        const Array<float> dy = rows(count);
        const std::size_t before = memory::in_use();
        for (int use = 0; use < 4; ++use) back(dy, &kept, weight);
        return memory::in_use() - before;
    }
};

}  // namespace

TEST_CASE("A matrix turned has its rows as columns, and turned again it is itself") {
    const Array<double> matrix({2, 3}, {1, 2, 3, 4, 5, 6});
    CHECK(detail::transposed(matrix).shape() == Shape{3, 2});
    CHECK(detail::transposed(matrix).to_vector() == std::vector<double>{1, 4, 2, 5, 3, 6});
    CHECK(detail::transposed(Array<float>::zeros({0, 4})).shape() == Shape{4, 0});
    Random random(1);
    for (const Shape& shape : {Shape{1, 70}, Shape{70, 1}, Shape{33, 65}}) {
        const auto x = random.array<float>(shape);
        CHECK(same_bits(detail::transposed(detail::transposed(x)), x));
    }
}

TEST_CASE("Weights kept turned change no bit, whatever happens to them in between") {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        Weights made(seed);
        TransposeCache<float> kept;
        for (int use = 0; use < 20; ++use) {
            INFO("seed " << seed << ", use " << use);
            const Array<float> dy = made.rows(made.random.whole(1, 14));
            CHECK(same_bits(made.back(dy, &kept, made.w), made.back(dy, nullptr, made.w)));
            const auto i = static_cast<std::size_t>(made.random.whole(0, extent(made.w.size()) - 1));
            switch (made.random.whole(0, 14)) {
                case 0:  // as an optimizer writes: into a copy, since the buffer is held
                    made.w.writable()[i] += 1;
                    break;
                case 1:  // as a write in place does
                    memory::detail::raise_version(made.w.storage());
                    made.w.raw()[i] += 1;
                    break;
                case 2:  // as loading does, and the next one may lie where this one lay
                    made.w = Array<float>();
                    made.w = made.made();
            }
        }
    }
}

TEST_CASE("Several weights of one size, and parts of them, are told apart") {
    Weights made(11);
    TransposeCache<float> kept;
    const Array<float> other = made.made();
    --made.in;
    const Array<float> part = made.w.slice_rows(0, extent(made.in)), dy = made.rows(3);
    const Array<float> want_of_part = made.back(dy, nullptr, part);
    for (int use = 0; use < 6; ++use) {
        CHECK(same_bits(made.back(dy, &kept, part), want_of_part));
        ++made.in;
        CHECK(same_bits(made.back(dy, &kept, made.w), made.back(dy, nullptr, made.w)));
        CHECK(same_bits(made.back(dy, &kept, other), made.back(dy, nullptr, other)));
        --made.in;
    }
}

TEST_CASE("The same weights in another shape are turned anew") {
    Weights made(7);
    TransposeCache<float> kept;
    for (int use = 0; use < 4; ++use) made.back(made.rows(2), &kept, made.w);
    std::swap(made.in, made.out);
    const Array<float> other = made.w.reshaped({extent(made.in), extent(made.out)}), dz = made.rows(2);
    for (int use = 0; use < 5; ++use)
        CHECK(same_bits(made.back(dz, &kept, other), made.back(dz, nullptr, other)));
}

TEST_CASE("Half of the weights, with as many rows, is not the whole") {
    Weights made(8);
    made.in = 64, made.out = 256;
    made.w = made.made();
    TransposeCache<float> kept;
    const Array<float> half = made.w.slice_rows(0, 32).reshaped({64, 128}), dy = made.rows(2);
    for (int use = 0; use < 4; ++use) made.back(dy, &kept, made.w);
    made.out = 128;
    const Array<float> dz = made.rows(2);
    for (int use = 0; use < 5; ++use)
        CHECK(same_bits(made.back(dz, &kept, half), made.back(dz, nullptr, half)));
}

TEST_CASE("Turned weights stand in the ledger from their fourth use on, until they are forgotten") {
    Weights made(3);
    TransposeCache<float> kept;
    const Array<float> dy = made.rows(2);
    const std::size_t before = memory::in_use(), bytes = made.w.storage()->bytes;
    for (const std::size_t copy : {std::size_t{0}, std::size_t{0}, std::size_t{0}, bytes, bytes}) {
        made.back(dy, &kept, made.w);
        CHECK(memory::in_use() == before + copy);
    }
    kept.clear();
    CHECK(memory::in_use() == before);
    CHECK(memory::detail::ref_count(made.w.storage()) == 1);
}

TEST_CASE("A weight that nobody has any more goes with its copy when the next one is used") {
    Weights made(4);
    TransposeCache<float> kept;
    const Array<float> dy = made.rows(2);
    const std::size_t before = memory::in_use();
    for (int use = 0; use < 4; ++use) made.back(dy, &kept, made.w);
    made.w = made.made();
    CHECK(memory::in_use() > before);
    made.back(dy, &kept, made.w);
    CHECK(memory::in_use() == before);
}

TEST_CASE("Only weights are kept turned, for few rows, and not for a product of BLAS") {
    Weights made(9);
    const std::size_t bytes = made.w.storage()->bytes;
    CHECK(made.kept_of(made.w, 2) == bytes);
    CHECK(made.kept_of(made.w, 1) == 0);
    CHECK(made.kept_of(made.w, 40) == 0);
    CHECK(made.kept_of(made.random.array<float>({extent(made.in), extent(made.out)}), 2) == 0);
    {
        const ScopedValue<bool> resting(detail::skip_compute, true);
        CHECK(made.kept_of(made.w, 2) == 0);
    }
    set_products(Products::blas);
    CHECK(made.kept_of(made.w, 2) == 0);
    set_products(Products::ordered);
}

TEST_CASE("With a budget nothing is kept turned") {
    const Budget budget(4 * MiB);
    Weights made(2);
    CHECK(made.kept_of(made.w, 2) == 0);
}

TEST_CASE("Nothing is kept turned where memory runs out, and the product is the same") {
    Weights made(5);
    TransposeCache<float> kept;
    const Array<float> dy = made.rows(3), want = made.back(dy, nullptr, made.w);
    for (int use = 0; use < 3; ++use) made.back(dy, &kept, made.w);
    const std::size_t before = memory::in_use();
    memory::fail_allocation(2);  // after that of dx
    CHECK(same_bits(made.back(dy, &kept, made.w), want));
    memory::fail_allocation(0);
    CHECK(same_bits(made.back(dy, &kept, made.w), want));
    CHECK(memory::in_use() == before);
}

}  // namespace tally::test
