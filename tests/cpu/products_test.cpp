// Matrix products and moved memory: against plain loops; in several calls as in one.
#include "kernel_testing.hpp"

namespace tally::test {
namespace {

std::string text(const Product& p) {
    return std::to_string(p.m) + " x " + std::to_string(p.k) + " x " + std::to_string(p.n) +
           (p.transpose_a ? ", A transposed" : "") + (p.transpose_b ? ", B transposed" : "");
}

}  // namespace

TEMPLATE_TEST_CASE("matmul agrees with the plain loop, small products bit for bit", "", float, double) {
    using S = TestType;
    const std::vector<std::size_t> sizes{0, 1, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 64, 130};
    for (unsigned seed = 0; seed < 1500; ++seed) {
        Dice dice(seed);
        const Product p{dice.pick(sizes), dice.pick(sizes), dice.pick(sizes), dice.coin(), dice.coin()};
        const Write how = dice.how();
        INFO(dice.text() << ", " << text(p) << ", " << write_names[static_cast<int>(how)]);
        const auto a = dice.numbers<S>(p.m * p.k), b = dice.numbers<S>(p.k * p.n);
        const auto c = dice.destination<S>(p.m * p.n, how);
        const Buffer<S> want = c;
        fast<S>().matmul(p, a.data(), b.data(), into(c, how));
        plain<S>().matmul(p, a.data(), b.data(), into(want, how));
        const bool in_order = p.m * p.n * p.k <= ordered_limit;
        CHECK((in_order ? bit_difference(c, want) : difference(c, want, 8, 4 * static_cast<double>(p.k))) ==
              "");
    }
}

TEMPLATE_TEST_CASE(
    "large rows, columns and outer products agree with the plain loop, on one thread and on two", "", float,
    double) {
    using S = TestType;
    struct Two {
        Two() { set_threads(2); }
        ~Two() { set_threads(1); }
    };
    for (unsigned seed = 0; seed < 60; ++seed) {
        Dice dice(seed);
        const std::size_t large = 150 + dice.upto(100), larger = 32768 / large - 3 + dice.upto(60);
        const std::vector<Product> products{{1, large, larger, dice.coin(), dice.coin()},
                                            {larger, 1, large, dice.coin(), dice.coin()},
                                            {large, larger, 1, dice.coin(), dice.coin()},
                                            {1, 1, large * larger, dice.coin(), dice.coin()},
                                            {1, large * larger, 1, dice.coin(), dice.coin()}};
        const Product p = products[dice.upto(products.size() - 1)];
        const Write how = dice.how();
        INFO(dice.text() << ", " << text(p) << ", " << write_names[static_cast<int>(how)]);
        const auto a = dice.numbers<S>(p.m * p.k), b = dice.numbers<S>(p.k * p.n);
        const auto c = dice.destination<S>(p.m * p.n, how);
        const Buffer<S> by_two = c, want = c;
        fast<S>().matmul(p, a.data(), b.data(), into(c, how));
        {
            const Two threads;
            fast<S>().matmul(p, a.data(), b.data(), into(by_two, how));
        }
        plain<S>().matmul(p, a.data(), b.data(), into(want, how));
        CHECK(difference(c, want, 8, 4 * static_cast<double>(p.k)) == "");
        CHECK(difference(by_two, want, 8, 4 * static_cast<double>(p.k)) == "");
    }
}

TEMPLATE_TEST_CASE("linear agrees with the plain loop, with and without bias", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < 200; ++seed) {
        Dice dice(seed);
        const std::vector<std::size_t> sizes{0, 1, 2, 3, 10, 16, 17, 40, 65};
        const std::size_t m = dice.pick(sizes), n = dice.pick(sizes), k = dice.pick(sizes);
        INFO(dice.text() << ", " << m << " x " << k << " x " << n);
        const auto x = dice.numbers<S>(m * k), w = dice.numbers<S>(k * n), bias = dice.numbers<S>(n);
        for (const S* added : {static_cast<const S*>(nullptr), static_cast<const S*>(bias.data())}) {
            const Buffer<S> y(m * n, dice.upto(5)), want(m * n);
            fast<S>().linear(x.data(), w.data(), added, y.data(), m, n, k);
            plain<S>().linear(x.data(), w.data(), added, want.data(), m, n, k);
            CHECK(difference(y, want, 8, 4 * static_cast<double>(k)) == "");
        }
    }
}

