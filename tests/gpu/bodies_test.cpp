// Compiles the GPU kernels for the host, and compares their results with plain loops. Sums over threads must
// have the same bits as the tree of additions in gpu/team.hpp.
#include "kernel_testing.hpp"
#include "tally/gpu/on_host.hpp"

namespace tally::test {
namespace {

const std::vector<std::size_t> edges{0, 1, 2, 31, 32, 33, 1023, 1025};

// Returns the sum of n numbers, added in the order of a GPU kernel with `lanes` threads.
template <class S> S tree_sum(const S* x, std::size_t n, std::size_t lanes) {
    std::vector<S> lane(lanes, -S(0));
    for (std::size_t i = 0; i < n; ++i) lane[i % lanes] += x[i];
    for (; lanes > 1; lanes /= 2)
        for (std::size_t l = 0; l < lanes / 2; ++l) lane[l] += lane[l + lanes / 2];
    return lane[0];
}

// Calls the kernels of both kernel tables, and compares all bits of their results. All NaN are equal.
template <class S, class Call> std::string in_both(Dice& dice, std::size_t results, Write how, Call call) {
    const auto got = dice.destination<S>(results, how);
    const Buffer<S> want = got;
    call(fast<S>(), into(got, how));
    call(plain<S>(), into(want, how));
    return bit_difference(got, want);
}

// Simulates a device with a library like cuBLAS, and counts the calls of this library.
struct WithLibrary : gpu::OnHost {
    static inline Products chosen = Products::blas;
    static inline int asked = 0;

    static Products products() { return chosen; }
    template <class S> static void multiply(const Product& p, const S* a, const S* b, Into<S[]> c) {
        ++asked;
        OnHost::multiply(p, a, b, c);
    }
};

}  // namespace

TEMPLATE_TEST_CASE("GPU kernels: every slot of the table has a body", "", float, double) {
    using Slot = void (*)();
    const Kernels<TestType>& table = fast<TestType>();
    std::array<Slot, sizeof(table) / sizeof(Slot)> slots;
    std::memcpy(slots.data(), &table, sizeof(table));
    CHECK(std::count(slots.begin(), slots.end(), Slot(nullptr)) == 0);
}

TEMPLATE_TEST_CASE("GPU kernels: a team adds in the documented order", "", float, double) {
    using S = TestType;
    Dice dice(1);
    INFO(dice.text());
    for (std::size_t n : awkward_sizes) {
        const auto x = dice.numbers<S>(n);
        const auto term = [&](std::size_t i) { return x[i]; };
        gpu::SingleThread alone;
        gpu::HostTeam<gpu::warp> warp;
        gpu::HostTeam<gpu::block> block;
        CHECK(same_bits(gpu::sum_in_team<S>(alone, n, term), tree_sum(x.data(), n, 1)));
        CHECK(same_bits(gpu::sum_in_team<S>(warp, n, term), tree_sum(x.data(), n, 32)));
        CHECK(same_bits(gpu::sum_in_team<S>(block, n, term), tree_sum(x.data(), n, 256)));
    }
}

TEMPLATE_TEST_CASE("GPU kernels: a team sums a row that is longer than the ordered rows", "", float, double) {
    using S = TestType;
    for (std::size_t n : {65u, 257u, 1023u, 1024u, 1025u, 3000u})
        for (Write how : {Write::set, Write::add}) {
            Dice dice(static_cast<unsigned>(n));
            INFO(dice.text() << ", " << n << " numbers, " << write_names[static_cast<int>(how)]);
            const auto x = dice.numbers<S>(2 * n);
            const auto y = dice.destination<S>(2, how);
            const Buffer<S> want = y;
            for (std::size_t row : {0u, 1u}) {
                const S start = how == Write::set ? -S(0) : want[row];
                want[row] = start + tree_sum(x.data() + row * n, n, n <= 1024 ? 32 : 256);
            }
            fast<S>().sum(x.data(), into(y, how), {2, n, 1});
            CHECK(bit_difference(y, want) == "");
        }
}

TEMPLATE_TEST_CASE("GPU kernels: elementwise bodies have the bits of the plain loop", "", float, double) {
    using S = TestType;
    for (std::size_t n : edges)
        for (Write how : {Write::set, Write::add}) {
            Dice dice(static_cast<unsigned>(n));
            INFO(dice.text() << ", " << n << " elements, " << write_names[static_cast<int>(how)]);
            const auto x = dice.numbers<S>(n, 0.1, 0.9), dy = dice.numbers<S>(n);
            each_functor<UnaryOps>([&](std::size_t slot, auto f) {
                INFO(static_cast<const char*>(f.name));
                CHECK(in_both<S>(dice, n, Write::set, [&](const Kernels<S>& k, Into<S[]> y) {
                          k.map[slot](&f, x.data(), y.dst, n);
                      }) == "");
                CHECK(in_both<S>(dice, n, how, [&](const Kernels<S>& k, Into<S[]> dx) {
                          k.map_back[slot](&f, dy.data(), f.keeps == Keep::nothing ? nullptr : x.data(), dx,
                                           n);
                      }) == "");
            });
        }
}

TEMPLATE_TEST_CASE("GPU kernels: broadcast gradients have the bits of the plain loop", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < 300; ++seed) {
        Dice dice(seed);
        const Write how = dice.how();
        std::vector<std::size_t> extents = dice.extents(1 + dice.upto(4));
        for (auto& extent : extents)  // makes rows so short that their sums have a fixed order
            extent = std::min(extent, longest_sequential_row);
        const auto walk = dice.walk<2>(extents, dice.coin());
        const auto choice = dice.walk<3>(extents, dice.coin());
        INFO(dice.text() << ", size " << walk.size << ", " << write_names[static_cast<int>(how)]);
        const auto a = dice.numbers<S>(walk.operand_size[0], 0.1, 0.9),
                   b = dice.numbers<S>(walk.operand_size[1], 0.1, 0.9), dy = dice.numbers<S>(walk.size),
                   y = dice.numbers<S>(walk.size, 0.1, 0.9);
        const auto c = dice.integers(choice.operand_size[0], 2);
        each_functor<BinaryOps>([&](std::size_t slot, auto f) {
            INFO(static_cast<const char*>(f.name));
            const auto kept = [](bool is, const Buffer<S>& of) { return is ? of.data() : nullptr; };
            CHECK(in_both<S>(dice, walk.size, Write::set, [&](const Kernels<S>& k, Into<S[]> to) {
                      k.zip[slot](&f, walk, a.data(), b.data(), to.dst);
                  }) == "");
            CHECK(in_both<S>(dice, walk.operand_size[0], how, [&](const Kernels<S>& k, Into<S[]> d) {
                      k.zip_back_a[slot](&f, walk, dy.data(), kept(f.for_a.a, a), kept(f.for_a.b, b),
                                         kept(f.for_a.y, y), d);
                  }) == "");
            CHECK(in_both<S>(dice, walk.operand_size[1], how, [&](const Kernels<S>& k, Into<S[]> d) {
                      k.zip_back_b[slot](&f, walk, dy.data(), kept(f.for_b.a, a), kept(f.for_b.b, b),
                                         kept(f.for_b.y, y), d);
                  }) == "");
        });
        for (int place : {1, 2})
            CHECK(in_both<S>(dice, choice.operand_size[static_cast<std::size_t>(place)], how,
                             [&](const Kernels<S>& k, Into<S[]> d) {
                                 k.where_back(choice, c.data(), dy.data(), place, d);
                             }) == "");
    }
}

