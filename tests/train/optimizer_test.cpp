// Tests that optimizers skip parameters without a gradient, continue with the same bits after loading, and
// reject invalid arguments. Also tests AdamA, and the memory that optimizers use.
#include "tally/train/optimizer.hpp"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>

#include "../lessons/adam_a.hpp"
#include "catch.hpp"
#include "io/file_testing.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train/window.hpp"

namespace tally::test {
namespace {

using lesson::AdamA;

template <class S> using Parameters = std::vector<Var<Array<S>>>;

template <class S> std::vector<std::function<std::unique_ptr<Optimizer<S>>(Parameters<S>)>> kinds() {
    return {
        [](auto w) { return std::make_unique<Sgd<S>>(w, Sgd<double>::Options{.learning_rate = 0.1}); },
        [](auto w) {
            return std::make_unique<Sgd<S>>(
                w, Sgd<double>::Options{
                       .learning_rate = 0.1, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.1});
        },
        [](auto w) {
            return std::make_unique<Sgd<S>>(
                w, Sgd<double>::Options{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true});
        },
        [](auto w) { return std::make_unique<Adam<S>>(w, Adam<double>::Options{.weight_decay = 0.1}); },
        [](auto w) { return std::make_unique<AdamW<S>>(w); },
        [](auto w) { return std::make_unique<AdamA<S>>(w, Adam<double>::Options{.weight_decay = 0.1}); },
    };
}

// A Training stores a random training run. Each step sets random gradients for some of the parameters.
template <class S> struct Training {
    explicit Training(unsigned number) : seed(number), dice(number) {
        for (std::size_t k = 0; k < 2 + number % 4; ++k)
            shapes.push_back(
                Shape{static_cast<std::int64_t>(1 + dice() % 5), static_cast<std::int64_t>(dice() % 20)});
    }
    Parameters<S> parameters() const {
        Parameters<S> made;
        for (std::size_t k = 0; k < shapes.size(); ++k)
            made.push_back(parameter(randn<S>(shapes[k], {.seed = seed, .stream = 1000 + k}).value()));
        return made;
    }
    bool reached(std::size_t k, std::size_t step) const {
        return random::detail::bits(seed, 2000 + k, step) % 4 != 0;
    }
    void set_gradients(const Parameters<S>& to, std::size_t step) const {
        for (std::size_t k = 0; k < to.size(); ++k) {
            to[k].zero_grad();
            if (reached(k, step))
                to[k].backward(randn<S>(shapes[k], {.seed = seed, .stream = 100 * step + k}).value());
        }
    }
    // If the optimizer is AdamA, calls fold() for one more gradient, so that an update is incomplete.
    void fold(Optimizer<S>& optimizer, std::size_t step) const {
        if (auto* const folding = dynamic_cast<AdamA<S>*>(&optimizer)) {
            set_gradients(optimizer.parameters(), step + 500);
            folding->fold();
        }
    }

    unsigned seed;
    std::mt19937 dice;
    std::vector<Shape> shapes;
};

template <class S> bool same_values(const Parameters<S>& a, const Parameters<S>& b) {
    for (std::size_t k = 0; k < a.size(); ++k) {
        const std::vector<S> x = a[k].value().to_vector(), y = b[k].value().to_vector();
        if (x.size() != y.size() ||
            (!x.empty() && std::memcmp(x.data(), y.data(), x.size() * sizeof(S)) != 0))
            return false;
    }
    return true;
}

template <class S> TrainingState saved(const Optimizer<S>& optimizer) {
    TrainingState state;
    optimizer.save(state, "o");
    return state;
}

}  // namespace

TEMPLATE_TEST_CASE("Optimizer::step: parameters are updated independently", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < 40; ++seed)
        for (const auto& make : kinds<S>()) {
            const Training<S> training(seed);
            const auto together = training.parameters(), separate = training.parameters();
            const auto all = make(together);
            std::vector<std::unique_ptr<Optimizer<S>>> each;
            for (const auto& w : separate) each.push_back(make({w}));
            INFO("seed " << seed << ", " << all->name());
            for (std::size_t step = 0; step < 6; ++step) {
                training.set_gradients(together, step);
                training.set_gradients(separate, step);
                all->step();
                for (const auto& optimizer : each) optimizer->step();
            }
            REQUIRE(same_values(together, separate));
            REQUIRE_FALSE(same_values(together, training.parameters()));
        }
}

