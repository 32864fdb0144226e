// Tests Conv2d, pooling, BatchNorm, Embedding and Dropout. Results must equal PyTorch's, and random numbers
// and statistics must not depend on the split of a batch. Also tests names and initial values.
#include "tally/train/image_layers.hpp"

#include <cmath>
#include <memory>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "folder.hpp"
#include "tally/train/module.hpp"
#include "tally/train/window.hpp"
#include "train/layer_pass.hpp"

namespace tally::test {
namespace {

const detail::RngStream any{1, 0};

Sequential<double> images() {
    return Sequential<double>{Conv2d<double>(2, 3, 3, any, {.padding = 1, .bias = false}),
                              BatchNorm<double>(3, 1e-3, 0.3),
                              ReLU<double>(),
                              MaxPool2d<double>(2),
                              Conv2d<double>(3, 4, 2, any, {.stride = 2}),
                              Tanh<double>(),
                              Flatten<double>(),
                              BatchNorm<double>(4),
                              Linear<double>(4, 2, any)};
}

Array<double> rows_of(const Array<double>& x, std::int64_t from, std::int64_t to) {
    return x.slice_rows(from, to);
}

double worst(const Array<double>& a, const Array<double>& b) {
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a.span()[i] - b.span()[i]));
    return most;
}

}  // namespace

TEST_CASE("Sequential: an image network yields PyTorch's results in training and evaluation") {
    Sequential<double> model = images();
    model.load_weights(layer_folder + "images.safetensors", WeightOrder::pytorch);
    const Expected expected("images");
    check_pass(model, expected, "", ForwardPass{.training = true});

    for (const std::string x : {"x", "later"}) {  // updates the statistics twice
        ForwardPass pass{.training = true};
        model(constant(expected[x]), pass);
        pass.effects.commit();
    }
    for (const detail::Member<double>& member : detail::members(model)) {
        if (member.buffer) check_close(member.name, *member.buffer, expected["after." + member.name]);
        if (member.counter) CHECK(member.counter->item() == 2);
    }
    check_pass(model, expected, "-evaluated");
}

TEST_CASE("load_weights: running statistics have PyTorch's names and survive saving and loading") {
    const Folder folder;
    Sequential<double> model = images(), again = images();
    model.load_weights(layer_folder + "images-after.safetensors", WeightOrder::pytorch);
    check_pass(model, Expected("images"), "-evaluated");
    std::string names;
    for (const detail::Member<double>& member : detail::members(model)) names += member.name + " ";
    CHECK(names ==
          "0.weight 1.weight 1.bias 1.running_mean 1.running_var 1.num_batches_tracked 4.weight 4.bias "
          "7.weight 7.bias 7.running_mean 7.running_var 7.num_batches_tracked 8.weight 8.bias ");
    model.save_weights(folder / "w");
    again.load_weights(folder / "w");
    const auto a = detail::members(model), b = detail::members(again);
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].parameter) CHECK(same_bits(a[i].parameter.value(), b[i].parameter.value()));
        if (a[i].buffer) CHECK(same_bits(*a[i].buffer, *b[i].buffer));
        if (a[i].counter) CHECK(b[i].counter->item() == 2);
    }
    detail::Safetensors file = detail::load_safetensors(folder / "w");
    file.tensors.at("1.num_batches_tracked") = Array<double>({}, {2.0});
    detail::save_safetensors(folder / "w", file.tensors, file.metadata);
    CHECK_THROWS_WITH(again.load_weights(folder / "w"),
                      contains("'1.num_batches_tracked' is not of the model's type I32 or I64"));
}

TEST_CASE("Embedding: results and gradients are PyTorch's, and the padding row gets no gradient") {
    Embedding<double> layer(5, 3, any, -2);
    for (std::size_t i = 9; i < 12; ++i) CHECK(layer.weight.value().span()[i] == 0);
    CHECK(layer.weight.value().span()[0] == random::detail::normal<double>(1, 0, 0));
    CHECK(layer.weight.value().span()[14] == random::detail::normal<double>(1, 0, 14));
    layer.load_weights(layer_folder + "embedding.safetensors", WeightOrder::pytorch);
    const Expected expected("embedding");
    const Tensor64 y = layer(expected.get<std::int32_t>("places"));
    check_close("y", y.value(), expected["y"]);
    y.backward(expected["seed"]);
    check_close("weight", layer.weight.grad(), expected["grad.weight"]);
    CHECK_THROWS_WITH(Embedding<double>(5, 3, any, 5),
                      "[embedding] the padding 5 is outside the rows of (5, 3)");
}

