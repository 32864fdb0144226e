// Tests that layers compute the same results and gradients as PyTorch with the same weights. Also tests
// initial values and causal attention.
#include "tally/train/layers.hpp"

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/tools/gradcheck.hpp"
#include "tally/train/module.hpp"
#include "train/layer_pass.hpp"

namespace tally::test {
namespace {

const detail::RngStream any_stream{1, 0};

}  // namespace

TEST_CASE("Sequential: a small network with PyTorch's weights yields PyTorch's results and gradients") {
    Sequential<double> model{Flatten<double>(),
                             Linear<double>(6, 5, any_stream),
                             ReLU<double>(),
                             Linear<double>(5, 4, any_stream),
                             GELU<double>(),
                             LayerNorm<double>(4),
                             Linear<double>(4, 3, any_stream, {.bias = false}),
                             Tanh<double>()};
    model.load_weights(layer_folder + "mlp.safetensors", WeightOrder::pytorch);
    check_pass(model, Expected("mlp"));
}

TEST_CASE("SelfAttention: results and gradients are PyTorch's with the same weights") {
    const bool causal = GENERATE(false, true);
    SelfAttention<double> model(8, 2, any_stream, {.causal = causal});
    model.load_weights(layer_folder + "attention.safetensors", WeightOrder::pytorch);
    check_pass(model, Expected("attention"), causal ? "-causal" : "");
}

TEST_CASE("SelfAttention: gradients agree with finite differences") {
    const std::uint64_t seed = GENERATE(range(1u, 13u));
    CAPTURE(seed);
    Random random(seed);
    const std::int64_t heads = random.whole(1, 3), width = heads * random.whole(1, 3);
    SelfAttention<double> model(width, heads, {seed, 0}, {.causal = random.coin()});
    const Shape shape{random.whole(1, 3), random.whole(1, 4), width};
    const auto f = [&](const auto& in) { return model(in[0]); };
    const auto result = gradcheck(f, {random.array<double>(shape)});
    INFO(result.report);
    CHECK(result.ok);
}

TEST_CASE("SelfAttention: causal attention at one place does not depend on later places") {
    const std::uint64_t seed = GENERATE(range(1u, 31u));
    CAPTURE(seed);
    Random random(seed);
    const std::int64_t places = random.whole(2, 9), seen = random.whole(1, places - 1);
    SelfAttention<float> causal(6, 3, {seed, 0}, {.causal = true}), open(6, 3, {seed, 0});
    const Array<float> x = random.array<float>({2, places, 6}), other = random.array<float>({2, places, 6});
    const Tensor mixed =
        concat<float>({slice(constant(x), 1, 0, seen), slice(constant(other), 1, seen, places)}, 1);
    const auto first = [&](SelfAttention<float>& model, const Tensor& input) {
        return slice(model(input), 1, 0, seen).value();
    };
    CHECK(same_bits(first(causal, constant(x)), first(causal, mixed)));
    CHECK_FALSE(same_bits(first(open, constant(x)), first(open, mixed)));
}

TEST_CASE("Linear, SelfAttention: initial values come from the layer's own random stream, within a bound") {
    const Linear<float> layer(16, 3, {7, 2});
    for (std::size_t i = 0; i < 48; ++i)
        CHECK(layer.weight.value().span()[i] == random::detail::uniform<float>(7, 2, i, -0.25f, 0.25f));
    for (std::size_t i = 0; i < 3; ++i)
        CHECK(layer.bias.value().span()[i] == random::detail::uniform<float>(7, 2, 48 + i, -0.25f, 0.25f));
    CHECK_FALSE(same_bits(layer.weight.value(), Linear<float>(16, 3, {7, 3}).weight.value()));
    CHECK_FALSE(same_bits(layer.weight.value(), Linear<float>(16, 3, {8, 2}).weight.value()));
    CHECK_FALSE(Linear<float>(16, 3, {7, 2}, {.bias = false}).bias);

    const SelfAttention<double> attention(6, 2, {7, 2});
    const double bound = std::sqrt(6.0 / (6 + 18)), out_bound = 1 / std::sqrt(6.0);  // Glorot, Linear
    for (std::size_t i = 0; i < 6 * 18; ++i)
        CHECK(attention.in_weight.value().span()[i] ==
              random::detail::uniform<double>(7, 2, i, -bound, bound));
    for (std::size_t i = 0; i < 36; ++i)
        CHECK(attention.out_weight.value().span()[i] ==
              random::detail::uniform<double>(7, 2, 6 * 18 + i, -out_bound, out_bound));
    for (const double zero : attention.in_bias.value().to_vector()) CHECK(zero == 0);
    for (const double zero : attention.out_bias.value().to_vector()) CHECK(zero == 0);
}

TEST_CASE("Layers: inputs of a wrong shape throw an Error") {
    CHECK_THROWS_WITH(SelfAttention<float>(8, 3, any_stream),
                      "[attention] a width of 8 cannot be divided among 3 heads");
    CHECK_THROWS_AS(SelfAttention<float>(8, 0, any_stream), Error);
    SelfAttention<float> attention(4, 2, any_stream);
    CHECK_THROWS_WITH(attention(constant(Array<float>::zeros({2, 4}))),
                      "[attention] requires (items, places, 4), but got (2, 4)");
    CHECK_THROWS_WITH(attention(constant(Array<float>::zeros({2, 3, 5}))), contains("but got (2, 3, 5)"));
    CHECK_THROWS_WITH(Flatten<float>()(constant(Array<float>({}, {1}))), contains("[flatten]"));
    CHECK_THROWS_WITH(Linear<float>(4, 2, any_stream)(constant(Array<float>::zeros({2, 3}))),
                      contains("[linear]"));
}

TEST_CASE("Layers: a batch without items is valid") {
    Sequential<float> model{Flatten<float>(), Linear<float>(6, 2, any_stream)};
    CHECK(model(constant(Array<float>::zeros({0, 2, 3}))).shape() == Shape{0, 2});
    SelfAttention<float> attention(4, 2, any_stream, {.causal = true});
    CHECK(attention(constant(Array<float>::zeros({0, 3, 4}))).shape() == Shape{0, 3, 4});
    CHECK(attention(constant(Array<float>::zeros({2, 0, 4}))).shape() == Shape{2, 0, 4});
}

}  // namespace tally::test