TEMPLATE_TEST_CASE("Optimizer::step: a parameter without a gradient is not updated", "", float, double) {
    using S = TestType;
    for (const auto& make : kinds<S>()) {
        const Parameters<S> w{parameter(Array<S>{1, 2}), parameter(Array<S>{3})},
            alone{parameter(Array<S>{3})};
        const auto both = make(w), one = make(alone);
        INFO(both->name());
        for (int step = 0; step < 8; ++step) {
            w[0].backward(Array<S>{1, -1});
            both->step();
            CHECK(w[1].item() == alone[0].item());
            both->zero_grad();
            if (step % 3 != 2) continue;
            w[1].backward(Array<S>{static_cast<S>(step)});
            alone[0].backward(Array<S>{static_cast<S>(step)});
            both->step();
            one->step();
            CHECK(w[1].item() == alone[0].item());
            CHECK(w[1].item() != 3);
            both->zero_grad();
            one->zero_grad();
        }
    }
}

TEMPLATE_TEST_CASE("Optimizer::load: a loaded training continues with the same bits", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < 30; ++seed)
        for (const auto& make : kinds<S>()) {
            const Training<S> training(seed);
            const auto plain = training.parameters(), before = training.parameters();
            const auto whole = make(plain), first = make(before);
            INFO("seed " << seed << ", " << whole->name());
            std::unique_ptr<Optimizer<S>> second;
            Parameters<S> after;
            const std::size_t cut = seed % 5;
            const auto go = [&](Optimizer<S>& optimizer, std::size_t step) {
                training.set_gradients(optimizer.parameters(), step);
                optimizer.set_learning_rate(0.1 / static_cast<double>(1 + step / 2));
                optimizer.step();
            };
            for (std::size_t step = 0; step < 6; ++step) {
                training.fold(*whole, step);
                training.fold(second ? *second : *first, step);
                if (step == cut) {  // AdamA is in the middle of a window
                    const TrainingState state = saved(*first);
                    for (const auto& w : before) after.push_back(parameter(w.value().clone()));
                    go(*first, step);  // would change the saved state if it shared memory with `first`
                    second = make(after);
                    second->load(state, "o");
                    CHECK(second->learning_rate() == whole->learning_rate());
                    const TrainingState again = saved(*second);
                    CHECK(again.entries().size() == state.entries().size());
                }
                go(*whole, step);
                go(second ? *second : *first, step);
            }
            REQUIRE(same_values(plain, after));
        }
}

TEST_CASE("Optimizer::load: a state that does not fit throws an Error and changes nothing") {
    const Parameters<double> w{parameter<double>({1, 2}), parameter<double>({3})};
    Adam<double> adam(w, {.learning_rate = 0.5});
    const auto step = [&](Optimizer<double>& optimizer) {
        for (const auto& each : w) each.backward(each.value());
        optimizer.step();
    };
    step(adam);
    const TrainingState state = saved(adam);
    step(adam);
    adam.schedule_learning_rate(0.25);
    const TrainingState now = saved(adam);
    const auto rejects = [&](const TrainingState& wrong, const std::string& words) {
        CHECK_THROWS_WITH(adam.load(wrong, "o"), contains(words));
        const TrainingState then = saved(adam);
        CHECK(then.get<double>("o/learning_rate") == 0.25);
        CHECK(then.get<std::int64_t>("o/updates/0") == 2);
        for (const char* name : {"o/m/0", "o/m/1", "o/v/0", "o/v/1"})
            CHECK(then.get<Array<double>>(name).to_vector() == now.get<Array<double>>(name).to_vector());
    };
    rejects(TrainingState(), "there is no 'o/name'");
    rejects(with(state, "o/v/1", {}), "there is no 'o/v/1'");
    rejects(with(state, "o/updates/1", {}), "there is no 'o/updates/1'");
    rejects(with(state, "o/v/1", Array<double>{1, 2}), "[Adam] 'o/v/1' is (2), its parameter (1)");
    rejects(with(state, "o/m/1", Array<float>{1}), "'o/m/1' has another type");
    rejects(with(state, "o/updates/1", std::int64_t{-1}),
            "'o/updates/1' is -1, a count from 0 to 9007199254740992 expected");
    rejects(with(state, "o/learning_rate", -1.0), "learning rate");
    rejects(with(state, "o/parameters", std::int64_t{3}), "was saved with 3 parameters, here are 2");
    rejects(with(state, "o/options/beta1", 0.5), "was saved with beta1 0.5, here it is 0.9");
    rejects(with(state, "o/name", std::string("SGD")), "[Adam] 'o' was saved by SGD");
    adam.load(state, "o");
    CHECK(adam.learning_rate() == 0.5);
    CHECK(saved(adam).get<std::int64_t>("o/updates/0") == 1);
}

