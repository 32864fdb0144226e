// Tests that a MovingAverage weights updates as documented. swap() exchanges the averages with the model's
// values, and loading restores every bit.
#include "tally/train/average.hpp"

#include <cmath>

#include "catch.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/tensor.hpp"

namespace tally::test {
namespace {

template <class S> void set(const Var<Array<S>>& w, const Array<S>& value) {
    w.modify_value([&](Array<S>& now) { std::copy_n(value.data(), value.size(), now.writable()); });
}

}  // namespace

TEST_CASE("MovingAverage: update k of t has the weight decay^(t - k) when bias is corrected") {
    for (double decay : {0.0, 0.5, 0.9, 0.999}) {
        const Tensor64 w = parameter<double>({0});
        MovingAverage<double> average({w}, {.decay = decay, .bias_correction = true});
        std::vector<double> seen;
        for (std::uint64_t t = 1; t <= 60; ++t) {
            seen.push_back(random::detail::normal<double>(3, 1, t));
            set(w, Array<double>{seen.back()});
            average.update();
            double sum = 0, weights = 0;
            for (std::size_t k = 0; k < seen.size(); ++k) {
                const double weight = std::pow(decay, static_cast<double>(seen.size() - 1 - k));
                sum += weight * seen[k];
                weights += weight;
            }
            INFO("decay " << decay << ", update " << t);
            REQUIRE(std::abs(average.value(0).item() - sum / weights) <= 1e-12);
        }
    }
}

TEMPLATE_TEST_CASE("MovingAverage::swap: the model has the averages until the next call", "", float, double) {
    using S = TestType;
    const Var<Array<S>> w = parameter(Array<S>{1, 2}), b = parameter(Array<S>{4});
    MovingAverage<S> average({w, b}, {.decay = 0.5});
    CHECK(average.value(0).to_vector() == std::vector<S>{1, 2});
    average.update();
    set(w, Array<S>{3, 6});
    average.update();
    CHECK(average.value(0).to_vector() == std::vector<S>{2, 4});
    const Array<S> copy = average.value(0);
    const Var<Array<S>> loss = sum(w * w);
    average.swap();
    CHECK(average.swapped());
    CHECK_THROWS_WITH(loss.backward(), contains("saved version"));
    CHECK(w.value().to_vector() == std::vector<S>{2, 4});
    CHECK(loss.value().item() == 45);
    CHECK_THROWS_WITH(average.update(), contains("[average] update: the model has the averages"));
    CHECK_THROWS_WITH(average.value(0), contains("swap() back first"));
    TrainingState state;
    CHECK_THROWS_WITH(average.save(state, "a"), contains("swap() back first"));
    CHECK_THROWS_WITH(average.load(state, "a"), contains("swap() back first"));
    const S* const place = w.value().data();
    average.swap();
    CHECK(w.value().data() == place);
    CHECK(w.value().to_vector() == std::vector<S>{3, 6});
    CHECK(average.value(0).to_vector() == std::vector<S>{2, 4});
    average.update();
    CHECK(average.value(0).to_vector() == std::vector<S>{2.5, 5});
    CHECK(average.value(1).item() == 4);
    CHECK(copy.to_vector() == std::vector<S>{2, 4});
    CHECK(average.updates() == 3);
}

TEST_CASE("MovingAverage::load: the average continues with the same bits, or nothing changes") {
    for (bool corrected : {false, true})
        for (std::uint64_t cut : {0u, 1u, 4u}) {
            const MovingAverage<double>::Options options{.decay = 0.9, .bias_correction = corrected};
            const Tensor64 w = parameter<double>({0, 0});
            MovingAverage<double> whole({w}, options), resumed({w}, options);
            const auto move = [&](std::uint64_t t) {
                set(w, randn<double>({2}, {.seed = 5, .stream = t}).value());
            };
            for (std::uint64_t t = 0; t < cut; ++t) move(t), whole.update();
            TrainingState state;
            whole.save(state, "a");
            resumed.load(state, "a");
            for (std::uint64_t t = cut; t < 9; ++t) move(t), whole.update(), resumed.update();
            CHECK(resumed.value(0).to_vector() == whole.value(0).to_vector());
            CHECK(state.get<std::int64_t>("a/updates") == static_cast<std::int64_t>(cut));
        }
    const Tensor64 w = parameter<double>({1, 2}), longer = parameter<double>({1, 2, 3});
    MovingAverage<double> average({w}, {.decay = 0.9}), other({longer}, {.decay = 0.9}),
        slower({w}, {.decay = 0.99}), two({w, longer}, {.decay = 0.9});
    average.update();
    const auto rejects = [&](const MovingAverage<double>& from, const std::string& words) {
        TrainingState state;
        from.save(state, "a");
        CHECK_THROWS_WITH(average.load(state, "a"), contains(words));
        CHECK(average.updates() == 1);
        CHECK(average.value(0).to_vector() == std::vector<double>{1, 2});
    };
    rejects(other, "[average] 'a/average/0' is (3), its parameter (2)");
    rejects(slower, "was saved with decay 0.99");
    rejects(two, "was saved with 2 parameters, here are 1");
}

TEST_CASE("MovingAverage: invalid options and numbers throw an Error") {
    const Tensor64 w = parameter<double>({1});
    CHECK_THROWS_WITH(MovingAverage<double>({w}, {.decay = 1}),
                      "[average] the decay must be from 0 to below 1; 1 is not");
    CHECK_THROWS_WITH(MovingAverage<double>({w}, {.decay = -0.1}), contains("decay"));
    CHECK_THROWS_WITH(MovingAverage<double>({w, w}), contains("is listed twice"));
    CHECK_THROWS_WITH(MovingAverage<double>({w}).value(1), contains("[average] value(1) of 1 averages"));
}

}  // namespace tally::test
