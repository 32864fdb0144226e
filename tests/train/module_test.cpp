// Tests that a Module names its members, runs side effects once per update, and changes parameters in place.
#include "tally/train/module.hpp"

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/train/layers.hpp"

namespace tally::test {
namespace {

const detail::RngStream any{1, 0};

std::string names(Module<float>& model) {
    std::string all;
    for (const auto& [name, parameter] : model.named_parameters()) all += name + " ";
    return all;
}

// Defines a small layer that has a buffer and a side effect. The layer returns its input, and stores the mean
// of all inputs since the last update.
class Mean : public Layer<double> {
public:
    void list(Members& members) override { members.buffer("running_mean", running); }
    Array<double> running = Array<double>::zeros({});
    int updates = 0;

protected:
    Tensor64 forward(Tensor64 x, ForwardPass& pass) override {
        if (pass.training) pass.effects.add(this, std::make_unique<Seen>(*this, x.value()));
        return x;
    }

private:
    struct Seen : detail::SideEffect {
        Seen(Mean& layer, const Array<double>& x) : mean(&layer), count(static_cast<double>(x.size())) {
            for (const double v : x.span()) total += v;
        }
        void join(const detail::SideEffect& later) override {
            total += static_cast<const Seen&>(later).total;
            count += static_cast<const Seen&>(later).count;
        }
        void commit() override {
            *mean->running.writable() = total / count;
            ++mean->updates;
        }
        Mean* mean;
        double total = 0, count;
    };
};

struct Residual : Layer<float> {  // a user-defined model
    Sequential<float> inner{Linear<float>(3, 5, {1, 0}), ReLU<float>(),
                            Linear<float>(5, 3, {1, 1}, {.bias = false})};
    LayerNorm<float> norm{3};

