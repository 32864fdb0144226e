// Makes each allocation of an update fail, either alone or with all later allocations. The update is either
// complete or has no effect, and a second attempt succeeds.
#include <memory>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train/batches.hpp"
#include "tally/train/image_layers.hpp"
#include "tally/train/micro_batch.hpp"
#include "tally/train/window.hpp"
#include "train/failing_new.hpp"

namespace tally::test {
namespace {

enum class Way { plain, checkpointed, sgd, many_numbers };

template <class S> struct Training {
    explicit Training(Way of) : way(of) {
        if (way == Way::checkpointed) model.checkpoint({.segments = 2});
        if (way == Way::sgd)
            optimizer = std::make_unique<Sgd<S>>(model.parameters(),
                                                 Sgd<double>::Options{.learning_rate = 0.1, .momentum = 0.9});
        else
            optimizer =
                std::make_unique<AdamW<S>>(model.parameters(), AdamW<double>::Options{.learning_rate = 0.01});
        if (way == Way::many_numbers) {  // gives parameters different numbers of updates
            for (const Var<Array<S>>& p : {model.parameters()[0], model.parameters()[1]})
                p.backward(Array<S>::full(p.shape(), S(1)));
            optimizer->step();
            optimizer->zero_grad();
        }
        window = std::make_unique<Window<S>>(
            *optimizer, typename Window<S>::Options{.micro_batches = 2,
                                                    .max_norm = 1.0,
                                                    .schedule = Schedule::cosine(0.02, 9),
                                                    .average = &average});
    }
    void update() {
        for (std::int64_t part = 0; part < 2; ++part) {
            const Items items = Items::in_order(8).part(4 * part, 4 * part + 4);
            const auto y = model(constant(rows(x, items)), window->begin_micro_batch(4));
            window->add(mse(y, constant(Array<S>::zeros({4, 3}))));
        }
        window->finish();
    }
    std::string bits() {
        TrainingState state;
        window->save(state, "w", &model);
        return detail::state_bytes(state);
    }

    Way way;
    Array<S> x = Random(1).array<S>({8, 5});
    Sequential<S> model{Linear<S>(5, 6, {1, 0}), BatchNorm<S>(6), Tanh<S>(), Dropout<S>(0.3, 7),
                        Linear<S>(6, 3, {1, 1})};
    std::unique_ptr<Optimizer<S>> optimizer;
    MovingAverage<S> average{model.parameters()};
    std::unique_ptr<Window<S>> window;
};

}  // namespace

TEMPLATE_TEST_CASE("Window: an update is complete or has no effect if memory runs out", "[alone]", float,
                   double) {
    if (TALLY_ASAN) TALLY_SKIP("AddressSanitizer owns operator new");
    const std::int64_t nodes = Node::live_count();
    for (const Way way : {Way::plain, Way::checkpointed, Way::sgd, Way::many_numbers}) {
        std::string before, wanted;
        {
            Training<TestType> undisturbed(way);
            undisturbed.update();
            before = undisturbed.bits();
            undisturbed.update();
            wanted = undisturbed.bits();
        }
        for (const Scarce kind : {Scarce::once, Scarce::from_then_on}) {
            std::unique_ptr<Training<TestType>> training;
            std::uint64_t partial = 0;
            const std::uint64_t places = fail_each_allocation(
                kind,
                [&](std::uint64_t) {
                    training = std::make_unique<Training<TestType>>(way);
                    training->update();
                },
                [&] { training->update(); },
                [&](bool threw) {
                    if (threw) {
                        training->window->discard();
                        if (training->bits() != before) {
                            ++partial;
                            return;
                        }
                        training->update();
                    }
                    if (training->bits() != wanted) ++partial;
                });
            CAPTURE(static_cast<int>(way), static_cast<int>(kind), places);
            CHECK(partial == 0);
            CHECK(places > 60);  // about 70, depending on the optimisation
        }
    }
    CHECK(Node::live_count() == nodes);
}

TEST_CASE("backward: an allocation that fails leaves no nodes behind") {
    const std::int64_t nodes = Node::live_count();
    const Scalar x = parameter(1.0);
    std::unique_ptr<Scalar> y;
    const std::uint64_t places = fail_each_allocation(
        Scarce::once,
        [&](std::uint64_t) {
            std::vector<Scalar> terms;  // all terms are pending at the same time
            for (int i = 0; i < 100; ++i) terms.push_back(x * double(i));
            Scalar total = terms[0];
            for (const Scalar& term : terms) total = total + term;
            y = std::make_unique<Scalar>(total);
            x.zero_grad();
        },
        [&] { y->backward(); },
        [&](bool threw) {
            const std::string again = message_of([&] { y->backward(); });
            CHECK(again.find("a running backward()") == std::string::npos);
            if (!threw) CHECK(x.grad() == 4950);
            y.reset();
            CHECK(Node::live_count() == nodes + 1);
        });
    if (!TALLY_ASAN) CHECK(places > 0);
}

}  // namespace tally::test
