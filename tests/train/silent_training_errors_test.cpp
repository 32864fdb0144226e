// Tests that plausible programs with averages, batch norm or modules train correctly or throw an Error.
#include <limits>
#include <memory>
#include <sstream>
#include <type_traits>

#include "../lessons/accumulate.hpp"
#include "../lessons/adam_a.hpp"
#include "catch.hpp"
#include "tally/checkpoint/checkpoint.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train/average.hpp"
#include "tally/train/batches.hpp"
#include "tally/train/exact_batch_norm.hpp"
#include "tally/train/grad_cache.hpp"
#include "tally/train/image_layers.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/trainer.hpp"
#include "tally/train/window.hpp"

namespace tally::test {
namespace {

using lesson::Accumulate, lesson::AdamA;
using V = std::vector<float>;

Tensor items_of(std::int64_t n) { return reshape(arange(n), {n, 1}); }

TEST_CASE("sgd_step: a duplicate parameter or an invalid learning rate throws an Error") {
    const Tensor w = parameter({1.f}), v = parameter({1.f});
    sum(w + v).backward();
    CHECK_THROWS_WITH(
        sgd_step({w, v, w}, 0.1),
        "[sgd_step] parameters 0 and 2 are the same variable, which would be stepped twice; pass it once");
    for (const double rate : {-0.1, double(NAN), double(INFINITY)})
        CHECK_THROWS_WITH(sgd_step({w}, rate),
                          contains("[sgd_step] the learning rate must be finite and at least 0; it is "));
    CHECK(w.item() == 1);
    CHECK(v.item() == 1);
}

TEST_CASE("Window, BatchNorm: invalid bounds, momentum and eps throw an Error") {
    const Tensor w = parameter({1.f});
    Sgd<float> sgd({w}, {.learning_rate = 1});
    const auto open = [&](const Window<float>::Options& options) { Window<float> window(sgd, options); };
    CHECK_THROWS_WITH(open({.max_norm = -1}), "[window] max_norm must be at least 0; -1 is not");
    CHECK_THROWS_WITH(open({.max_value = NAN}), "[window] max_value must be at least 0; nan is not");
    CHECK_NOTHROW(open({.max_norm = INFINITY, .max_value = 0}));
    for (const double momentum : {-0.1, 2., double(NAN)})
        CHECK_THROWS_WITH(BatchNorm<float>(3, 1e-5, momentum),
                          contains("[batch_norm] the momentum must be between 0 and 1; it is "));
    for (const double eps : {-1., double(NAN), double(INFINITY)})
        CHECK_THROWS_WITH(BatchNorm<float>(3, eps),
                          contains("[batch_norm] eps must be finite and at least 0"));
}

TEST_CASE("MovingAverage: an average that a window updates rejects other updates") {
    const Tensor w = parameter({1.f}), v = parameter({1.f});
    Sgd<float> sgd({w}, {.learning_rate = 1});
    MovingAverage<float> of_other({v}, {.decay = 0.5}), average({w, v}, {.decay = 0.5});
    CHECK_THROWS_WITH(
        Window<float>(sgd, {.average = &of_other}),
        "[window] average: none of its 1 parameters is among the 1 that the optimizer steps, so it would "
        "never change; make both from the same parameters");
    {
        Window<float> window(sgd, {.average = &average});
        CHECK_THROWS_WITH(average.update(),
                          contains("[average] update: a window already updates this average"));
        window.add(Loss(w * 2));
        window.finish();
    }
    CHECK(average.value(0).to_vector() == V{-1});
    average.update();
    CHECK(average.updates() == 2);
    const Tensor rare = parameter({1.f});
    Sgd<float> both({w, rare}, {.learning_rate = 1});
    MovingAverage<float> of_one({w}, {.decay = 0.5});
    Window<float> window(both, {.average = &of_one});
    window.add(Loss(w * 2));
    CHECK(window.finish().stepped);  // `rare` had no gradient, so its average is unchanged
}

TEST_CASE("Optimizer::step: a step while averages are swapped in throws an Error and changes nothing") {
    const Tensor w = parameter({1.f});
    Sgd<float> sgd({w}, {.learning_rate = 1});
    AdamA<float> folding({w});
    Window<float> window(sgd);
    {
        MovingAverage<float> average({w}, {.decay = 0.5});
        average.update();
        w.assign(Array<float>{3});
        average.update();
        average.swap();
        sum(w).backward();
        const std::string why = "parameter 0 holds the numbers of a moving average; swap() back first";
        CHECK_THROWS_WITH(sgd.step(), "[SGD] " + why);
        CHECK_THROWS_WITH(folding.fold(), "[AdamA] " + why);
        CHECK_THROWS_WITH(sgd_step({w}, 1), "[sgd_step] " + why);
        sgd.zero_grad();
        CHECK_THROWS_WITH(window.add(Loss(w * 2)), "[window] " + why);
        CHECK_THROWS_WITH(w.assign(Array<float>{7}),
                          contains("[assign] this parameter holds the numbers of a moving average"));
        CHECK_THROWS_WITH(w.modify_value([](auto&) {}), contains("swap() would undo the change"));
        MovingAverage<float> second({w}, {.decay = 0.5});
        CHECK_THROWS_WITH(second.swap(), "[average] " + why);
        CHECK(w.item() == 2);
        average.swap();
        window.add(Loss(w * 2));
        window.finish();
        CHECK(w.item() == 1);
        average.swap();
    }
    sum(w).backward();
    CHECK_NOTHROW(sgd.step());  // the average was destroyed
}

TEST_CASE("BatchNorm: a layer that moves while a window is open takes its statistics along") {
    auto norm = std::make_unique<BatchNorm<float>>(1);
    Sgd<float> sgd(norm->parameters(), {.learning_rate = 0.1});
    Window<float> window(sgd);
    window.add(Loss((*norm)(items_of(4), window.begin_micro_batch(4))));
    auto moved = std::make_unique<BatchNorm<float>>(std::move(*norm));
    norm.reset();
    const auto other = std::make_unique<BatchNorm<float>>(1);
    window.add(Loss((*moved)(items_of(4), window.begin_micro_batch(4))));
    TrainingState state;
    window.save(state, "w", moved.get());
    BatchNorm<float> assigned(1);
    assigned = std::move(*moved);
    window.finish();
    CHECK(assigned.running.mean.item() == 0.1f * 1.5f);
    CHECK(assigned.updates.item() == 1);
    CHECK(other->running.mean.item() == 0);
    CHECK(other->updates.item() == 0);
}

TEST_CASE("BatchNorm: a layer destroyed while a window is open is left out of the update") {
    auto norm = std::make_unique<BatchNorm<float>>(1);
    const Tensor weight = norm->weight, bias = norm->bias;
    Sgd<float> sgd({weight, bias}, {.learning_rate = 0.1});
    Window<float> window(sgd);
    window.add(Loss((*norm)(items_of(4), window.begin_micro_batch(4))));
    norm.reset();
    std::vector<std::unique_ptr<BatchNorm<float>>> others;
    for (int i = 0; i < 8; ++i) others.push_back(std::make_unique<BatchNorm<float>>(1));
    CHECK(window.finish().stepped);
    for (const auto& other : others) CHECK(other->updates.item() == 0);
    CHECK(bias.item() == -0.1f);
}

TEST_CASE("BatchNorm: evaluation before the effects of a pass are committed throws an Error") {
    BatchNorm<float> norm(1);
    ForwardPass pass{.training = true};
    (void)norm(items_of(4), pass);
    CHECK_THROWS_WITH(
        norm(items_of(4)),
        "[batch_norm] the layer trained in a ForwardPass that you made, but its running statistics "
        "were never updated; call "
        "pass.effects.commit() after each update");
    pass.effects.commit();
    CHECK_NOTHROW(norm(items_of(4)));
    CHECK(norm.running.mean.item() == 0.1f * 1.5f);
}

TEST_CASE("BatchNorm: running statistics that were moved away throw an Error in the update") {
    BatchNorm<float> norm(1);
    Sgd<float> sgd(norm.parameters(), {.learning_rate = 0.1});
    Window<float> window(sgd);
    window.add(Loss(norm(items_of(4), window.begin_micro_batch(4))));
    const Array<float> moved = std::move(norm.running.mean);
    CHECK_THROWS_WITH(window.finish(), contains("[batch_norm] an array has no memory"));
    CHECK(norm.bias.item() == 0);
}

TEST_CASE("Window::add_regularizer: a term of another model throws an Error") {
    const Tensor w = parameter({1.f}), other = parameter({1.f});
    Sgd<float> sgd({w}, {.learning_rate = 1});
    Window<float> window(sgd);
    window.add(Loss(w * 2));
    window.add_regularizer(sum(other * other));
    CHECK_THROWS_WITH(
        window.finish(),
        contains("[window] finish: a term of add_regularizer() has reached none of the 1 parameters"));
    window.discard();
    window.add(Loss(w * 2));
    window.add_regularizer(sum(w * w));
    window.add_regularizer(sum(w + other));
    CHECK(window.finish().stepped);
    CHECK(w.item() == -4);
}

TEST_CASE("add_with_exact_batch_norm: inputs that differ between its passes throw an Error") {
    const auto train = [](bool augment, int from) {
        Sequential<float> model{Linear<float>(1, 2, {.seed = 1}), BatchNorm<float>(2),
                                Linear<float>(2, 1, {.seed = 2})};
        Sgd<float> sgd(model.parameters(), {.learning_rate = 0.1});
        Window<float> window(sgd);
        int call = 0;
        add_with_exact_batch_norm<float>(
            window, model, split(Items::in_order(4), 2),
            [&](const Items& micro) {
                return constant(rows(items_of(4).value(), micro)) * (augment && ++call > from ? 2. : 1.);
            },
            [](const Tensor& y, const Items&) { return Loss(y * y); });
        window.finish();
    };
    CHECK_NOTHROW(train(false, 0));
    CHECK_THROWS_WITH(train(true, 2), contains("input of micro-batch 0 differs in a later pass"));
    CHECK_THROWS_WITH(train(true, 5), contains("input of micro-batch 1 differs in a later pass"));
}

TEST_CASE("Window::add: a model that needs a pass throws an Error in a window without passes") {
    Sequential<float> model{Linear<float>(2, 2, {.seed = 1}), Dropout<float>(0.5)};
    Sgd<float> sgd(model.parameters(), {.learning_rate = 1});
    Window<float> window(sgd);
    const std::string why =
        ": dropout was called without a pass, so it did not train; write model(x, "
        "window.begin_micro_batch(items)) for "
        "each "
        "micro-batch, or make evaluation explicit: ForwardPass evaluation; model(x, evaluation)";
    CHECK_THROWS_WITH(window.add(Loss(model(ones({1, 2})))), "[window] add" + why);
    Loss(model(ones({1, 2}))).sum.backward();
    CHECK_THROWS_WITH(window.after_backward(1), "[window] after_backward" + why);
    sgd.zero_grad();
    window.discard();
    ForwardPass evaluation;
    window.add(Loss(model(ones({1, 2}), evaluation)));
    window.finish();
    {
        const NoGrad off;
        (void)model(ones({1, 2}));
    }
    window.add(Loss(linear(ones({1, 2}), model.parameters()[0])));
    window.finish();
}

TEST_CASE("Dropout: items with different numbers of rows in a window throw an Error") {
    Dropout<float> dropout(0.5, 3);
    const Tensor w = parameter({1.f});
    Sgd<float> sgd({w}, {.learning_rate = 1});
    Window<float> window(sgd);
    const auto pass_rows = [&](std::int64_t rows) {
        (void)dropout(ones({2 * rows, 4}), window.begin_micro_batch(2));
        window.add(Loss(w * 1));
    };
    pass_rows(3);
    CHECK_THROWS_WITH(
        pass_rows(5),
        contains("[dropout] an item has 3 rows in one micro-batch and 5 in another, so rows of different "
                 "items would drop the same; keep the items as the first axis"));
    pass_rows(3);
    window.finish();
    pass_rows(5);  // a different window may have different numbers of rows
    window.finish();
    for (int micro = 0; micro < 2; ++micro) {  // the layer is called twice in each forward pass
        ForwardPass& pass = window.begin_micro_batch(2);
        (void)dropout(ones({2, 4}), pass);
        (void)dropout(ones({6, 4}), pass);
        window.add(Loss(w * 1));
    }
    window.finish();
}

TEST_CASE("Accumulate: two backward() calls before one step() throw an Error") {
    const Tensor w = parameter({1.f}), v = parameter({1.f});
    Sgd<float> sgd({w}, {.learning_rate = 1}), other({v}, {.learning_rate = 1});
    Accumulate<float> accumulate(sgd, 2, Reduction::mean), of_other(other, 2, Reduction::mean);
    const auto expect_error = [&] {
        CHECK_THROWS_WITH(
            accumulate.step(1),
            contains("[accumulate] 2 backward() calls have reached the parameters since the last step()"));
        accumulate.window().discard();
    };
    sum(w * 2).backward();
    sum(w * 4).backward();
    expect_error();
    sum(w * 2 + w * w).backward();  // this is one backward() call, although w is used twice
    accumulate.step(1);
    sum(w * 2).backward();
    sum(w * 4).backward();
    expect_error();
    for (int update = 0; update < 2; ++update) {
        for (int micro = 0; micro < 2; ++micro) {
            sum(w * 2).backward();
            sum(v * 6).backward();
            CHECK(accumulate.step(1) == (micro == 1));
            CHECK(of_other.step(1) == (micro == 1));
        }
        CHECK(w.item() == 1.f - 2.f * float(update + 1));
        CHECK(v.item() == 1.f - 6.f * float(update + 1));
    }
    sum(w * 2).backward();
    sum(w * 2).backward();
    expect_error();
    sum(w * 2).backward();
    sgd.zero_grad();  // gradients that step() has not counted are dropped
    sum(w * 2).backward();
    CHECK_NOTHROW(accumulate.step(1));
    accumulate.flush();
    sum(w * 2).backward();
    accumulate.step(1);
    TrainingState state;
    accumulate.window().save(state, "w");
    accumulate.window().load(state, "w");
    sum(w * 2).backward();
    CHECK(accumulate.step(1));  // a loaded gradient does not count as a backward pass
    const auto encode = [&](std::size_t part) { return reshape(w * static_cast<double>(part), {1, 1}); };
    cached_backward<float>(3, {encode},
                           [](const detail::Representations<float>& all) { return sum(all[0]); });
    CHECK_NOTHROW(accumulate.step(3));  // all parts form one micro-batch
    accumulate.flush();
    const Tensor x = parameter({1.f});
    grad(sum(w * x), {x});  // has no effect on w's gradient
    sum(w * 2).backward();
    grad(sum(w * w), {w});  // returns the gradient to the caller only
    grad(sum(w * w * x), {x});
    CHECK_NOTHROW(accumulate.step(1));
    sum(w * 2).backward();
    sum(checkpoint([](const Tensor& y) { return y * y; }, w)).backward();  // runs a nested backward pass
    expect_error();
    sum(checkpoint([](const Tensor& y) { return y * y; }, w)).backward();
    CHECK_NOTHROW(accumulate.step(1));
    accumulate.flush();
    sum(w * 2).backward();
    sum(w * 2).backward();
    expect_error();  // the Error is also thrown after flush()
}

TEST_CASE("Accumulate: a second object for the same parameters continues the count") {
    const Tensor w = parameter({1.f});
    Sgd<float> sgd({w}, {.learning_rate = 1});
    auto accumulate = std::make_unique<Accumulate<float>>(sgd, 2, Reduction::mean);
    accumulate = std::make_unique<Accumulate<float>>(sgd, 2, Reduction::mean);
    sum(w * 2).backward();
    sum(w * 4).backward();
    CHECK_THROWS_WITH(accumulate->step(1), contains("2 backward() calls have reached the parameters"));
}

template <class S> class ListsNothing : public Layer<S> {};
template <class S> class Lists : public Layer<S> {
public:
    void list(typename Module<S>::Members& members) override { members.child("first", first); }
    Linear<S> first{1, 1, {.seed = 1}}, forgotten{1, 1, {.seed = 2}};

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass& pass) override {
        return forgotten(first(x, pass), pass);
    }
};

TEST_CASE("Trainer: a loss with a parameter that the model does not list throws an Error") {
    STATIC_REQUIRE(std::is_abstract_v<ListsNothing<float>>);
    Lists<float> model;
    Sgd<float> sgd(model.parameters(), {.learning_rate = 0.1});
    const auto train = [&](bool frozen) {
        Trainer<float> trainer(
            model, sgd, 2,
            [&](const Items& items, ForwardPass& pass) {
                return mse(model(ones({items.count(), 1}), pass), zeros({items.count(), 1}));
            },
            {.frozen = frozen});
        trainer.train();
    };
    CHECK_THROWS_WITH(
        train(false),
        contains("[trainer] the loss depends on a parameter of shape (1) that the model does not list, so it "
                 "would not be trained"));
    CHECK_NOTHROW(train(true));
    Sequential<float> grows{Linear<float>(1, 1, {.seed = 5})};
    Sgd<float> of_grows(grows.parameters(), {.learning_rate = 0.1});
    Trainer<float> growing(grows, of_grows, 2,
                           [&](const Items& items, ForwardPass& pass) {
                               return mse(grows(ones({items.count(), 1}), pass), zeros({items.count(), 1}));
                           },
                           {.num_train_epochs = 2});
    growing.train_epoch();
    grows.add(Linear<float>(1, 1, {.seed = 6}));
    CHECK_THROWS_WITH(growing.train_epoch(),
                      contains("[trainer] the optimizer updates 2 of the model's 4 parameters"));
    Sequential<float> chain{Lists<float>(), Linear<float>(1, 1, {.seed = 3})};
    Sgd<float> of_chain(chain.parameters(), {.learning_rate = 0.1});
    Trainer<float> checkpointed(
        chain, of_chain, 2,
        [&](const Items& items, ForwardPass& pass) {
            return mse(chain(ones({items.count(), 1}), pass), zeros({items.count(), 1}));
        },
        {.gradient_checkpointing = Checkpointing{.segments = 2}});
    for (int again = 0; again < 2; ++again)
        CHECK_THROWS_WITH(checkpointed.train(), contains("that the model does not list"));
}

TEST_CASE("Trainer: the last updates have a line, too") {
    Linear<float> model(1, 1, {.seed = 1});
    Sgd<float> sgd(model.parameters(), {.learning_rate = 0.1});
    std::ostringstream progress;
    Trainer<float> trainer(model, sgd, 3,
                           [&](const Items& items, ForwardPass& pass) {
                               return mse(model(ones({items.count(), 1}), pass), zeros({items.count(), 1}));
                           },
                           {.per_device_batch_size = 1, .logging_steps = 2, .progress = &progress});
    trainer.train();
    REQUIRE(trainer.records().size() == 2);
    CHECK(trainer.records()[0].update == 2);
    CHECK(trainer.records()[1].update == 3);
    CHECK(trainer.records()[1].epoch == 1);
    CHECK(trainer.records()[1].count == 1);
    CHECK_THAT(progress.str(), contains("epoch 1/1"));
}

TEST_CASE("Sequential: a missing layer is named, and a new layer changes the segments") {
    Sequential<float> model{Linear<float>(1, 1, {.seed = 1}), Linear<float>(1, 1, {.seed = 2})};
    CHECK_THROWS_WITH(model.layer(2),
                      "[module] layer(2) of a Sequential of 2 layers; they are numbered from 0");
    REQUIRE(model.checkpoint({.segments = 2}));
    model.add(Linear<float>(1, 1, {.seed = 3}));
    Sequential<float> plain{Linear<float>(1, 1, {.seed = 1}), Linear<float>(1, 1, {.seed = 2}),
                            Linear<float>(1, 1, {.seed = 3})};
    CHECK(model(items_of(2)).value().to_vector() == plain(items_of(2)).value().to_vector());
}

TEST_CASE("Window::load: a window saved without its model is rejected with a model") {
    Linear<float> model(1, 1, {.seed = 1});
    Sgd<float> sgd(model.parameters(), {.learning_rate = 0.1});
    Window<float> window(sgd);
    TrainingState state;
    window.save(state, "w");
    CHECK_THROWS_WITH(window.load(state, "w", &model),
                      contains("it was saved without the model; load it without the model"));
}

}  // namespace
}  // namespace tally::test