    void list(Members& members) override {
        members.child("norm", norm);
        members.child("inner", inner);
    }
    Tensor forward(Tensor x, ForwardPass& pass) override { return x + inner(norm(x, pass), pass); }
};

}  // namespace

TEST_CASE("parameters: names are PyTorch's and the order is fixed") {
    Sequential<float> model{
        Flatten<float>(), Linear<float>(4, 3, any), Tanh<float>(),
        Sequential<float>{Linear<float>(3, 4, any, {.bias = false}), SelfAttention<float>(4, 2, any)}};
    CHECK(names(model) ==
          "1.weight 1.bias 3.0.weight 3.1.in_proj_weight 3.1.in_proj_bias 3.1.out_proj.weight "
          "3.1.out_proj.bias ");
    CHECK(model.parameters().size() == 7);
    Residual own;
    CHECK(names(own) == "norm.weight norm.bias inner.0.weight inner.0.bias inner.2.weight ");
    const Sequential<float> moved = std::move(model);
    CHECK(moved.size() == 4);
}

TEST_CASE("Sequential::add: a user-defined model is a layer like others") {
    Residual block;
    const Tensor x = constant(Random(1).array<float>({2, 3}));
    const Tensor by_hand = x + block.inner(block.norm(x));
    Sequential<float> stack;
    stack.add(std::move(block));
    CHECK(same_bits(stack(x).value(), by_hand.value()));
}

TEST_CASE("parameters: equal names throw an Error, and a shared parameter is listed once") {
    struct Twice : Module<float> {
        Linear<float> a{2, 2, {1, 0}}, b{2, 2, {1, 1}};
        std::string second = "b";
        void list(Members& members) override {
            members.child("a", a);
            members.child(second, b);
        }
    } model;
    CHECK(names(model) == "a.weight a.bias b.weight b.bias ");
    model.b.weight = model.a.weight;
    CHECK(names(model) == "a.weight a.bias b.bias ");
    model.second = "a";
    CHECK_THROWS_WITH(model.parameters(), "[module] two members are called 'a.weight'");
}

TEST_CASE("detail::SideEffects: effects happen once per update for every split of the window") {
    const std::uint64_t seed = GENERATE(range(1u, 31u));
    CAPTURE(seed);
    Random random(seed);
    const Array<double> x = random.array<double>({random.whole(2, 8)});
    const auto after = [&](std::int64_t size, bool one_pass) {
        Mean mean;
        detail::SideEffects window;
        ForwardPass all{.training = true};
        for (const Tensor64& micro : split(constant(x), size)) {
            ForwardPass pass{.training = true};
            mean(micro, one_pass ? all : pass);
            window.join(std::move(pass.effects));
        }
        CHECK(mean.updates == 0);
        (one_pass ? all.effects : window).commit();
        CHECK(mean.updates == 1);
        (one_pass ? all.effects : window).commit();  // the second commit() has no effect
        CHECK(mean.updates == 1);
        return mean.running.item();
    };
    const double full = after(x.shape()[0], false);
    CHECK(std::abs(full - sum(constant(x)).item() / static_cast<double>(x.size())) < 1e-14);
    for (const bool one_pass : {false, true})
        CHECK(std::abs(after(random.whole(1, x.shape()[0]), one_pass) - full) < 1e-14);
}

TEST_CASE("assign: a parameter gets a value in place") {
    Linear<float> layer(2, 2, any);
    const Tensor handle = layer.weight;
    const Array<float> before = handle.value();
    const std::vector<float> numbers_before = before.to_vector();
    layer.weight.assign(Array<float>({2, 2}, {1, 2, 3, 4}));
    CHECK(handle.value().to_vector() == std::vector<float>{1, 2, 3, 4});
    CHECK(before.to_vector() == numbers_before);  // copies keep the old numbers

    const Tensor y = sum(layer(parameter(Array<float>({1, 2}, {1, 1}))));
    layer.weight.assign(Array<float>({2, 2}, {5, 6, 7, 8}));
    CHECK_THROWS_WITH(y.backward(), contains("array was changed in place between forward and backward"));

    {
        const Array<float> shared = handle.value();  // the buffer is shared, so assign() needs a new buffer
        const Tensor z = sum(layer(parameter(Array<float>({1, 2}, {1, 1}))));
        layer.weight.assign(Array<float>({2, 2}, {5, 6, 7, 8}));
        CHECK_THROWS_WITH(z.backward(), contains("array was changed in place between forward and backward"));
    }
    CHECK_THROWS_WITH(layer.weight.assign(Array<float>({4}, {1, 2, 3, 4})),
                      "[assign] a parameter of (2, 2) was given a value of (4)");
    CHECK_THROWS_WITH((layer.weight * 2).assign(Array<float>({2, 2}, {1, 2, 3, 4})),
                      "[assign] requires a parameter; this variable is the result of 'mul_number'");
    CHECK_THROWS_WITH(parameter(Array<float>({}, {1})).assign(Array<float>()), contains("has no memory"));
    CHECK(handle.value().to_vector() == std::vector<float>{5, 6, 7, 8});
}

TEST_CASE("to: a model that is on the device already stays unchanged") {
    Linear<float> layer(2, 2, any);
    sum(layer(constant(Array<float>({1, 2}, {1, 1})))).backward();
    const float* const place = layer.weight.value().data();
    layer.to(Device::cpu);
    CHECK(layer.weight.value().data() == place);
    CHECK(layer.weight.has_grad());
    if (!available(Device::cuda)) CHECK_THROWS_WITH(layer.to(Device::cuda), contains("[to]"));
}

TEST_CASE("to: a moved model computes the same, and handles of its parameters stay valid", "[alone]") {
    if (!available(Device::cuda)) TALLY_SKIP("no device");
    SelfAttention<double> model(4, 2, any, {.causal = true});
    const auto handles = model.parameters();
    const Array<double> x = Random(1).array<double>({2, 3, 4});
    const Array<double> here = model(constant(x)).value();
    model.to(Device::cuda);
    const Tensor64 there = model(constant(x.to(Device::cuda)));
    sum(there).backward();
    const std::vector<double> numbers = there.value().to_vector();
    for (std::size_t i = 0; i < here.size(); ++i) CHECK(std::abs(numbers[i] - here.span()[i]) < 1e-12);
    for (const Tensor64& handle : handles) {
        CHECK(handle.value().device() == Device::cuda);
        CHECK(handle.grad().device() == Device::cuda);
    }
}

}  // namespace tally::test