TEST_CASE("Optimizer: invalid options and parameters throw an Error") {
    const Tensor64 w = parameter<double>({1, 2}), c = constant<double>({1});
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto sgd = [&](Sgd<double>::Options options) { Sgd<double>({w}, options); };
    const auto adam = [&](Adam<double>::Options options) { Adam<double>({w}, options); };
    CHECK_THROWS_WITH(sgd({.learning_rate = -0.5}),
                      "[SGD] the learning rate must be finite and at least 0; -0.5 is not");
    CHECK_THROWS_WITH(sgd({.learning_rate = nan}), contains("learning rate"));
    CHECK_THROWS_WITH(sgd({.momentum = -0.1}), contains("momentum must be"));
    CHECK_THROWS_WITH(sgd({.momentum = 0.9, .dampening = nan}), contains("dampening"));
    CHECK_THROWS_WITH(sgd({.weight_decay = -1}), contains("weight_decay"));
    CHECK_THROWS_WITH(sgd({.nesterov = true}), contains("nesterov requires a momentum and no dampening"));
    CHECK_THROWS_WITH(sgd({.momentum = 0.9, .dampening = 0.1, .nesterov = true}), contains("nesterov"));
    CHECK_THROWS_WITH(adam({.learning_rate = -1}), contains("[Adam] the learning rate"));
    CHECK_THROWS_WITH(adam({.beta1 = 1}), "[Adam] beta1 must be from 0 to below 1; 1 is not");
    CHECK_THROWS_WITH(adam({.beta1 = -0.1}), contains("beta1"));
    CHECK_THROWS_WITH(adam({.beta2 = nan}), contains("beta2"));
    CHECK_THROWS_WITH(adam({.eps = -1e-8}), contains("eps"));
    CHECK_THROWS_WITH(adam({.weight_decay = -1}), contains("weight_decay"));
    CHECK_THROWS_WITH(AdamA<double>({w}, {.beta2 = 2}), contains("[AdamA] beta2"));
    CHECK_THROWS_WITH(Sgd<double>({}, {}), "[SGD] the list of parameters is empty");
    CHECK_THROWS_WITH(Sgd<double>({w, c}, {}),
                      contains("[SGD] parameter 1 of shape (1) is the result of 'constant'"));
    CHECK_THROWS_WITH(AdamW<double>({w, w * 2.0}), contains("is the result of 'mul_number'"));
    CHECK_THROWS_WITH(Sgd<double>({w, c, w}, {}), contains("parameter 1"));
    CHECK_THROWS_WITH(Sgd<double>({w, w}, {}), contains("parameter 1 of shape (2) is listed twice"));
    CHECK_THROWS_WITH(Sgd<double>({w, Tensor64()}, {}), contains("parameter 1 is an empty variable"));
    Sgd sgd_of_one({w}, Sgd<double>::Options{.learning_rate = 0.1});  // the compiler deduces the element type
    CHECK_THROWS_WITH(sgd_of_one.set_learning_rate(nan), contains("learning rate"));
    CHECK(sgd_of_one.learning_rate() == 0.1);
}

TEST_CASE("Optimizer::step: a step between forward and backward throws an Error in backward()") {
    const Tensor64 w = parameter<double>({1, 2});
    for (const auto& make : kinds<double>()) {
        const auto optimizer = make({w});
        INFO(optimizer->name());
        const Tensor64 loss = sum(w * w);
        const Array<double> copy = w.value();
        const std::vector<double> had = copy.to_vector();
        w.backward(Array<double>{1, 1});
        optimizer->step();
        CHECK_THROWS_WITH(loss.backward(), contains("saved version"));
        CHECK(copy.to_vector() == had);
        CHECK(w.value().to_vector() != had);
        w.zero_grad();
    }
}

TEST_CASE("Optimizer::step: later steps allocate no memory") {
    for (const auto& make : kinds<double>()) {
        const Tensor64 w = parameter(Array<double>::full({100}, 1)), b = parameter<double>({1});
        const auto optimizer = make({w, b});
        INFO(optimizer->name());
        const auto step = [&] {
            for (const Tensor64& each : optimizer->parameters()) each.backward(each.value());
            optimizer->step();
            optimizer->zero_grad();
        };
        step();
        const auto allocations = memory::report().allocations;
        const double* const place = w.value().data();
        step();
        step();
        CHECK(memory::report().allocations == allocations);
        CHECK(w.value().data() == place);
    }
}