TEMPLATE_TEST_CASE("GPU kernels: columns have the bits of the plain loop at any length", "", float, double) {
    using S = TestType;
    for (std::size_t reduced : edges)
        for (std::size_t inner : {2u, 31u, 33u})
            for (Write how : {Write::set, Write::add}) {
                Dice dice(static_cast<unsigned>(reduced));
                const detail::ReduceDims dims{2, reduced, inner};
                INFO(dice.text() << ", " << reduced << " rows of " << inner << ", "
                                 << write_names[static_cast<int>(how)]);
                const std::size_t size = 2 * reduced * inner, results = 2 * inner;
                const auto x = dice.numbers<S>(size), dy = dice.numbers<S>(size),
                           of_each = dice.numbers<S>(results);
                for (S& number : x) number = std::round(number * 16) / 16;  // makes equal numbers
                const auto forward = [&](std::size_t n, auto slot) {
                    return in_both<S>(dice, n, Write::set, [&](const Kernels<S>& k, Into<S[]> y) {
                        (k.*slot)(x.data(), y.dst, dims);
                    });
                };
                CHECK(in_both<S>(dice, results, how,
                                 [&](const Kernels<S>& k, Into<S[]> y) { k.sum(x.data(), y, dims); }) == "");
                CHECK(forward(results, &Kernels<S>::mean) == "");
                CHECK(forward(results, &Kernels<S>::logsumexp) == "");
                CHECK(forward(size, &Kernels<S>::softmax) == "");
                CHECK(forward(size, &Kernels<S>::log_softmax) == "");
                for (auto back : {&Kernels<S>::softmax_back, &Kernels<S>::log_softmax_back})
                    CHECK(in_both<S>(dice, size, how, [&](const Kernels<S>& k, Into<S[]> dx) {
                              (k.*back)(dy.data(), x.data(), dx, dims);
                          }) == "");
                CHECK(in_both<S>(dice, size, how, [&](const Kernels<S>& k, Into<S[]> dx) {
                          k.spread(of_each.data(), S(3), dx, dims);
                      }) == "");
                CHECK(in_both<S>(dice, size, how, [&](const Kernels<S>& k, Into<S[]> dx) {
                          k.logsumexp_back(of_each.data(), x.data(), of_each.data(), dx, dims);
                      }) == "");
                if (reduced == 0) continue;
                CHECK(forward(results, &Kernels<S>::max) == "");
                const Buffer<S> top(results);
                plain<S>().max(x.data(), top.data(), dims);
                CHECK(in_both<S>(dice, size, how, [&](const Kernels<S>& k, Into<S[]> dx) {
                          k.max_back(of_each.data(), x.data(), top.data(), dx, dims);
                      }) == "");
            }
}