TEST_CASE("Conv2d: initial weights are uniform within PyTorch's bound") {
    const Conv2d<double> layer(2, 4, 3, {7, 2});
    const double bound = 1 / std::sqrt(18.0);
    CHECK(layer.weight.shape() == Shape{4, 2, 3, 3});
    for (std::size_t i = 0; i < 72; ++i)
        CHECK(layer.weight.value().span()[i] == random::detail::uniform<double>(7, 2, i, -bound, bound));
    for (std::size_t i = 0; i < 4; ++i)
        CHECK(layer.bias.value().span()[i] == random::detail::uniform<double>(7, 2, 72 + i, -bound, bound));
    CHECK_FALSE(Conv2d<double>(2, 4, 3, any, {.bias = false}).bias);
    Conv2d<double> strided(1, 1, 2, any, {.stride = 2});
    Conv2d<double> padded(1, 1, 3, any, {.padding = 2});
    MaxPool2d<double> overlapping(3, 1);
    CHECK(padded(constant(Array<double>::zeros({1, 1, 5, 6}))).shape() == Shape{1, 1, 7, 8});
    CHECK(strided(constant(Array<double>::zeros({1, 1, 5, 6}))).shape() == Shape{1, 1, 2, 3});
    CHECK(overlapping(constant(Array<double>::zeros({1, 1, 5, 6}))).shape() == Shape{1, 1, 3, 4});
}

TEST_CASE("Law: running statistics move once per update for every split of the window") {
    const std::uint64_t seed = GENERATE(range(1u, 61u));
    CAPTURE(seed);
    Random random(seed);
    const std::int64_t items = random.whole(4, 12), features = random.whole(1, 4);
    const bool image = random.coin();
    const Array<double> x = random.array<double>(
        image ? Shape{items, features, random.whole(1, 3), random.whole(2, 3)} : Shape{items, features});
    const auto trained = [&](std::int64_t size) {
        auto layer = std::make_unique<BatchNorm<double>>(features);
        Sgd<double> sgd(layer->parameters(), {.learning_rate = 0.1});
        Window<double> window(sgd);
        for (int update = 0; update < 2; ++update) {
            for (std::int64_t from = 0; from < items;) {
                // A last micro-batch of a single item would have no variance, so the loop adds this item to
                // the previous micro-batch.
                const std::int64_t to = items - from - size < 2 ? items : from + size;
                ForwardPass& pass = window.begin_micro_batch(to - from);
                const Tensor64 y = (*layer)(constant(rows_of(x, from, to)), pass);
                window.add(mse(y, constant(Array<double>::zeros(y.shape()))));
                from = to;
            }
            CHECK(layer->updates.item() == update);
            window.finish();
        }
        CHECK(layer->updates.item() == 2);
        return layer;
    };
    const auto full = trained(items), split = trained(random.whole(2, 3));
    CHECK(worst(full->running.mean, split->running.mean) < 1e-13);
    CHECK(worst(full->running.variance, split->running.variance) < 1e-13);
}

TEST_CASE("BatchNorm: a dropped micro-batch has no effect on the running statistics") {
    BatchNorm<double> layer(1), reference(1);
    Sgd<double> sgd(layer.parameters(), {.learning_rate = 0.1});
    Window<double> window(sgd, {.non_finite = NonFinite::drop_micro});
    const auto feed = [&](const Array<double>& x) {
        const Tensor64 y = layer(constant(x), window.begin_micro_batch(x.shape()[0]));
        window.add(mse(y, constant(Array<double>::zeros(y.shape()))));
    };
    const Array<double> good({3, 1}, {1, 2, 4});
    feed(Array<double>({2, 1}, {1, std::nan("")}));
    feed(good);
    CHECK(window.finish().dropped == 1);
    ForwardPass pass{.training = true};
    reference(constant(good), pass);
    pass.effects.commit();
    CHECK(same_bits(layer.running.mean, reference.running.mean));
    CHECK(same_bits(layer.running.variance, reference.running.variance));

    feed(Array<double>({2, 1}, {100, 300}));
    window.discard();  // discard() must not change the statistics, now or later
    CHECK(same_bits(layer.running.mean, reference.running.mean));
    feed(good);
    window.finish();
    reference(constant(good), pass);
    pass.effects.commit();
    CHECK(same_bits(layer.running.mean, reference.running.mean));
    CHECK(layer.updates.item() == 2);
}

