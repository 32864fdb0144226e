// Tests that the mask of a dropout layer depends on the layer's position in its model.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/window.hpp"

namespace tally::test {
namespace {

using A = Array<float>;

A ones() { return A::full({4, 30}, 1); }

// Defines a module whose dropout layers have different positions.
struct DropoutNet : Module<float> {
    DropoutNet() : body(Linear<float>(30, 30, {1, 0}), Dropout<float>(0.5)) {}
    void list(Members& members) override {
        members.child("body", body);
        members.child("first", first);
        members.child("second", second);
    }
    std::vector<A> masks(ForwardPass& pass) {
        return {body.layer(1)(constant(ones()), pass).value(), first(constant(ones()), pass).value(),
                second(constant(ones()), pass).value()};
    }
    Sequential<float> body;
    Dropout<float> first, second{0.5};
};

A mask_of(std::uint64_t stream) { return dropout(constant(ones()), 0.5, {3, stream, 0}).value(); }

bool all_differ(const std::vector<A>& masks) {
    for (std::size_t i = 0; i < masks.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (same_bits(masks[i], masks[j])) return false;
    return true;
}

std::vector<A> drawn(Sequential<float>& model) {
    ForwardPass pass{true, 3};
    std::vector<A> masks;
    for (std::size_t i = 0; i < model.size(); ++i)
        masks.push_back(model.layer(i)(constant(ones()), pass).value());
    return masks;
}

}  // namespace

TEST_CASE("Dropout: two layers of one model draw different masks without an explicit stream") {
    Sequential<float> model(Dropout<float>(0.5), Dropout<float>(0.5), Dropout<float>(0.5));
    const std::vector<A> masks = drawn(model);
    CHECK(all_differ(masks));
    CHECK(same_bits(masks[0], mask_of(0)));  // the first mask equals the mask of a layer outside a model
    ForwardPass pass{true, 3};
    std::size_t twos = 0;
    Sequential<float> pair(Dropout<float>(0.5), Dropout<float>(0.5));
    const A both = pair(constant(ones()), pass).value();
    for (const float x : both.span()) twos += x == 4;
    CHECK(twos > 0);
    CHECK(twos < 60);  // about a quarter of 120 elements, not half
}

TEST_CASE("invariant 11: masks are a function of the model and not of modules made or listed before") {
    std::vector<A> before;
    for (int time = 0; time < 3; ++time) {
        DropoutNet net;
        if (time == 1) net.body.parameters();
        net.parameters();
        if (time == 2) {
            net.body.parameters();
            detail::modules<float>(net.second);
        }
        ForwardPass pass{true, 3};
        std::vector<A> masks = net.masks(pass);
        CHECK(all_differ(masks));
        if (time > 0)
            for (std::size_t i = 0; i < masks.size(); ++i) CHECK(same_bits(masks[i], before[i]));
        before = std::move(masks);
    }
}

TEST_CASE("Dropout: layers of nested models draw different masks") {
    Sequential<float> outer(Sequential<float>(Dropout<float>(0.5), Dropout<float>(0.5)),
                            Sequential<float>(Dropout<float>(0.5)), Dropout<float>(0.5));
    outer.layer(1).parameters();
    ForwardPass pass{true, 3};
    auto& inner = dynamic_cast<Sequential<float>&>(outer.layer(0));
    std::vector<A> masks{
        inner.layer(0)(constant(ones()), pass).value(), inner.layer(1)(constant(ones()), pass).value(),
        outer.layer(1)(constant(ones()), pass).value(), outer.layer(2)(constant(ones()), pass).value()};
    CHECK(all_differ(masks));
    for (std::uint64_t i = 0; i < 4; ++i) CHECK(same_bits(masks[i], mask_of(i)));
}

TEST_CASE("Dropout: an explicit stream is kept, and no other layer gets the same stream") {
    Sequential<float> model(Dropout<float>(0.5), Dropout<float>(0.5, 1), Dropout<float>(0.5),
                            Dropout<float>(0.5, 0));
    const std::vector<A> masks = drawn(model);
    CHECK(all_differ(masks));
    CHECK(same_bits(masks[1], mask_of(1)));
    CHECK(same_bits(masks[3], mask_of(0)));
    CHECK_THROWS_WITH(
        (Sequential<float>(Dropout<float>(0.5, 7), ReLU<float>(), Dropout<float>(0.5, 7))),
        "[module] '0' and '2' are both given stream 7; give them different streams, or none, so that "
        "each gets its own");
}

TEST_CASE("Dropout: layers without a common model that would draw the same mask throw an Error") {
    const std::string message =
        "[dropout] two layers of one pass would draw from stream 0 and drop the same; let one model list "
        "both "
        "as its children (and make the optimizer from its parameters), or give each a stream: Dropout(p, "
        "stream)";
    const Tensor x = constant(ones());
    Dropout<float> alone, other;
    ForwardPass pass{true, 3};
    CHECK(same_bits(alone(x, pass).value(), mask_of(0)));
    CHECK(same_bits(alone(x, pass).value(), mask_of(0)));  // a second call of the layer has the same mask
    CHECK_THROWS_WITH(other(x, pass), message);
    CHECK_NOTHROW(other(x));
    ForwardPass next{true, 4};
    CHECK_NOTHROW(other(x, next));
    ForwardPass temporary{true, 3};
    CHECK_NOTHROW(Dropout<float>(0.5)(x, temporary));
    CHECK_THROWS_WITH(Dropout<float>(0.5)(x, temporary), message);
    temporary.first_item += 4;  // different items have different masks
    CHECK_NOTHROW(Dropout<float>(0.5)(x, temporary));
    Sequential<float> encoder(Dropout<float>(0.5)), decoder(Dropout<float>(0.5));
    ForwardPass both{true, 3};
    CHECK_NOTHROW(encoder(x, both));
    CHECK_THROWS_WITH(decoder(x, both), message);
    for (Sequential<float>* part : {&encoder, &decoder}) part->checkpoint({.segments = 1});
    ForwardPass segments{true, 3};
    CHECK_NOTHROW(encoder(parameter(ones()), segments));
    CHECK_THROWS_WITH(decoder(parameter(ones()), segments), message);
}

}  // namespace tally::test
