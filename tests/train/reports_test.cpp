// Tests that SavedValues counts the same bytes as the memory report and names a model's layers.
#include <set>
#include <string>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/tools/saved_values.hpp"
#include "tally/tools/scope_name.hpp"
#include "tally/train/layers.hpp"

namespace tally::test {
namespace {

Sequential<float> random_model(Random& random, std::int64_t& width, std::uint64_t seed) {
    Sequential<float> model;
    const std::int64_t layers = random.whole(1, 8);
    for (std::int64_t i = 0; i < layers; ++i) {
        const detail::RngStream stream{seed, static_cast<std::uint64_t>(i)};
        switch (random.whole(0, 6)) {
            case 0: {
                const std::int64_t next = random.whole(1, 20);
                model.add(Linear<float>(width, next, stream, {.bias = random.coin()}));
                width = next;
                break;
            }
            case 1:
                model.add(ReLU<float>());
                break;
            case 2:
                model.add(Tanh<float>());
                break;
            case 3:
                model.add(GELU<float>());
                break;
            case 4:
                model.add(LayerNorm<float>(width));
                break;
            case 5:
                model.add(Dropout<float>(0.5, stream.number));
                break;
            default:
                model.add(Sequential<float>{Linear<float>(width, width, stream), Tanh<float>()});
        }
    }
    return model;
}

}  // namespace

TEST_CASE("SavedValues: the bytes of random models equal the saved bytes of the memory report") {
    const std::uint64_t seed = GENERATE(range(1u, 101u));
    CAPTURE(seed);
    Random random(seed);
    std::int64_t width = random.whole(1, 20);
    const std::int64_t rows = random.whole(1, 9);
    const Tensor x = constant(random.array<float>({rows, width}));
    Sequential<float> model = random_model(random, width, seed);
    const std::size_t before = in_use(MemoryClass::saved);
    const SavedValues kept;
    ForwardPass pass{.training = true, .seed = seed};
    const Tensor loss = cross_entropy(model(x, pass), random.integers({rows}, 0, width - 1)).mean();
    CHECK(kept.bytes() == in_use(MemoryClass::saved) - before);
    if (!loss.requires_grad()) return;
    CHECK(kept.bytes() > 0);
    loss.backward();
    CHECK(in_use(MemoryClass::saved) == before);
    CHECK(kept.bytes() == 0);
}

TEST_CASE("SavedValues: layers of a Sequential are named by number and type") {
    Sequential<float> model{Linear<float>(4, 4, {1, 0}), ReLU<float>(),
                            Sequential<float>{Linear<float>(4, 3, {1, 1}), Tanh<float>()}};
    const SavedValues kept;
    const ScopeName here("model");
    const std::string place = "reports_test.cpp:" + std::to_string(__LINE__ - 1) + " model > ";
    const Tensor y = model(constant(Array<float>::full({2, 4}, 1)));
    std::set<std::string> places;
    for (const SavedValues::Entry& entry : kept.entries()) places.insert(entry.op + " in " + entry.where);
    CHECK(places == std::set<std::string>{"linear in " + place + "0 Linear", "relu in " + place + "1 ReLU",
                                          "linear in " + place + "2 Sequential > 0 Linear",
                                          "tanh in " + place + "2 Sequential > 1 Tanh"});
}

}  // namespace tally::test