TEMPLATE_TEST_CASE("GPU kernels: a sum over samples in two calls has the bits of one call", "", float,
                   double) {
    using S = TestType;
    constexpr std::size_t heads = 3, samples = 7;
    constexpr std::size_t add = slot<functor::Mul, BinaryOps>;
    const functor::Mul f;
    for (std::size_t length : {1u, 31u, 33u, 64u, 65u, 257u, 1025u})
        for (std::size_t cut : {1u, 3u, 6u}) {
            Dice dice(static_cast<unsigned>(length));
            INFO(dice.text() << ", " << samples << " x " << heads << " x " << length << ", cut after "
                             << cut);
            const auto walk = [&](std::size_t of) {  // operand b has one number per head
                StridedIndex<2> made;
                made.rank = 3;
                made.extent = {of, heads, length};
                made.size = of * heads * length;
                made.stride[0] = {static_cast<std::ptrdiff_t>(heads * length),
                                  static_cast<std::ptrdiff_t>(length), 1};
                made.stride[1] = {0, 1, 0};
                made.operand_size = {made.size, heads};
                return made;
            };
            const std::size_t sample = heads * length;
            const auto a = dice.numbers<S>(samples * sample), dy = dice.numbers<S>(samples * sample);
            const Buffer<S> once(heads), twice(heads);
            const auto back = [&](std::size_t first, std::size_t some, const Buffer<S>& d, Write how) {
                fast<S>().zip_back_b[add](&f, walk(some), dy.data() + first * sample,
                                          a.data() + first * sample, nullptr, nullptr, into(d, how));
            };
            back(0, samples, once, Write::set);
            back(0, cut, twice, Write::set);
            back(cut, samples - cut, twice, Write::add);
            CHECK(bit_difference(twice, once) == "");
        }
}

TEMPLATE_TEST_CASE("GPU kernels: rows_back adds rows in order, in two calls as in one", "", float, double) {
    using S = TestType;
    for (std::size_t count : {1u, 2u, 31u, 33u, 1025u})
        for (std::size_t width : {1u, 31u, 33u}) {
            Dice dice(static_cast<unsigned>(count));
            constexpr std::size_t height = 5;
            const std::size_t cut = count / 3;
            INFO(dice.text() << ", " << count << " rows of " << width);
            const auto index = dice.integers(count, height);
            for (auto& of_row : index)
                if (dice.upto(9) == 0) of_row = -1;
            const auto dy = dice.numbers<S>(count * width);
            const Buffer<S> once(height * width), twice(height * width), want(height * width);
            plain<S>().rows_back(dy.data(), index.data(), into(want, Write::set), count, height, width);
            fast<S>().rows_back(dy.data(), index.data(), into(once, Write::set), count, height, width);
            CHECK(bit_difference(once, want) == "");
            fast<S>().rows_back(dy.data(), index.data(), into(twice, Write::set), cut, height, width);
            fast<S>().rows_back(dy.data() + cut * width, index.data() + cut, into(twice, Write::add),
                                count - cut, height, width);
            CHECK(bit_difference(twice, once) == "");
        }
}

