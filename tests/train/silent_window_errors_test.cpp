// Tests that plausible programs with a Window train correctly or throw an Error that says what to do.
#include "catch.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train/average.hpp"
#include "tally/train/batches.hpp"
#include "tally/train/grad_cache.hpp"
#include "tally/train/image_layers.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/window.hpp"

namespace tally::test {
namespace {

using V = std::vector<float>;

// Returns the outputs of a dropout layer for all micro-batches of a window.
V dropped(std::int64_t size, std::int64_t rows_per_item) {
    Dropout<float> dropout(0.5, 3);
    const Tensor w = parameter({1.f});
    Sgd<float> optimizer({w}, {.learning_rate = 1});
    Window<float> window(optimizer);
    V all;
    for (const Items& micro : split(Items::in_order(4), size)) {
        ForwardPass& pass = window.begin_micro_batch(micro.count());
        const Tensor y = dropout(ones({micro.count() * rows_per_item, 16}), pass);
        for (const float each : y.value().span()) all.push_back(each);
        window.add(Loss(w * 1));
    }
    window.finish();
    return all;
}

TEST_CASE("Dropout: masks of flattened tokens are equal for every split of a window") {
    for (const std::int64_t rows_per_item : {1, 2, 3}) {
        const V whole = dropped(4, rows_per_item);
        CHECK(dropped(2, rows_per_item) == whole);
        CHECK(dropped(1, rows_per_item) == whole);
        CHECK(dropped(3, rows_per_item) == whole);
        for (std::size_t row = 1; row < whole.size() / 16; ++row)  // checks that each row has its own mask
            CHECK(V(whole.begin(), whole.begin() + 16) !=
                  V(whole.begin() + std::ptrdiff_t(row) * 16, whole.begin() + std::ptrdiff_t(row + 1) * 16));
    }
}

TEST_CASE("Dropout: rows that are not a multiple of the items throw an Error") {
    Dropout<float> dropout(0.5, 3);
    const Tensor w = parameter({1.f});
    Sgd<float> optimizer({w}, {.learning_rate = 1});
    Window<float> window(optimizer);
    ForwardPass& pass = window.begin_micro_batch(2);
    CHECK_THROWS_WITH(dropout(ones({3, 1}), pass),
                      "[dropout] (3, 1) has 3 rows, but begin_micro_batch() was given 2 items; give "
                      "begin_micro_batch() the number of "
                      "items, which must "
                      "divide the rows");
    ForwardPass& none = window.begin_micro_batch(0);
    CHECK_THROWS_WITH(dropout(ones({3, 1}), none), contains("but begin_micro_batch() was given 0 items"));
    CHECK(dropout(ones({0, 1}), none).shape() == Shape{0, 1});
}

TEST_CASE("Window::add: a model called without the pass of begin_micro_batch() throws an Error") {
    Sequential<float> model{Linear<float>(2, 2, {.seed = 1}), Dropout<float>(0.5)}, head{Dropout<float>(0.5)};
    BatchNorm<float> norm(2);
    Sgd<float> optimizer(model.parameters(), {.learning_rate = 1});
    Window<float> window(optimizer);
    const std::string why =
        " was called without a pass, so it did not train; write model(x, window.begin_micro_batch(items)) "
        "for each "
        "micro-batch, or "
        "make evaluation explicit: ForwardPass evaluation; model(x, evaluation)";
    (void)window.begin_micro_batch(1);
    const Tensor y = model(ones({1, 2}));
    for (int again = 0; again < 2; ++again)
        CHECK_THROWS_WITH(window.add(Loss(y)), "[window] add: dropout" + why);
    ForwardPass& pass = window.begin_micro_batch(1);
    const Tensor normed = norm(model(ones({1, 2}), pass));
    CHECK_THROWS_WITH(window.add(Loss(normed)), "[window] add: batch norm" + why);
    const Tensor dropped =
        head(model(ones({1, 2}), window.begin_micro_batch(1)));  // the head was called without a ForwardPass
    CHECK_THROWS_WITH(window.add(Loss(dropped)), "[window] add: dropout" + why);
    ForwardPass evaluation;
    CHECK_NOTHROW(model(ones({1, 2}), evaluation));
    const Tensor right = model(ones({1, 2}), window.begin_micro_batch(1));
    {
        const NoGrad off;
        CHECK_NOTHROW(model(ones({1, 2})));
    }
    window.add(Loss(right));
    window.finish();
    const Tensor early = model(ones({1, 2}));  // this forward pass runs before begin_micro_batch()
    ForwardPass& late = window.begin_micro_batch(1);
    CHECK_THROWS_WITH(window.add(Loss(early)), "[window] add: dropout" + why);
    const Tensor student = model(ones({1, 2}), late), teacher = model(ones({1, 2})).detach();
    CHECK_NOTHROW(window.add(mse(student, teacher)));  // a teacher without a gradient needs no ForwardPass
    window.finish();
    CHECK_THROWS_WITH(
        add_cached<float>(window, split(Items::in_order(2), 1), {[&](const Items& items, ForwardPass&) {
                              return model(ones({items.count(), 2}));
                          }},
                          [](const detail::Representations<float>& all) { return Loss(all[0]); }),
        "[cached] encoder 0: dropout" + why);
    window.discard();
}

TEST_CASE("ForwardPass: a pass of a finished window throws an Error in layers that train") {
    Dropout<float> dropout(0.5, 3);
    BatchNorm<float> norm(1);
    const Tensor w = parameter({1.f});
    Sgd<float> optimizer({w}, {.learning_rate = 1});
    Window<float> window(optimizer);
    ForwardPass& pass = window.begin_micro_batch(1);
    CHECK_NOTHROW(dropout(ones({1, 12}), pass));
    window.add(Loss(w * 1));
    window.finish();
    CHECK_THROWS_WITH(dropout(ones({1, 12}), pass),
                      contains("[dropout] this pass belongs to a finished window"));
    CHECK_THROWS_WITH(norm(ones({2, 1}), pass),
                      contains("call window.begin_micro_batch() for each micro-batch"));
    ForwardPass& next = window.begin_micro_batch(1);
    CHECK_NOTHROW(dropout(ones({1, 12}), next));
}

TEST_CASE("Window::save: a window with batch norm requires the model") {
    const auto make = [] { return Sequential<float>{Linear<float>(1, 1, {.seed = 1}), BatchNorm<float>(1)}; };
    auto model = make();
    Sgd<float> optimizer(model.parameters(), {.learning_rate = 0.1});
    Window<float> window(optimizer);
    TrainingState state;
    CHECK_NOTHROW(window.save(state, "new"));  // no buffer has changed yet
    window.add(Loss(model(reshape(arange(4), {4, 1}), window.begin_micro_batch(4))));
    window.finish();
    const std::string message =
        "[window] save: updates have changed buffers of the model, such as batch norm's running statistics, "
        "and this "
        "call would not save them; write save(state, \"w\", &model)";
    CHECK_THROWS_WITH(window.save(state, "w"), message);
    window.save(state, "w", &model);
    window.discard();
    // Another window also throws, because this call of save() does not pass the model.
    CHECK_THROWS_WITH(Window<float>(optimizer).save(state, "w"), message);

    auto resumed = make();
    Sgd<float> other(resumed.parameters(), {.learning_rate = 0.1});
    Window<float> again(other);
    again.load(state, "w", &resumed);
    CHECK(resumed(ones({1, 1})).item() == model(ones({1, 1})).item());
    // A window that has loaded the changed buffers also cannot save them without the model.
    CHECK_THROWS_WITH(again.save(state, "w"), message);
}

TEST_CASE("Window::add: the loss of another model throws an Error at the next call") {
    const Tensor w = parameter({0.f}), other = parameter({0.f});
    Sgd<float> optimizer({w}, {.learning_rate = 1});
    Window<float> window(optimizer);
    window.add(Loss(w * 2));
    window.add(Loss(other * 2));
    const std::string message =
        "the loss of micro-batch 2 has reached none of the 1 parameters; discard() the window, and add a "
        "loss of this "
        "model";
    CHECK_THROWS_WITH(window.add(Loss(w * 2)), "[window] add: " + message);
    TrainingState state;
    CHECK_THROWS_WITH(window.save(state, "w"), "[window] save: " + message);
    CHECK_THROWS_WITH(window.finish(), "[window] finish: " + message);
    window.discard();
    window.add(Loss(w * 2));
    window.finish();
    CHECK(w.item() == -2);
}

TEST_CASE("Window::add_regularizer: a call for each micro-batch is an Error") {
    const Tensor w = parameter({1.f});
    Sgd<float> optimizer({w}, {.learning_rate = 1});
    Window<float> window(optimizer);
    window.add(Loss(w * 0));
    window.add_regularizer(sum(w * w) * 0.1);
    window.add_regularizer(sum(w * w) * 0.1);
    window.add(Loss(w * 0));
    CHECK_THROWS_WITH(window.add_regularizer(sum(w * w) * 0.1),
                      contains("called after 1 micro-batches and again after 2"));
    window.finish();
    CHECK(std::abs(w.item() - 0.6f) < 1e-6f);
    window.add(Loss(w * 0));
    window.add(Loss(w * 0));
    CHECK_NOTHROW(window.add_regularizer(sum(w)));  // the next window accepts a regularizer again
}

TEST_CASE("Optimizer::step: a variable that was replaced throws an Error") {
    Tensor w = parameter({1.f}), v = parameter({1.f});
    Sgd<float> optimizer({w, v}, {.learning_rate = 0.1});
    sum(v * v).backward();
    CHECK_NOTHROW(optimizer.step());  // w has no gradient, but its variable exists
    optimizer.zero_grad();
    w = parameter({2.f});
    sum(w * w + v).backward();
    const std::string message =
        "[SGD] no variable refers to parameter 0 of (1) any more; if the variable was replaced";
    CHECK_THROWS_WITH(optimizer.step(), contains(message));

    Tensor a = parameter({1.f}), b = parameter({1.f});
    Sgd<float> other({a, b}, {.learning_rate = 0.1});
    MovingAverage<float> average({a, b}, {.decay = 0.5});
    Window<float> window(other, {.average = &average});
    a = parameter({2.f});
    window.add(Loss(a * b));
    CHECK_THROWS_WITH(window.finish(), contains("no variable refers to parameter 0 of (1) any more"));
    window.discard();
    a.zero_grad();
    Sgd<float> restarted({a, b}, {.learning_rate = 0.1});
    Window<float> mid_window(restarted);
    mid_window.add(Loss(a * b));
    a = parameter({3.f});
    mid_window.add(Loss(a * b));
    CHECK_THROWS_WITH(mid_window.finish(), contains("no variable refers to parameter 0 of (1) any more"));
    mid_window.discard();
    // No variable except the optimizer refers to this parameter.
    Sgd<float> alone({parameter({1.f})}, {.learning_rate = 0.5});
    sum(alone.parameters()[0] * 2).backward();
    CHECK_NOTHROW(alone.step());
}

TEST_CASE("AdamW: weights decay by 0.01 by default") {
    const Tensor w = parameter({1.f}), without_decay = parameter({1.f});
    sum(w * 0 + without_decay * 0).backward();
    AdamW<float>({w}, {.learning_rate = 0.1}).step();
    AdamW<float>({without_decay}, {.learning_rate = 0.1, .weight_decay = 0}).step();
    CHECK(w.item() == 0.999f);
    CHECK(without_decay.item() == 1);
}

}  // namespace
}  // namespace tally::test
