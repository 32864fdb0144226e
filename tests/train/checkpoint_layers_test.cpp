// Tests that checkpointed layers change no bit of gradients, statistics and parameters.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/tally.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::test;

namespace {

// Computes f(x) + x / 2, which reads x again after f.
template <class S> class Residual : public Layer<S> {
public:
    explicit Residual(Sequential<S> inside) : inside_(std::move(inside)) {}
    void list(typename Module<S>::Members& members) override { members.child("inside", inside_); }

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass& pass) override {
        auto y = inside_(x, pass);
        return y + x * 0.5;
    }

private:
    Sequential<S> inside_;
};

// Returns a model of every layer type except Embedding, whose input is indices.
template <class S> Sequential<S> images(std::uint64_t seed) {
    Sequential<S> model;
    model.add(Conv2d<S>(2, 3, 3, {seed, 0}, {.padding = 1}));
    model.add(BatchNorm<S>(3));
    model.add(ReLU<S>());
    model.add(Residual<S>(
        Sequential<S>{Conv2d<S>(3, 3, 1, {seed, 1}), BatchNorm<S>(3), GELU<S>(), Dropout<S>(0.3, 5)}));
    model.add(MaxPool2d<S>(2));
    model.add(Flatten<S>());
    model.add(Linear<S>(12, 6, {seed, 2}));
    model.add(Dropout<S>(0.4, 6));
    model.add(LayerNorm<S>(6));
    model.add(Tanh<S>());
    model.add(Linear<S>(6, 4, {seed, 3}));
    return model;
}

template <class S> Sequential<S> text(std::uint64_t seed) {
    Sequential<S> model;
    model.add(Residual<S>(Sequential<S>{LayerNorm<S>(4), SelfAttention<S>(4, 2, {seed, 10}, {.causal = true}),
                                        Dropout<S>(0.2, 7)}));
    model.add(Residual<S>(
        Sequential<S>{LayerNorm<S>(4), Linear<S>(4, 8, {seed, 11}), GELU<S>(), Linear<S>(8, 4, {seed, 12})}));
    model.add(LayerNorm<S>(4));
    return model;
}

template <class S> std::vector<std::vector<S>> state_of(Module<S>& model) {
    std::vector<std::vector<S>> all;
    for (const detail::Member<S>& member : detail::members(model)) {
        if (member.parameter) {
            all.push_back(member.parameter.value().to_vector());
            if (member.parameter.has_grad()) all.push_back(member.parameter.grad().to_vector());
        }
        if (member.buffer) all.push_back(member.buffer->to_vector());
    }
    return all;
}

// Makes two updates with unequal micro-batches. Returns the model's states before and after the last update.
template <class S, class Make>
std::vector<std::vector<S>> trained(Make make, const Shape& item, std::uint64_t seed,
                                    const std::vector<std::size_t>& sizes, bool nested) {
    Sequential<S> model = make(seed);
    if (!sizes.empty()) model.checkpoint_segments(sizes);
    if (nested)
        for (const auto& [name, module] : detail::modules<S>(model))
            if (name.find("inside.") != std::string::npos && name.find("inside.") + 7 == name.size())
                module->checkpoint({.segments = 2});
    Sgd<S> optimizer(model.parameters(), {.learning_rate = 0.1, .momentum = 0.9});
    Window<S> window(optimizer, {.micro_batches = 3, .seed = seed});
    Random random(seed);
    std::vector<std::vector<S>> seen;
    for (int update = 0; update < 2; ++update) {
        for (const std::int64_t items : {3, 2, 4}) {
            std::vector<std::int64_t> extents{items};
            extents.insert(extents.end(), item.begin(), item.end());
            const Var<Array<S>> x = constant(random.array<S>(Shape(extents)));
            const Var<Array<S>> y = model(x, window.begin_micro_batch(items));
            window.add(mse(y, constant(random.array<S>(y.shape()))));
        }
        for (auto& each : state_of<S>(model)) seen.push_back(std::move(each));
        window.finish();
    }
    for (auto& each : state_of<S>(model)) seen.push_back(std::move(each));
    return seen;
}

}  // namespace

