// Tests that products use fused multiply-adds, which round a * b + c only once.
#include "tally/cpu/fused.hpp"
#include "kernel_testing.hpp"

namespace tally::test {

TEMPLATE_TEST_CASE("fused: rounds once, as std::fma does", "", float, double) {
    using S = TestType;
    using cpu::Batch, cpu::lanes;
    std::size_t differ = 0;  // counts results that two roundings would change
    for (unsigned seed = 0; seed < 2000; ++seed) {
        Dice dice(seed);
        const auto a = dice.numbers<S>(lanes<S>), b = dice.numbers<S>(lanes<S>),
                   c = dice.numbers<S>(lanes<S>);
        for (std::size_t i = 0; i < lanes<S>; ++i)
            if (dice.coin()) c[i] = -a[i] * b[i];  // the result is the rounding error of the product
        const Buffer<S> got(lanes<S>);
        cpu::fused(Batch<S>::load_unaligned(a.data()), Batch<S>::load_unaligned(b.data()),
                   Batch<S>::load_unaligned(c.data()))
            .store_unaligned(got.data());
        INFO(dice.text());
        for (std::size_t i = 0; i < lanes<S>; ++i) {
            CHECK(same_bits(got[i], std::fma(a[i], b[i], c[i])));
            CHECK(same_bits(got[i], cpu::fused(a[i], b[i], c[i])));
            const volatile S product = a[i] * b[i];
            differ += !same_bits<S>(got[i], product + c[i]);
        }
    }
    CHECK(differ > 1000 * lanes<S> / 2);
}

TEMPLATE_TEST_CASE("load_transposed: transposes a square of lanes, and a part of one", "", float, double) {
    using S = TestType;
    constexpr std::size_t L = cpu::lanes<S>;
    for (unsigned seed = 0; seed < 100; ++seed) {
        Dice dice(seed);
        const std::size_t pitch = L + dice.upto(5);
        const std::size_t height = seed == 0 ? L : 1 + dice.upto(L - 1),
                          width = seed == 0 ? L : 1 + dice.upto(L - 1);
        INFO(dice.text() << ", " << height << " x " << width);
        const auto rows = dice.numbers<S>(L * pitch);
        const auto expect = [&](const cpu::LaneMatrix<S>& square, std::size_t down, std::size_t right) {
            const Buffer<S> turned(L * L);
            for (std::size_t i = 0; i < L; ++i) square[i].store_unaligned(turned.data() + i * L);
            for (std::size_t i = 0; i < right; ++i)
                for (std::size_t j = 0; j < down; ++j)
                    CHECK(same_bits(turned[i * L + j], rows[j * pitch + i]));
        };
        expect(cpu::load_transposed<S>(rows.data(), pitch), L, L);
        expect(cpu::load_transposed<S>(rows.data(), pitch, height, width), height, width);
    }
}

}  // namespace tally::test