TEMPLATE_TEST_CASE("GPU kernels: a scatter with step 2 leaves zeros between its elements", "", float,
                   double) {
    using S = TestType;
    for (std::size_t n : edges) {
        Dice dice(static_cast<unsigned>(n));
        const Write how = dice.how();
        INFO(dice.text() << ", " << n << " numbers, " << write_names[static_cast<int>(how)]);
        StridedIndex<1> walk;
        walk.rank = 1;
        walk.extent = {n};
        walk.size = n;
        walk.stride[0] = {2};
        walk.operand_size = {2 * n + 4};
        const auto dy = dice.numbers<S>(n);
        const auto x = dice.destination<S>(walk.operand_size[0], how);
        const Buffer<S> want = x;
        fast<S>().scatter(walk, dy.data(), into(x, how));
        plain<S>().scatter(walk, dy.data(), into(want, how));
        CHECK(difference(x, want, 0) == "");
    }
}

TEMPLATE_TEST_CASE("GPU kernels: only large products call the library, and only in mode blas", "", float,
                   double) {
    using S = TestType;
    struct Size {
        std::size_t m, n, k;
        bool is_large;
    };
    for (const Size& size : {Size{16, 16, 16, false}, Size{16, 16, 17, true}, Size{1, 1, 4097, true},
                             Size{100, 100, 1, false}, Size{100, 100, 2, true}, Size{3, 0, 9, false}})
        for (const Products chosen : {Products::blas, Products::ordered}) {
            const std::size_t m = size.m, n = size.n, k = size.k;
            CAPTURE(m, n, k, static_cast<int>(chosen));
            const int expected = size.is_large && chosen == Products::blas;
            const Buffer<S> a(m * k), b(k * n), bias(n), c(m * n);
            for (const Buffer<S>* each : {&a, &b, &bias}) std::fill(each->begin(), each->end(), S(1));
            const auto asked = [&](auto compute) {
                WithLibrary::chosen = chosen;
                WithLibrary::asked = 0;
                compute();
                return WithLibrary::asked;
            };
            CHECK(asked([&] {
                      gpu::matmul<WithLibrary, S>({m, n, k, false, false}, a.data(), b.data(),
                                                  into(c, Write::set));
                  }) == expected);
            for (const bool has_bias : {true, false}) {
                const S* const added = has_bias ? bias.data() : nullptr;
                CHECK(asked([&] {
                          gpu::linear<WithLibrary, S>(a.data(), b.data(), added, c.data(), m, n, k);
                      }) == expected);
                CHECK(asked([&] {
                          gpu::linear_relu<WithLibrary, S>(a.data(), b.data(), added, c.data(), m, n, k);
                      }) == expected);
            }
        }
}

TEMPLATE_TEST_CASE("cross_entropy: an ignored label may be a class", "", float, double) {
    using S = TestType;
    for (std::size_t rows : edges) {
        Dice dice(static_cast<unsigned>(rows));
        const LabelOptions settings{1, dice.coin() ? 0.25 : 0};
        INFO(dice.text() << ", " << rows << " rows, smoothing " << settings.smoothing);
        const auto logits = dice.numbers<S>(rows * 3);
        const auto labels = dice.integers(rows, 3);
        const Buffer<S> p(rows * 3), want_p(rows * 3), total(1), want_total(1), count(1), want_count(1);
        fast<S>().cross_entropy(logits.data(), labels.data(), settings, p.data(), total.data(), count.data(),
                                rows, 3);
        plain<S>().cross_entropy(logits.data(), labels.data(), settings, want_p.data(), want_total.data(),
                                 want_count.data(), rows, 3);
        CHECK(bit_difference(p, want_p) == "");
        CHECK(difference(total, want_total, 8, static_cast<double>(rows)) == "");
        CHECK(bit_difference(count, want_count) == "");
    }
}

TEMPLATE_TEST_CASE("cross_entropy: a wrong label throws Error on the host, and later calls work", "", float,
                   double) {
    using S = TestType;
    const Buffer<S> logits(6), probabilities(6), total(1), count(1);
    std::fill(logits.begin(), logits.end(), S(1));
    const Buffer<std::int32_t> labels(2);
    const auto call = [&](std::int32_t first, std::int32_t second) {
        labels[0] = first;
        labels[1] = second;
        fast<S>().cross_entropy(logits.data(), labels.data(), LabelOptions{}, probabilities.data(),
                                total.data(), count.data(), 2, 3);
    };
    for (std::int32_t wrong : {-1, 3, 1000})
        CHECK_THROWS_WITH(call(2, wrong), contains("label " + std::to_string(wrong) +
                                                   " in row 1 is not one of the 3 classes"));
    CHECK_THROWS_WITH(call(7, 8), contains("label 7 in row 0"));
    CHECK_NOTHROW(call(2, -100));
    CHECK(count[0] == 1);
}

}  // namespace tally::test