TEST_CASE("AdamA::step: if an allocation fails, the step is complete or has no effect") {
    const auto bytes = [](const AdamA<double>& adam) { return detail::state_bytes(saved(adam)); };
    const auto set_gradients = [](const AdamA<double>& adam, double g) {
        for (const Tensor64& each : adam.parameters()) each.backward(Array<double>::full(each.shape(), g));
    };
    // AdamA has folded the gradients of one micro-batch, but not those of a second micro-batch.
    const auto made = [&] {
        auto adam = std::make_unique<AdamA<double>>(
            Parameters<double>{parameter<double>({0.5, 2}), parameter<double>({-1, 3, 4})});
        adam->parameters()[0].backward(Array<double>::full({2}, 0.5));
        adam->fold();
        set_gradients(*adam, 0.25);
        return adam;
    };
    const auto wanted = made();
    wanted->step();
    int failures = 0;
    for (std::uint64_t n = 1;; ++n) {
        const auto adam = made();
        const std::string before = bytes(*adam);
        const std::size_t state_bytes = adam->state_size().now;
        std::vector<Array<double>> held;  // shares the values, so they cannot be updated in place
        for (const Tensor64& each : adam->parameters()) held.push_back(each.value());
        memory::detail::fail_allocation(n);
        bool failed = false;
        try {
            adam->step();
        } catch (const OutOfMemory&) {
            failed = true;
        }
        memory::detail::fail_allocation(0);
        if (failed) {
            ++failures;
            CHECK(bytes(*adam) == before);
            CHECK(adam->state_size().now == state_bytes);
            adam->step();
        }
        CHECK(bytes(*adam) == bytes(*wanted));
        CHECK(same_values(adam->parameters(), wanted->parameters()));
        if (!failed) break;
    }
    CHECK(failures >= 4);  // allocations of two values and of the second parameter's two moments
}

TEST_CASE("AdamA::fold: a call during backward() throws an Error before it changes anything") {
    const Tensor64 w = parameter<double>({1, 2}), x = parameter<double>({3, 4});
    AdamA<double> adam({w, x});
    w.backward(Array<double>{1, 1});
    const std::string before = detail::state_bytes(saved(adam));
    sum(x * x).backward([&](const detail::VisitedNode<Array<double>>&) {
        CHECK_THROWS_WITH(adam.fold(), contains("[fold] a backward() is running"));
    });
    CHECK(detail::state_bytes(saved(adam)) == before);
    CHECK(w.has_grad());
}

TEST_CASE("AdamA: in a window AdamA gets one mean gradient and equals AdamW") {
    const Tensor64 a = parameter<double>({0.5}), b = parameter<double>({0.5});
    AdamA folding({a}, {.weight_decay = 0.01});
    AdamW plain({b}, {.weight_decay = 0.01});
    Window<double> window(folding, {.micro_batches = 2}), of_plain(plain, {.micro_batches = 2});
    for (const double g : {0.5, -0.25, 2.0, 1.0}) {
        window.add(Loss(a * g));
        CHECK_THROWS_WITH(folding.fold(), contains("[fold] a window is open"));
        of_plain.add(Loss(b * g));
        if (!window.full()) continue;
        window.finish();
        of_plain.finish();
        CHECK(a.item() == b.item());
    }
    CHECK(a.item() != 0.5);
}

TEST_CASE("AdamA: the steps follow its recurrence, and one micro-batch equals AdamW") {
    for (unsigned seed = 0; seed < 50; ++seed) {
        INFO("seed " << seed);
        const Adam<double>::Options options{
            .learning_rate = 0.1, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.2};
        const Tensor64 a = parameter<double>({0.5}), b = parameter<double>({0.5}),
                       c = parameter<double>({0.5});
        AdamA folded({a}, options), one_micro_batch({b}, options);
        AdamW plain({c},
                    {.learning_rate = 0.1, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.2});
        double w = 0.5, m = 0, v = 0;
        for (std::uint64_t t = 1; t <= 20; ++t) {
            const std::uint64_t micro_batches = 1 + random::detail::bits(seed, 1, t) % 4;
            w *= 1 - 0.1 * 0.2, m *= 0.8, v *= 0.9;
            for (std::uint64_t n = 0; n < micro_batches; ++n) {
                const double g = random::detail::normal<double>(seed, 2, 4 * t + n);
                m += (1 - 0.8) * g, v += (1 - 0.9) * g * g;
                a.backward(Array<double>{g});
                folded.fold();
            }
            const double power = static_cast<double>(t);
            w -= 0.1 * (m / (1 - std::pow(0.8, power))) / (std::sqrt(v / (1 - std::pow(0.9, power))) + 1e-3);
            folded.step();
            REQUIRE(std::abs(a.item() - w) <= 1e-12);
            const Array<double> g{random::detail::normal<double>(seed, 3, t)};
            for (const Tensor64& each : {b, c}) each.backward(g);
            one_micro_batch.step();
            plain.step();
            REQUIRE(b.item() == c.item());
            one_micro_batch.zero_grad();
            plain.zero_grad();
        }
    }
}

}  // namespace tally::test
