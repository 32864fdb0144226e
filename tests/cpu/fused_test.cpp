// What products are made of: a * b + c rounded once, in every lane.
#include "tally/cpu/fused.hpp"
#include "kernel_testing.hpp"

namespace tally::test {

TEMPLATE_TEST_CASE("fused rounds once, as std::fma does", "", float, double) {
    using S = TestType;
    using cpu::Batch, cpu::lanes;
    std::size_t differ = 0;  // from what rounds twice
    for (unsigned seed = 0; seed < 2000; ++seed) {
        Dice dice(seed);
        const auto a = dice.numbers<S>(lanes<S>), b = dice.numbers<S>(lanes<S>),
                   c = dice.numbers<S>(lanes<S>);
        for (std::size_t i = 0; i < lanes<S>; ++i)
            if (dice.coin()) c[i] = -a[i] * b[i];  // then nothing is left but what the product lost
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

TEMPLATE_TEST_CASE("A square of lanes is turned", "", float, double) {
    using S = TestType;
    constexpr std::size_t L = cpu::lanes<S>;
    Dice dice(1);
    const auto rows = dice.numbers<S>(L * L);
    cpu::Square<S> square;
    for (std::size_t i = 0; i < L; ++i) square[i] = cpu::Batch<S>::load_unaligned(rows.data() + i * L);
    cpu::turn<S>(square);
    const Buffer<S> turned(L * L);
    for (std::size_t i = 0; i < L; ++i) square[i].store_unaligned(turned.data() + i * L);
    for (std::size_t i = 0; i < L; ++i)
        for (std::size_t j = 0; j < L; ++j) CHECK(same_bits(turned[i * L + j], rows[j * L + i]));
}

}  // namespace tally::test