TEST_CASE("Law: dropout under a window has the full batch's bits for every split") {
    const std::uint64_t seed = GENERATE(range(1u, 61u));
    CAPTURE(seed);
    Random random(seed);
    const std::int64_t items = random.whole(1, 12), width = random.whole(1, 6);
    const Array<double> x = random.array<double>({items, width}, 1, 2);
    const auto seen = [&](std::int64_t size) {
        Sequential<double> model{Dropout<double>(0.4, 3), Dropout<double>(0.3, 4)};
        const Tensor64 weight = parameter(Array<double>::full({items, width}, 1.0));
        Sgd<double> sgd({weight}, {.learning_rate = 1});
        Window<double> window(sgd, {.seed = seed});
        std::vector<double> all;
        for (int update = 0; update < 2; ++update) {
            for (std::int64_t from = 0; from < items; from += size) {
                const std::int64_t to = std::min(items, from + size);
                const Tensor64 y =
                    model(constant(x.slice_rows(from, to)), window.begin_micro_batch(to - from));
                for (double number : y.value().to_vector()) all.push_back(number);
                window.add(Loss(y * Tensor64(Array<double>::full({}, 1.0)) * slice(weight, 0, from, to)));
            }
            window.finish();
        }
        return std::pair(all, weight.value().to_vector());
    };
    const auto full = seen(items), split = seen(random.whole(1, items));
    CHECK(full.first == split.first);
    if (items * width > 20) {
        const auto half = static_cast<std::ptrdiff_t>(full.first.size() / 2);
        CHECK_FALSE(std::equal(full.first.begin(), full.first.begin() + half, full.first.begin() + half));
    }
    for (std::size_t i = 0; i < full.second.size(); ++i)
        CHECK(std::abs(full.second[i] - split.second[i]) < 1e-13);
}

TEST_CASE("Dropout: evaluation drops nothing, and layers with different streams draw different masks") {
    Dropout<double> one(0.5, 1), other(0.5, 2);
    const Array<double> x = Array<double>::full({50, 4}, 1.0);
    CHECK(same_bits(one(constant(x)).value(), x));
    ForwardPass pass{.training = true, .seed = 9};
    const Array<double> y = one(constant(x), pass).value();
    CHECK_FALSE(same_bits(y, other(constant(x), pass).value()));
    CHECK(same_bits(y, dropout(constant(x), 0.5, {9, 1, 0}).value()));
    CHECK_THROWS_WITH(Dropout<double>(1.5), contains("[dropout] the probability must be between 0 and 1"));
}

TEST_CASE("Window::save: a side effect of a layer outside the model throws an Error") {
    BatchNorm<double> inside(1), outside(1);
    Sgd<double> sgd(inside.parameters(), {.learning_rate = 0.1});
    {
        Window<double> window(sgd);
        const Tensor64 x = constant(Array<double>({2, 1}, {1, 2}));
        ForwardPass& pass = window.begin_micro_batch(2);
        window.add(Loss(inside(x, pass) + outside(x, pass)));
        TrainingState state;
        CHECK_THROWS_WITH(
            window.save(state, "window", &inside),
            "[window] save: a layer that the model does not list has side effects; list the layer");
    }
    // save() failed, so the window was not saved, and its micro-batch is lost.
    CHECK_THROWS_WITH(sgd.step(), contains("ended with 1 micro-batches in it"));
}

TEST_CASE("Window::save: a window in mid-update keeps the pending statistics of batch norm") {
    const std::uint64_t seed = GENERATE(range(1u, 21u));
    CAPTURE(seed);
    const auto trained = [&](bool interrupted) {
        Random random(seed);
        auto model = std::make_unique<Sequential<double>>(BatchNorm<double>(3), Linear<double>(3, 2, any),
                                                          BatchNorm<double>(2));
        auto sgd = std::make_unique<Sgd<double>>(model->parameters(), Sgd<double>::Options{.momentum = 0.9});
        auto window = std::make_unique<Window<double>>(*sgd, Window<double>::Options{.micro_batches = 3});
        for (int micro = 0; micro < 9; ++micro) {
            const Array<double> x = random.array<double>({random.whole(2, 5), 3});
            const Tensor64 y = (*model)(constant(x), window->begin_micro_batch(x.shape()[0]));
            window->add(mse(y, constant(Array<double>::full(y.shape(), 0.5))));
            if (interrupted && micro % 2 == 1) {
                TrainingState state;
                CHECK_THROWS_WITH(window->save(state, "blind"),
                                  contains("pass the model, or save after finish()"));
                window->save(state, "window", model.get());
                window.reset();
                model = std::make_unique<Sequential<double>>(BatchNorm<double>(3), Linear<double>(3, 2, any),
                                                             BatchNorm<double>(2));
                sgd =
                    std::make_unique<Sgd<double>>(model->parameters(), Sgd<double>::Options{.momentum = 0.9});
                window = std::make_unique<Window<double>>(*sgd, Window<double>::Options{.micro_batches = 3});
                window->load(state, "window", model.get());
            }
            if (window->full()) window->finish();
        }
        return model;
    };
    const auto plain = trained(false), resumed = trained(true);
    const auto a = detail::members(*plain), b = detail::members(*resumed);
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].parameter) CHECK(same_bits(a[i].parameter.value(), b[i].parameter.value()));
        if (a[i].buffer) CHECK(same_bits(*a[i].buffer, *b[i].buffer));
        if (a[i].counter) CHECK(a[i].counter->item() == b[i].counter->item());
    }
}

}  // namespace tally::test
