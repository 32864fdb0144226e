// Tests that a TransposeCache stores a transposed copy of a weight when the weight is used for the fourth
// time. The copy changes no bit of a result.
#include "tally/array/transpose_cache.hpp"

#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "memory/memory_helpers.hpp"
#include "tally/array/products.hpp"
#include "tally/cpu/vectors.hpp"

namespace tally::test {

namespace {

using detail::multiply;
using detail::Product;
using detail::ScopedValue;
using detail::TransposeCache;
using detail::UseTransposeCache;

std::int64_t extent(std::size_t n) { return static_cast<std::int64_t>(n); }

// The matrix `w` is large enough to be cached. Both extents of the matrix exceed the size of a tile.
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

    // Returns dy · Wᵀ. The product uses the cache `kept` unless `kept` is a null pointer.
    Array<float> back(const Array<float>& dy, TransposeCache<float>* kept, const Array<float>& weight) const {
        const Product p{dy.size() / out, in, out, false, true};
        Array<float> dx = Array<float>::empty({extent(p.m), extent(in)});
        const ScopedValue<TransposeCache<float>*> asked(detail::transpose_cache<float>, kept);
        multiply(p, dy, weight, {dx.raw(), Write::set});
        return dx;
    }
    // Returns the bytes that the cache occupies after four products with `count` rows.
    std::size_t kept_of(const Array<float>& weight, std::int64_t count) {
        TransposeCache<float> kept;
        const Array<float> dy = rows(count);
        const std::size_t before = memory::in_use();
        for (int use = 0; use < 4; ++use) back(dy, &kept, weight);
        return memory::in_use() - before;
    }
};

}  // namespace

TEST_CASE("transposed: rows become columns, and two transposes give the original") {
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

TEST_CASE("TransposeCache: changes no bit when the weights change between products") {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        Weights made(seed);
        TransposeCache<float> kept;
        for (int use = 0; use < 20; ++use) {
            INFO("seed " << seed << ", use " << use);
            const Array<float> dy = made.rows(made.random.whole(1, 14));
            CHECK(same_bits(made.back(dy, &kept, made.w), made.back(dy, nullptr, made.w)));
            const auto i = static_cast<std::size_t>(made.random.whole(0, extent(made.w.size()) - 1));
            switch (made.random.whole(0, 14)) {
                case 0:  // an optimizer writes to a new buffer, because this buffer is shared
                    made.w.writable()[i] += 1;
                    break;
                case 1:  // a write in place
                    memory::detail::raise_version(made.w.storage());
                    made.w.raw()[i] += 1;
                    break;
                case 2:  // loading assigns a new buffer, which may have the old address
                    made.w = Array<float>();
                    made.w = made.made();
            }
        }
    }
}

TEST_CASE("TransposeCache: distinguishes weights of one size and their parts") {
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

TEST_CASE("TransposeCache: makes a new copy when the same weights have another shape") {
    Weights made(7);
    TransposeCache<float> kept;
    for (int use = 0; use < 4; ++use) made.back(made.rows(2), &kept, made.w);
    std::swap(made.in, made.out);
    const Array<float> other = made.w.reshaped({extent(made.in), extent(made.out)}), dz = made.rows(2);
    for (int use = 0; use < 5; ++use)
        CHECK(same_bits(made.back(dz, &kept, other), made.back(dz, nullptr, other)));
}

TEST_CASE("TransposeCache: distinguishes half of the weights from all of them") {
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

TEST_CASE("TransposeCache: accounts for its copies from the fourth use until they are cleared") {
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

TEST_CASE("TransposeCache: frees the copy of a dropped weight at the next use") {
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

TEST_CASE("TransposeCache: caches only parameters, for few rows, and not for BLAS products") {
    Weights made(9);
    const std::size_t bytes = made.w.storage()->bytes;
    CHECK(made.kept_of(made.w, 2) == bytes);
    CHECK(made.kept_of(made.w, 1) == (cpu::vectors == cpu::Vectors::avx512 ? 0 : bytes));
    CHECK(made.kept_of(made.w, 0) == 0);
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

TEST_CASE("TransposeCache: a product with weights that were moved away throws an Error") {
    Weights made(9);
    TransposeCache<float> kept;
    const Array<float> dy = made.rows(2), used = std::move(made.w);
    CHECK_THROWS_WITH(made.back(dy, &kept, made.w), contains("[matmul] an array has no memory"));
}

TEST_CASE("TransposeCache: caches nothing when a memory budget is set") {
    const Budget budget(4 * MiB);
    Weights made(2);
    CHECK(made.kept_of(made.w, 2) == 0);
}

TEST_CASE("TransposeCache: the product is the same when a copy does not fit into memory") {
    Weights made(5);
    TransposeCache<float> kept;
    const Array<float> dy = made.rows(3), want = made.back(dy, nullptr, made.w);
    for (int use = 0; use < 3; ++use) made.back(dy, &kept, made.w);
    const std::size_t before = memory::in_use();
    memory::detail::fail_allocation(2);  // the allocation for dx succeeds, and the next one fails
    CHECK(same_bits(made.back(dy, &kept, made.w), want));
    memory::detail::fail_allocation(0);
    CHECK(same_bits(made.back(dy, &kept, made.w), want));
    CHECK(memory::in_use() == before);
}

}  // namespace tally::test
