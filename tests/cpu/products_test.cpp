// Compares matrix products and copies with plain loops. The number of threads must not change any bit.
#include "effort.hpp"
#include "kernel_testing.hpp"

namespace tally::test {
namespace {

std::string text(const Product& p) {
    return std::to_string(p.m) + " x " + std::to_string(p.k) + " x " + std::to_string(p.n) +
           (p.transpose_a ? ", A transposed" : "") + (p.transpose_b ? ", B transposed" : "");
}

struct ByBlas {
    ByBlas() { set_products(Products::blas); }
    ~ByBlas() { set_products(Products::ordered); }
    ByBlas(const ByBlas&) = delete;
};

// Draws random sizes, many of which are close to the sizes of registers, tiles and blocks.
Product any_product(Dice& dice) {
    const auto extent = [&]() -> std::size_t {
        if (dice.coin()) return dice.upto(70);
        const std::size_t edge =
            dice.pick<std::size_t>({6, 8, 12, 16, 24, 32, 64, 96, 128, 192, 256, 512, 1024});
        return std::max<std::size_t>(1, edge - 1 + dice.upto(2));
    };
    Product p{extent(), extent(), extent(), dice.coin(), dice.coin()};
    while (p.m * p.n * p.k > 1500000) {  // limits the time of the plain loop
        std::size_t& largest = p.m >= p.n && p.m >= p.k ? p.m : p.n >= p.k ? p.n : p.k;
        (dice.upto(3) > 0 ? largest : dice.coin() ? p.m : dice.coin() ? p.n : p.k) = 1 + dice.upto(40);
    }
    return p;
}

template <class S> struct Operands {
    Product p;
    Buffer<S> a, b;

    Operands(Dice& dice, const Product& product)
        : p(product), a(dice.numbers<S>(p.m * p.k)), b(dice.numbers<S>(p.k * p.n)) {}
    Buffer<S> times(const Kernels<S>& kernels, Buffer<S> c, Write how) const {
        kernels.matmul(p, a.data(), b.data(), into(c, how));
        return c;
    }
};

}  // namespace

TEMPLATE_TEST_CASE("matmul: equals its chain of fused multiply-adds, bit for bit, at every size", "", float,
                   double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(1500u); ++seed) {
        Dice dice(seed);
        const Operands<S> made(dice, any_product(dice));
        const Write how = dice.how();
        INFO(dice.text() << ", " << text(made.p) << ", " << write_names[static_cast<int>(how)]);
        const auto c = dice.destination<S>(made.p.m * made.p.n, how);
        CHECK(bit_difference(made.times(fast<S>(), c, how), made.times(plain<S>(), c, how)) == "");
    }
}

TEMPLATE_TEST_CASE("matmul: the plain loop is the chain of std::fma, from -0 or from the destination", "",
                   float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(300u); ++seed) {
        Dice dice(seed);
        const std::size_t k = dice.upto(70);
        const auto a = dice.numbers<S>(k), b = dice.numbers<S>(k), before = dice.numbers<S>(1);
        // If all products are zeros, the sign of the sum depends on the signs of these zeros.
        if (dice.upto(3) == 0) std::fill(a.begin(), a.end(), S(0));
        S set = k == 0 ? S(0) : -S(0), added = before[0];
        for (std::size_t l = 0; l < k; ++l)
            set = std::fma(a[l], b[l], set), added = std::fma(a[l], b[l], added);
        for (const Kernels<S>* kernels : {&plain<S>(), &fast<S>()}) {
            INFO(dice.text() << ", " << k << " products, " << (kernels == &fast<S>() ? "fast" : "plain"));
            const Buffer<S> c(1), d = before;
            kernels->matmul({1, 1, k, false, false}, a.data(), b.data(), into(c, Write::set));
            kernels->matmul({1, 1, k, false, false}, a.data(), b.data(), into(d, Write::add));
            CHECK(same_bits(c[0], set));
            CHECK(same_bits(d[0], added));
        }
    }
}

