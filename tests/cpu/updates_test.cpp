// Tests that the kernels of optimizers compute the same bits as plain loops, and write only to their results.
#include <utility>

#include "kernel_testing.hpp"

namespace tally::test {
namespace {

// Tensors of many sizes, with buffers for an update. One launch cannot update so many tensors.
template <class S> struct List {
    std::vector<Buffer<S>> values, gradients, first, second;
    std::vector<Update<S>> updates;

    List(Dice& dice, std::size_t tensors, const std::vector<std::size_t>& sizes = awkward_sizes) {
        for (auto* part : {&values, &gradients, &first, &second})
            part->reserve(tensors);  // so that later push_back() calls do not move the buffers
        for (std::size_t t = 0; t < tensors; ++t) {
            const std::size_t n = dice.pick(sizes);
            const Write state = dice.how();
            values.push_back(dice.numbers<S>(n));
            gradients.push_back(dice.numbers<S>(n));
            first.push_back(dice.destination<S>(n, state));
            second.push_back(dice.destination<S>(n, state));
            if (state == Write::add)
                for (S& v : second.back()) v = std::abs(v);
            updates.push_back(
                {values[t].data(), gradients[t].data(), first[t].data(), second[t].data(), n, state});
        }
    }
    List(const List& other)
        : values(other.values), gradients(other.gradients), first(other.first), second(other.second) {
        for (std::size_t t = 0; t < values.size(); ++t) {
            const auto there = [](const S* p, const Buffer<S>& buffer) {
                return p ? buffer.data() : nullptr;
            };
            const Update<S>& u = other.updates[t];
            updates.push_back({there(u.value, values[t]), there(u.gradient, gradients[t]),
                               there(u.first, first[t]), there(u.second, second[t]), u.size, u.state});
        }
    }
};

// Calls the kernels of both kernel tables with equal lists of tensors, and compares the results.
template <class S, class Step>
std::string in_both(const List<S>& list, void (*Kernels<S>::*slot)(std::span<const Update<S>>, const Step&),
                    const Step& step) {
    const List<S> got = list, want = list;
    (fast<S>().*slot)(got.updates, step);
    (plain<S>().*slot)(want.updates, step);
    for (std::size_t t = 0; t < list.updates.size(); ++t)
        for (auto part : {&List<S>::values, &List<S>::gradients, &List<S>::first, &List<S>::second})
            if (const std::string apart = bit_difference((got.*part)[t], (want.*part)[t]); apart != "")
                return "tensor " + std::to_string(t) + ": " + apart;
    return "";
}

const std::vector<std::size_t> counts{0, 1, 3, 64, 65, 130};

}  // namespace

TEMPLATE_TEST_CASE("sgd: has the bits of the plain loop", "", float, double) {
    using S = TestType;
    for (std::size_t tensors : counts)
        for (bool momentum : {false, true})
            for (bool nesterov : {false, true})
                for (bool decays : {false, true}) {
                    Dice dice(static_cast<unsigned>(tensors));
                    INFO(dice.text() << ", " << tensors << " tensors, " << momentum << nesterov << decays);
                    List<S> list(dice, tensors);
                    if (!momentum)
                        for (Update<S>& u : list.updates) u.first = u.second = nullptr;
                    const SgdStep<S> step{S(-0.1), S(0.9), S(0.7), S(0.3), nesterov, decays};
                    CHECK(in_both(list, &Kernels<S>::sgd, step) == "");
                }
}

TEMPLATE_TEST_CASE("adam: has the bits of the plain loop, also when only moments or values change", "", float,
                   double) {
    using S = TestType;
    for (std::size_t tensors : counts)
        for (bool decays : {false, true})
            for (int part : {0, 1, 2}) {
                Dice dice(static_cast<unsigned>(tensors));
                INFO(dice.text() << ", " << tensors << " tensors, " << decays << part);
                List<S> list(dice, tensors);
                for (Update<S>& u : list.updates) {
                    if (part == 1) u.value = nullptr;
                    if (part == 2) u.gradient = nullptr;
                }
                const AdamStep<S> step{S(0.9),  S(0.1),  S(0.8), S(0.2),         S(-0.1),
                                       S(0.99), S(1e-3), S(0.3), S(1 - 0.03125), decays && part != 1};
                CHECK(in_both(list, &Kernels<S>::adam, step) == "");
                if (part == 0) continue;
                const List<S> after = list;
                fast<S>().adam(after.updates, step);
                for (std::size_t t = 0; t < tensors; ++t) {
                    if (part == 1) CHECK(bit_difference(after.values[t], list.values[t]) == "");
                    if (part == 2) CHECK(bit_difference(after.first[t], list.first[t]) == "");
                    if (part == 2) CHECK(bit_difference(after.second[t], list.second[t]) == "");
                }
            }
}

TEMPLATE_TEST_CASE("average, limit: have the bits of the plain loop", "", float, double) {
    using S = TestType;
    const S inf = std::numeric_limits<S>::infinity(), nan = std::numeric_limits<S>::quiet_NaN();
    for (std::size_t tensors : counts) {
        Dice dice(static_cast<unsigned>(tensors));
        INFO(dice.text() << ", " << tensors << " tensors");
        List<S> list(dice, tensors);
        for (Update<S>& u : list.updates) u.first = u.second = nullptr;
        CHECK(in_both(list, &Kernels<S>::average, AverageStep<S>{S(0.9), S(0.1)}) == "");
        for (Update<S>& u : list.updates) u.gradient = nullptr;
        for (const Buffer<S>& values : list.values)
            for (std::size_t i = 0; i < values.size(); i += 5)
                values[i] = dice.pick<S>({inf, -inf, nan, -S(0)});
        CHECK(in_both(list, &Kernels<S>::limit, LimitStep<S>{S(0.75), inf}) == "");
        CHECK(in_both(list, &Kernels<S>::limit, LimitStep<S>{S(1), S(0.5)}) == "");
        fast<S>().limit(list.updates, LimitStep<S>{S(1), S(0.5)});
        for (const Buffer<S>& values : list.values)
            for (S x : values) CHECK((std::isnan(x) || std::abs(x) <= S(0.5)));
    }
}

TEMPLATE_TEST_CASE("measure: adds every element of the gradients once, in double", "", float, double) {
    using S = TestType;
    const S inf = std::numeric_limits<S>::infinity(), nan = std::numeric_limits<S>::quiet_NaN();
    for (std::size_t tensors : {0u, 1u, 3u, 64u, 65u, 130u}) {
        Dice dice(static_cast<unsigned>(tensors));
        INFO(dice.text() << ", " << tensors << " tensors");
        const List<S> list(dice, tensors);
        const auto measure = [&](const Kernels<S>& k, bool squares = true) {
            const Buffer<double> found(2);
            k.measure(list.updates, squares, found.data());
            CHECK(found.guards_hold());
            return std::array<double, 2>{found[0], found[1]};
        };
        // The sum of squares of multiples of 1/8 is exact in every order of additions.
        for (const Buffer<S>& g : list.gradients)
            for (S& x : g) x = std::round(x * 8) / 8;
        CHECK(measure(fast<S>()) == measure(plain<S>()));
        double odd = 0;
        for (const Buffer<S>& g : list.gradients)
            for (std::size_t i = 0; i < g.size(); i += 1 + dice.upto(300), odd += 1)
                g[i] = dice.pick<S>({inf, -inf, nan});
        CHECK(measure(fast<S>())[1] == odd);
        CHECK(std::isfinite(measure(fast<S>())[0]) == (odd == 0));
        CHECK(measure(fast<S>(), false) == std::array<double, 2>{0, odd});
        CHECK(measure(plain<S>(), false) == std::array<double, 2>{0, odd});
    }
    const Buffer<S> large(70 * 8192 + 5);
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<S>(i % 7) / 8;
    std::vector<Update<S>> one(1);
    one[0].gradient = large.data();
    one[0].size = large.size();
    const Buffer<double> got(2), want(2), again(2);
    fast<S>().measure(one, true, got.data());
    plain<S>().measure(one, true, want.data());
    CHECK(bit_difference(got, want) == "");
    one[0].size = 3 * 8192 + 5;
    for (S& x : large) x = static_cast<S>(static_cast<double>(x) * 1.1);
    fast<S>().measure(one, true, got.data());
    fast<S>().measure(one, true, again.data());
    plain<S>().measure(one, true, want.data());
    CHECK(bit_difference(got, again) == "");
    CHECK(std::abs(got[0] - want[0]) <= 1e-13 * want[0]);
}

TEMPLATE_TEST_CASE("optimizers, measure: several threads compute the bits of one", "", float, double) {
    using S = TestType;
    for (int threads : {1, 2, 3}) {
        const Threads some(threads);
        Dice dice(static_cast<unsigned>(threads));
        INFO(dice.text() << ", " << threads << " threads");
        List<S> list(dice, 6, {65535, 65536, 98303, 98305, 131071});
        const AdamStep<S> adam{S(0.9),  S(0.1),  S(0.8), S(0.2),         S(-0.1),
                               S(0.99), S(1e-3), S(0.3), S(1 - 0.03125), true};
        CHECK(in_both(list, &Kernels<S>::adam, adam) == "");
        const Buffer<double> found(2);
        fast<S>().measure(list.updates, false, found.data());
        CHECK(found[1] == 0);
        for (int i = 0; i < 20; ++i) {
            const Buffer<S>& g = list.gradients[dice.upto(5)];
            S& x = g[i == 0 ? 0 : i == 1 ? g.size() - 1 : dice.upto(g.size() - 1)];
            const S before = std::exchange(x, dice.pick<S>({std::numeric_limits<S>::infinity(), S(NAN)}));
            fast<S>().measure(list.updates, false, found.data());
            CHECK(found[0] == 0);
            CHECK(found[1] == 1);
            x = before;
        }
        for (Update<S>& u : list.updates) u.first = u.second = nullptr;
        CHECK(in_both(list, &Kernels<S>::sgd, SgdStep<S>{S(-0.1), 0, 1, S(0.3), false, true}) == "");
        CHECK(in_both(list, &Kernels<S>::average, AverageStep<S>{S(0.9), S(0.1)}) == "");
        for (Update<S>& u : list.updates) u.gradient = nullptr;
        CHECK(in_both(list, &Kernels<S>::limit, LimitStep<S>{S(0.75), S(0.5)}) == "");
    }
}

}  // namespace tally::test