TEMPLATE_TEST_CASE("checkpoint_segments: every layer type trains to the same bits", "", float, double) {
    using S = TestType;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        const auto check = [&](auto make, const Shape& item) {
            const std::size_t layers = make(seed).size();
            const auto plain = trained<S>(make, item, seed, {}, false);
            for (std::size_t k = 1; k <= layers; ++k) {
                INFO("seed " << seed << ", " << layers << " layers in " << k << " segments");
                REQUIRE(trained<S>(make, item, seed, even_segments(layers, k), false) == plain);
                REQUIRE(trained<S>(make, item, seed, even_segments(layers, k), true) == plain);
            }
            REQUIRE(trained<S>(make, item, seed, {}, true) == plain);
        };
        check(images<S>, {2, 4, 4});
        check(text<S>, {3, 4});
    }
}

TEST_CASE("checkpoint: an embedding in a checkpointed function gets the same gradient bits") {
    const Array<std::int32_t> indices({2, 3}, {2, 0, 2, 1, 4, 0});
    const Embedding<double> table(5, 4, {1, 0}, 4);
    Sequential<double> model = text<double>(1);
    const auto all = [&](bool checkpointed) {
        const auto forward = [&](const Array<std::int32_t>& which) {
            ForwardPass pass{true, 7, 0};
            return model(table(which), pass);
        };
        sum(checkpointed ? checkpoint(forward, indices) : forward(indices)).backward();
        std::vector<std::vector<double>> found{table.weight.grad().to_vector()};
        for (const Tensor64& p : model.parameters()) {
            found.push_back(p.grad().to_vector());
            p.zero_grad();
        }
        table.weight.zero_grad();
        return found;
    };
    CHECK(all(true) == all(false));
}

TEST_CASE("checkpoint: a graph may outlive the model whose layers it recomputes") {
    const Tensor64 x = parameter(randn<double>({2, 3}, {.seed = 1, .stream = 1}).value());
    const auto gradient = [&](bool checkpointed) {
        Tensor64 loss;
        {
            Sequential<double> model{Linear<double>(3, 3, {1, 1}), Tanh<double>(),
                                     Linear<double>(3, 2, {1, 2})};
            if (checkpointed) model.checkpoint({.segments = 3});
            loss = mean(model(x));
        }
        loss.backward();
        const Array<double> found = x.grad().clone();
        x.zero_grad();
        return found;
    };
    CHECK(same_bits(gradient(false), gradient(true)));
}

TEST_CASE("Sequential::checkpoint: a byte limit that no segmentation fits throws OutOfMemory") {
    Sequential<double> model{Linear<double>(8, 8, {1, 1}), Tanh<double>(), Linear<double>(8, 8, {1, 2}),
                             Tanh<double>()};
    model.checkpoint({.bytes = 1500});
    const auto items = [](std::int64_t n) { return randn<double>({n, 8}, {.seed = 1, .stream = 1}); };
    CHECK_THROWS_AS(model(items(64)), OutOfMemory);
    CHECK_THROWS_AS(model(items(64)), OutOfMemory);
    CHECK_FALSE(model.segmentation());
    mean(model(items(4))).backward();
    REQUIRE(model.segmentation());
    CHECK(model.segmentation()->bytes <= 1500);
}

TEST_CASE("checkpoint: only the outermost chains of a model are checkpointed") {
    Sequential<double> model = images<double>(1);
    CHECK(checkpoint<double>(model, {}) == 1);
    Linear<double> alone(2, 2, {1, 1});
    CHECK(checkpoint<double>(alone, {}) == 0);
    Sequential<double> nothing;
    CHECK(checkpoint<double>(nothing, {}) == 0);
    CHECK(message_of([&] { model.checkpoint(Checkpointing{.segments = 99}); }) ==
          "[checkpoint] 11 layers cannot be cut into 99 segments; choose between 1 and 11");
    CHECK(message_of([&] { model.checkpoint_segments({3}); }).find("[checkpoint_sequential]") == 0);
    CHECK(message_of([&] { checkpoint<double>(model, {.segments = 4, .bytes = 1000}); }) ==
          "[checkpoint] .segments = 4 and .bytes = 1000 exclude each other; set one of them");

    struct Two : Module<double> {
        Sequential<double> a, ab;
        Two() {
            a.add(Sequential<double>(Tanh<double>()));
            ab.add(Tanh<double>());
        }
        void list(Members& members) override {
            members.child("a", a);
            members.child("ab", ab);
        }
    } two;
    CHECK(checkpoint<double>(two, {}) == 2);  // the chain inside the first chain does not count
}