TEMPLATE_TEST_CASE("matmul: the number of threads changes no bit", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(81u); ++seed) {
        Dice dice(seed);
        const std::size_t large = 150 + dice.upto(250), larger = 32768 / large - 3 + dice.upto(300);
        const std::vector<Product> products{{1, large, larger, dice.coin(), dice.coin()},
                                            {larger, 1, large, dice.coin(), dice.coin()},
                                            {large, larger, 1, dice.coin(), dice.coin()},
                                            {1, 1, large * larger, dice.coin(), dice.coin()},
                                            {1, large * larger, 1, dice.coin(), dice.coin()},
                                            {large, larger, 2 + dice.upto(60), dice.coin(), dice.coin()},
                                            {large, 2 + dice.upto(60), larger, dice.coin(), dice.coin()},
                                            {2 + dice.upto(60), large, larger, dice.coin(), dice.coin()},
                                            {large, 1 + dice.upto(14), larger, true, dice.coin()}};
        const Operands<S> made(dice, products[seed % products.size()]);
        const Write how = dice.how();
        const auto c = dice.destination<S>(made.p.m * made.p.n, how);
        const Buffer<S> want = made.times(plain<S>(), c, how);
        for (int threads = 1; threads <= 4; ++threads) {
            INFO(dice.text() << ", " << text(made.p) << ", " << write_names[static_cast<int>(how)] << ", "
                             << threads << " threads");
            const Threads some(threads);
            CHECK(bit_difference(made.times(fast<S>(), c, how), want) == "");
        }
    }
}

TEMPLATE_TEST_CASE("matmul: the split of k changes no bit", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(300u); ++seed) {
        Dice dice(seed);
        Product p = any_product(dice);
        p.transpose_a = true, p.transpose_b = false;  // the sum runs over the rows of both matrices
        const Operands<S> made(dice, p);
        const Write how = dice.how();
        const auto c = dice.destination<S>(p.m * p.n, how);
        const Buffer<S> parts = c;
        std::vector<std::size_t> cuts{0, p.k};
        for (std::size_t i = dice.upto(4); i-- > 0;) cuts.push_back(dice.upto(p.k));
        std::sort(cuts.begin(), cuts.end());
        if (dice.upto(3) == 0) std::fill(made.b.begin(), made.b.begin() + p.k / 2 * p.n, -S(0));
        Write then = how;
        for (std::size_t i = 1; i < cuts.size(); ++i) {
            if (cuts[i] == cuts[i - 1] && p.k > 0) continue;
            fast<S>().matmul({p.m, p.n, cuts[i] - cuts[i - 1], true, false},
                             made.a.data() + cuts[i - 1] * p.m, made.b.data() + cuts[i - 1] * p.n,
                             into(parts, then));
            then = Write::add;
        }
        INFO(dice.text() << ", " << text(p) << " in " << cuts.size() - 1 << " parts");
        CHECK(bit_difference(parts, made.times(fast<S>(), c, how)) == "");
    }
}

TEMPLATE_TEST_CASE("matmul: a row does not depend on the other rows", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(200u); ++seed) {
        Dice dice(seed);
        Product p = any_product(dice);
        p.transpose_a = false;
        if (p.m == 0) continue;
        const Operands<S> made(dice, p);
        const Buffer<S> all = made.times(fast<S>(), Buffer<S>(p.m * p.n), Write::set), alone(p.n), want(p.n);
        const std::size_t row = dice.upto(p.m - 1);
        fast<S>().matmul({1, p.n, p.k, false, p.transpose_b}, made.a.data() + row * p.k, made.b.data(),
                         into(alone, Write::set));
        std::copy_n(all.data() + row * p.n, p.n, want.data());
        INFO(dice.text() << ", " << text(p) << ", row " << row);
        CHECK(bit_difference(alone, want) == "");
    }
}

TEMPLATE_TEST_CASE("matmul: BLAS agrees with the plain loop, and small products have its bits", "[library]",
                   float, double) {
    using S = TestType;
    const ByBlas blas;
    for (unsigned seed = 0; seed < launches_of(600u); ++seed) {
        Dice dice(seed);
        const Operands<S> made(dice, any_product(dice));
        const Product& p = made.p;
        const Write how = dice.how();
        const Threads threads(dice.coin() ? 2 : 1);
        INFO(dice.text() << ", " << text(p) << ", " << write_names[static_cast<int>(how)]);
        const auto c = dice.destination<S>(p.m * p.n, how);
        const Buffer<S> got = made.times(fast<S>(), c, how), want = made.times(plain<S>(), c, how);
        const bool in_order = p.m * p.n * p.k <= ordered_limit;
        CHECK((in_order ? bit_difference(got, want)
                        : difference(got, want, 8, 4 * static_cast<double>(p.k))) == "");
    }
}