TEMPLATE_TEST_CASE("linear_relu agrees with the plain loop in both directions", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < 200; ++seed) {
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
        CHECK(difference(y, want, 8, 4 * static_cast<double>(k)) == "");

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

TEMPLATE_TEST_CASE("Weight gradients of micro-batches add up to the full batch's, bit for bit", "", float,
                   double) {
    using S = TestType;
    for (unsigned seed = 0; seed < 400; ++seed) {
        Dice dice(seed);
        const std::size_t in = 1 + dice.upto(20), out = dice.coin() ? 1 : 1 + dice.upto(12),
                          most = ordered_limit / (in * out);
        const std::size_t rows = 2 + dice.upto(std::min<std::size_t>(most, 60) - 2);
        std::vector<std::size_t> cuts{0, rows};
        for (std::size_t i = dice.upto(4); i-- > 0;) cuts.push_back(dice.upto(rows));
        std::sort(cuts.begin(), cuts.end());
        INFO(dice.text() << ", " << rows << " rows, " << in << " -> " << out << ", " << cuts.size() - 1
                         << " micro-batches");
        const auto x = dice.numbers<S>(rows * in), dy = dice.numbers<S>(rows * out);
        if (dice.coin()) std::fill(dy.begin(), dy.begin() + rows / 2, -S(0));
        const Buffer<S> full(in * out), added(in * out);
        fast<S>().matmul({in, out, rows, true, false}, x.data(), dy.data(), into(full, Write::set));
        Write how = Write::set;
        for (std::size_t i = 1; i < cuts.size(); ++i) {
            if (cuts[i] == cuts[i - 1]) continue;
            fast<S>().matmul({in, out, cuts[i] - cuts[i - 1], true, false}, x.data() + cuts[i - 1] * in,
                             dy.data() + cuts[i - 1] * out, into(added, how));
            how = Write::add;
        }
        CHECK(bit_difference(added, full) == "");
    }
}

// The same walk over memory of which only each step-th element is used.
static Walk<1> stretched(Walk<1> walk, std::size_t step) {
    for (auto& stride : walk.stride[0]) stride *= static_cast<std::ptrdiff_t>(step);
    walk.reach[0] *= step;
    return walk;
}

TEMPLATE_TEST_CASE("Moved memory agrees with the plain loop", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < 600; ++seed) {
        Dice dice(seed);
        const bool gaps = dice.upto(5) == 0, repeats = dice.coin();
        const auto walk = stretched(dice.walk<1>(dice.extents(1 + dice.upto(5)), true, repeats),
                                    gaps ? 2 + dice.upto(3) : 1);
        const Write how = dice.how();
        INFO(dice.text() << ", size " << walk.size << ", reach " << walk.reach[0] << ", "
                         << write_names[static_cast<int>(how)]);
        const auto x = dice.numbers<S>(walk.reach[0]), dy = dice.numbers<S>(walk.size);
        const auto y = dice.destination<S>(walk.size, how), dx = dice.destination<S>(walk.reach[0], how);
        const bool all_minus_zero = dice.upto(3) == 0;  // their sum keeps the sign
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
    for (unsigned seed = 0; seed < 200; ++seed) {
        Dice dice(seed);
        const Write how = dice.how();
        const std::size_t count = dice.upto(6), height = 1 + dice.upto(5), width = dice.pick(awkward_sizes);
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
            if (dice.upto(9) == 0) of_row = -1;  // counts for nothing
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
