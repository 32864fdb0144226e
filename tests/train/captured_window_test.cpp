// A captured window where nothing is captured: on the CPU its function runs every time. And what it refuses
// from the start, wherever it runs.
#include "tally/train/captured_window.hpp"

#include <limits>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/train/image_layers.hpp"

namespace tally::test {

namespace {

struct Line {
    Tensor64 w = parameter(Array<double>({0.5, -1.25, 0.75}));
    Array<double> x = random_normal<double>({6, 3}, {.seed = 1, .stream = 1});
    Sgd<double> sgd{{w}, {.learning_rate = 0.1, .momentum = 0.9}};

    auto adding() {
        return [this](Window<double>& window) {
            for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 6)})
                window.add(counted(matmul(Tensor64(x.leading(from, to)), w)));
        };
    }
};

}  // namespace

TEST_CASE("On the CPU a replay is a window like any other") {
    Line one, other;
    Window<double> window(one.sgd, {.total = 6, .max_norm = 0.1}),
        ordinary(other.sgd, {.total = 6, .max_norm = 0.1});
    CapturedWindow<double> captured(window, one.adding());
    for (int update = 1; update <= 5; ++update) {
        const Array<double> x =
            random_normal<double>({6, 3}, {.seed = 2, .stream = static_cast<std::uint64_t>(update)});
        refill(one.x, x);
        other.x = x;
        other.adding()(ordinary);
        const auto want = ordinary.finish(), got = captured.replay();
        CHECK(got.stepped);
        CHECK(got.micro_batches == 2);
        CHECK(got.loss() == want.loss());
        CHECK(*got.norm == *want.norm);
        CHECK(one.w.value().to_vector() == other.w.value().to_vector());
        CHECK(window.updates() == update);
    }
    CHECK_FALSE(captured.captured());
}

TEST_CASE("What the host must decide inside a window is refused before anything is captured") {
    Line one;
    const auto said = [&](WindowOptions<double> options) {
        Window<double> window(one.sgd, options);
        return message_of([&] { CapturedWindow<double>(window, one.adding()); });
    };
    CHECK(said({.total = 6}) == "no error");
    CHECK(said({.reduction = Reduction::sum}) == "no error");
    CHECK(said({.total = 6, .non_finite = NonFinite::drop_window}) == "no error");
    CHECK_THAT(said({}), contains("[capture] a total that is found at the end is found by the host"));
    CHECK_THAT(said({.total = 6, .weigh = Weigh::micro_batches}), contains("use Weigh::counted"));
    CHECK_THAT(said({.total = 6, .tail = Tail::carry}), contains("a captured window is always whole"));
    CHECK_THAT(said({.total = 6, .tail = Tail::drop}), contains("a captured window is always whole"));
    CHECK_THAT(said({.total = 6, .non_finite = NonFinite::drop_micro}),
               contains("use NonFinite::drop_window"));
    Window<double> window(one.sgd, {.total = 6});
    CHECK_THROWS_WITH(CapturedWindow<double>(window, {}), contains("there is no function"));
}

TEST_CASE("What the function leaves for the host is refused on the CPU as well") {
    Line one;
    const std::vector<double> was = one.w.value().to_vector();
    Window<double> window(one.sgd, {.total = 6});
    BatchNorm<double> norm(3);
    const auto said = [&](CapturedWindow<double>::Work work) {
        CapturedWindow<double> captured(window, std::move(work));
        const std::string words = message_of([&] { captured.replay(); });
        CHECK(window.empty());
        CHECK(one.w.value().to_vector() == was);
        return words;
    };
    CHECK(said([](Window<double>&) {}) == "[capture] no micro-batch has come");
    CHECK_THAT(said([&](Window<double>& w) {
                   one.adding()(w);
                   w.once(sum(one.w * one.w));
               }),
               contains("[capture] a term that counts once()"));
    CHECK_THAT(
        said([&](Window<double>& w) { w.add(counted(matmul(norm(constant(one.x), w.pass(6)), one.w))); }),
        contains("[capture] effects, such as batch norm's running statistics"));
    CapturedWindow<double> captured(window, one.adding());
    CHECK(captured.replay().stepped);
}

TEST_CASE("After a replay that throws the next one begins anew") {
    Line one, other;
    Window<double> window(one.sgd, {.total = 6}), ordinary(other.sgd, {.total = 6});
    CapturedWindow<double> captured(window, one.adding());
    const std::vector<double> was = one.w.value().to_vector();
    const Array<double> x = one.x.clone();
    refill(one.x, Array<double>::full({6, 3}, std::numeric_limits<double>::quiet_NaN()));
    CHECK_THROWS_WITH(captured.replay(), contains("infinite or NaN"));
    CHECK(one.w.value().to_vector() == was);
    refill(one.x, x);
    CHECK(captured.replay().stepped);
    other.adding()(ordinary);
    ordinary.finish();
    CHECK(one.w.value().to_vector() == other.w.value().to_vector());
}

TEST_CASE("What is refilled is seen by every handle and by who saved it") {
    const Array<double> place({3}, {1, 2, 3}), same = place;
    const Tensor64 w = parameter(Array<double>({3}, {1, 1, 1}));
    const Tensor64 y = sum(constant(place) * w);
    refill(place, Array<double>({3}, {4, 5, 6}));
    CHECK(same.to_vector() == std::vector<double>{4, 5, 6});
    CHECK_THROWS_WITH(y.backward(), contains("changed in place between forward and backward"));
    CHECK_THROWS_WITH(refill(place, Array<double>({2}, {4, 5})),
                      "[refill] the place is (3), the numbers are (2)");
    CHECK_THROWS_WITH(refill(Array<double>(), place), contains("[refill]"));
}

TEST_CASE("A window's update is decided by count and norm") {
    constexpr double inf = std::numeric_limits<double>::infinity(),
                     nan = std::numeric_limits<double>::quiet_NaN();
    struct Case {
        double squares, odd, count, total;
        bool clips, wrong_label, withheld;
        double factor;
    };
    const double sum = 3;
    for (const Case& c :
         {Case{4, 0, 6, 6, true, false, false, 1 / (2 + 1e-6)}, Case{4, 0, 6, 6, false, false, false, 1},
          Case{0.25, 0, 6, 6, true, false, false, 1}, Case{4, 0, 6, 0, true, false, false, 1 / (2 + 1e-6)},
          Case{4, 0, 6.5, 6, false, false, false, 1},  // within `few`
          Case{4, 0, 5, 6, false, false, true, 1},     // too few
          Case{4, 0, 7, 6, false, false, true, 1},     // too many
          Case{0, 0, 0, 0, false, false, true, 1},     // nothing
          Case{nan, 1, 6, 6, false, false, true, 1},   //
          Case{inf, 0, 6, 6, false, false, false, 1},  // squares overflow, which only a
          Case{inf, 0, 6, 6, true, false, true, 0},    // norm minds
          Case{4, 0, 6, 6, false, true, true, 1}}) {
        INFO(c.squares << " " << c.count << " of " << c.total << ", clips " << c.clips);
        detail::Decisions<double> d;
        d.found[0] = c.squares;
        d.found[1] = c.odd;
        detail::decide(d, detail::Conditions<double>{&sum, &c.count, c.total, 0.5, 1, 7, c.clips},
                       c.wrong_label);
        CHECK(d.withheld == c.withheld);
        CHECK(d.limit.factor == c.factor);
        CHECK(d.limit.max_value == 7);
        CHECK(d.sum == 3);
        CHECK(d.count == c.count);
    }
}

}  // namespace tally::test