// Compares a linear layer without and with a bias with the plain loop.
template <class S, class Difference>
static void check_linear(Dice& dice, std::size_t m, std::size_t k, std::size_t n, Difference found) {
    INFO(dice.text() << ", " << m << " x " << k << " x " << n);
    const auto x = dice.numbers<S>(m * k), w = dice.numbers<S>(k * n), bias = dice.numbers<S>(n);
    for (const S* added : {static_cast<const S*>(nullptr), static_cast<const S*>(bias.data())}) {
        const Buffer<S> y(m * n, dice.upto(5)), want(m * n);
        fast<S>().linear(x.data(), w.data(), added, y.data(), m, n, k);
        plain<S>().linear(x.data(), w.data(), added, want.data(), m, n, k);
        CHECK(found(y, want) == "");
    }
}

TEMPLATE_TEST_CASE("linear: agrees with the plain loop, with and without bias", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(200u); ++seed) {
        Dice dice(seed);
        // A large product adds several blocks to a result, but must add the bias only once.
        const bool large = seed % 20 == 0;
        const std::vector<std::size_t> sizes = large
                                                   ? std::vector<std::size_t>{2, 40, 130, 300}
                                                   : std::vector<std::size_t>{0, 1, 2, 3, 10, 16, 17, 40, 65};
        const std::size_t m = dice.pick(sizes), n = dice.pick(sizes), k = large ? 300 : dice.pick(sizes);
        const Threads threads(large ? static_cast<int>(1 + dice.upto(3)) : 1);
        check_linear<S>(dice, m, k, n,
                        [](const auto& y, const auto& want) { return bit_difference(y, want); });
    }
}

TEMPLATE_TEST_CASE("linear: BLAS agrees with the plain loop, with and without bias", "[library]", float,
                   double) {
    using S = TestType;
    const ByBlas blas;
    for (unsigned seed = 0; seed < 20; ++seed) {
        Dice dice(seed);
        const std::vector<std::size_t> sizes{16, 17, 40, 65};
        const std::size_t m = dice.pick(sizes), n = dice.pick(sizes), k = dice.pick(sizes);
        check_linear<S>(dice, m, k, n, [&](const auto& y, const auto& want) {
            return difference(y, want, 8, 4 * static_cast<double>(k));
        });
    }
}

TEMPLATE_TEST_CASE("linear_relu: agrees with the plain loop in both directions", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(200u); ++seed) {
        Dice dice(seed);
        const std::vector<std::size_t> sizes{0, 1, 2, 3, 4, 5, 10, 16, 17, 40, 65};
        const std::size_t m = dice.pick(sizes), n = dice.pick(sizes), k = dice.pick(sizes);
        const Write how = dice.how();
        INFO(dice.text() << ", " << m << " x " << k << " x " << n << ", "
                         << write_names[static_cast<int>(how)]);
        const auto x = dice.numbers<S>(m * k), w = dice.numbers<S>(k * n), bias = dice.numbers<S>(n);
        const Buffer<S> y(m * n, dice.upto(5)), want(m * n);
        fast<S>().linear_relu(x.data(), w.data(), bias.data(), y.data(), m, n, k);
        plain<S>().linear_relu(x.data(), w.data(), bias.data(), want.data(), m, n, k);
        CHECK(bit_difference(y, want) == "");

        const auto dy = dice.numbers<S>(m * n), out = dice.numbers<S>(m * n);
        const Buffer<S> dz(m * n, dice.upto(5)), want_dz(m * n);
        const auto dbias = dice.destination<S>(n, how);
        const Buffer<S> want_dbias = dbias;
        const bool learns = dice.upto(3) > 0;
        const auto to = [&](const Buffer<S>& place) {
            return learns ? into(place, how) : Into<S[]>{nullptr, how};
        };
        fast<S>().relu_bias_back(dy.data(), out.data(), dz.data(), to(dbias), m, n);
        plain<S>().relu_bias_back(dy.data(), out.data(), want_dz.data(), to(want_dbias), m, n);
        CHECK(bit_difference(dz, want_dz) == "");
        if (learns) CHECK(bit_difference(dbias, want_dbias) == "");

        const Buffer<S> in_place = dy, dbias_too(n);
        fast<S>().relu_bias_back(in_place.data(), out.data(), in_place.data(),
                                 {learns ? dbias_too.data() : nullptr, Write::set}, m, n);
        CHECK(bit_difference(in_place, want_dz) == "");
    }
}

// Multiplies all strides by `step`, so that step - 1 unused elements follow each element.
static StridedIndex<1> stretched(StridedIndex<1> walk, std::size_t step) {
    for (auto& stride : walk.stride[0]) stride *= static_cast<std::ptrdiff_t>(step);
    walk.operand_size[0] *= step;
    return walk;
}

TEMPLATE_TEST_CASE("permute, gather, scatter: agree with the plain loop", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(600u); ++seed) {
        Dice dice(seed);
        const bool gaps = dice.upto(5) == 0, repeats = seed < 8 || dice.coin();
        const auto walk = seed < 8 ? Dice::rows_of_terms<1>(seed, 0)
                                   : stretched(dice.walk<1>(dice.extents(1 + dice.upto(5)), true, repeats),
                                               gaps ? 2 + dice.upto(3) : 1);
        const Write how = dice.how();
        INFO(dice.text() << ", size " << walk.size << ", reach " << walk.operand_size[0] << ", "
                         << write_names[static_cast<int>(how)]);
        const auto x = dice.numbers<S>(walk.operand_size[0]), dy = dice.numbers<S>(walk.size);
        const auto y = dice.destination<S>(walk.size, how),
                   dx = dice.destination<S>(walk.operand_size[0], how);
        const bool all_minus_zero = dice.upto(3) == 0;  // a sum of negative zeros must be -0
        if (all_minus_zero) std::fill(dy.begin(), dy.end(), -S(0));
        const Buffer<S> want = y, want_dx = dx;
        fast<S>().gather(walk, x.data(), into(y, how));
        plain<S>().gather(walk, x.data(), into(want, how));
        CHECK(bit_difference(y, want) == "");
        fast<S>().scatter(walk, dy.data(), into(dx, how));
        plain<S>().scatter(walk, dy.data(), into(want_dx, how));
        CHECK((repeats && !all_minus_zero ? difference(dx, want_dx, 8, static_cast<double>(walk.size))
                                          : bit_difference(dx, want_dx)) == "");
    }
    for (unsigned seed = 0; seed < launches_of(200u); ++seed) {
        Dice dice(seed);
        const Write how = dice.how();
        const bool many = seed < 4;  // a warp searches for earlier rows with the same index
        const std::size_t count = many ? 70 : dice.upto(6), height = many ? 40 : 1 + dice.upto(5),
                          width = many ? 3 : dice.pick(awkward_sizes);
        const std::size_t x_pitch = width + dice.upto(3), y_pitch = width + dice.upto(3);
        INFO(dice.text() << ", " << count << " of " << height << " rows of " << width << ", "
                         << write_names[static_cast<int>(how)]);
        const auto compare = [&](std::size_t results, auto call) {
            const auto got = dice.destination<S>(results, how);
            const Buffer<S> want = got;
            call(fast<S>(), into(got, how));
            call(plain<S>(), into(want, how));
            CHECK(bit_difference(got, want) == "");
        };
        const auto wide = dice.numbers<S>(count * x_pitch), table = dice.numbers<S>(height * width),
                   dy = dice.numbers<S>(count * width);
        const auto index = dice.integers(count, height);
        compare(count * y_pitch, [&](const Kernels<S>& k, Into<S[]> y) {
            k.block(wide.data(), x_pitch, y, y_pitch, count, width);
        });
        compare(count * width, [&](const Kernels<S>& k, Into<S[]> y) {
            k.rows(table.data(), index.data(), y.dst, count, width);
        });
        for (auto& of_row : index)
            if (dice.upto(9) == 0) of_row = -1;  // a negative index is not counted
        compare(height * width, [&](const Kernels<S>& k, Into<S[]> y) {
            k.rows_back(dy.data(), index.data(), y, count, height, width);
        });
        for (S factor : {S(1), S(-0.3)})
            compare(count * width, [&](const Kernels<S>& k, Into<S[]> y) {
                k.add_scaled(factor, dy.data(), y, count * width);
            });
        compare(width, [&](const Kernels<S>& k, Into<S[]> y) { k.fill(S(1.5), y.dst, width); });
    }
}

}  // namespace tally::test
