// Tests add_with_exact_batch_norm(). Every split gives the full batch's gradient and running statistics.
#include "tally/train/exact_batch_norm.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/train/image_layers.hpp"

namespace tally::test {
namespace {

// A Drawn stores random data and a network of random layers. One of the layers is a batch norm.
struct Drawn {
    Drawn(Random& random, std::uint64_t seed) : images(random.coin()), items(random.whole(2, 9)) {
        const std::int64_t channels = random.whole(1, 3), wide = random.whole(2, 4), classes = 3;
        x = random.array<double>(images ? Shape{items, 2, wide, wide} : Shape{items, 4});
        labels = random.integers({items}, 0, static_cast<std::int64_t>(classes) - 1);
        target = random.array<double>({items, classes});
        squares = random.coin();
        const auto norm = [&](std::int64_t features) {
            BatchNorm<double> layer(features, 1e-3, 0.3);
            layer.weight.assign(random.array<double>({features}, -2, 2));
            layer.bias.assign(random.array<double>({features}));
            return layer;
        };
        const std::int64_t place = random.whole(0, 3);
        if (images) {
            if (place == 0) model.add(norm(2));
            model.add(Conv2d<double>(2, channels, 3, {seed, 0}, {.padding = 1}));
            if (random.coin()) model.add(Dropout<double>(0.3, 1));
            if (place == 1) model.add(norm(channels));
            model.add(Tanh<double>());
            if (place == 2) model.add(norm(channels));
            model.add(Flatten<double>());
            if (random.coin()) model.add(Dropout<double>(0.3, 2));
            model.add(Linear<double>(channels * wide * wide, classes, {seed, 3}));
        } else {
            if (place == 0) model.add(norm(4));
            model.add(Linear<double>(4, 6, {seed, 0}));
            if (place == 1) model.add(norm(6));
            model.add(GELU<double>());
            if (place == 2) model.add(norm(6));
            if (random.coin()) model.add(Dropout<double>(0.3, 2));
            model.add(Linear<double>(6, classes, {seed, 3}));
        }
        if (place == 3) model.add(norm(classes));
    }

    Tensor64 input(const Items& some) const { return constant(rows(x, some)); }
    Loss<Array<double>> loss(const Tensor64& y, const Items& some) const {
        if (squares) return mse(y, constant(rows(target, some)));
        return cross_entropy(y, rows(labels, some));
    }

    bool images, squares = false;
    std::int64_t items;
    Array<double> x, target;
    Array<std::int32_t> labels;
    Sequential<double> model;
};

// Stores the gradients of all parameters, in the order of the parameters, and the running statistics.
struct Numbers {
    std::vector<double> gradients, buffers;
};

Numbers numbers(Drawn& drawn, const std::vector<std::vector<double>>& before) {
    Numbers all;
    std::size_t at = 0;
    for (const Tensor64& p : drawn.model.parameters()) {
        const auto now = p.value().to_vector();
        for (std::size_t i = 0; i < now.size(); ++i) all.gradients.push_back(before[at][i] - now[i]);
        ++at;
    }
    for (const detail::Member<double>& member : detail::members(drawn.model)) {
        if (member.buffer)
            for (const double number : member.buffer->to_vector()) all.buffers.push_back(number);
        if (member.counter) all.buffers.push_back(member.counter->item());
    }
    return all;
}

Numbers trained(std::uint64_t seed, bool exact) {
    Random random(seed);
    Drawn drawn(random, seed);
    std::vector<std::vector<double>> before;
    for (const Tensor64& p : drawn.model.parameters()) before.push_back(p.value().to_vector());
    Sgd<double> sgd(drawn.model.parameters(), {.learning_rate = 1});
    Window<double>::Options options{.seed = seed};
    const double count = static_cast<double>(drawn.items * (drawn.squares ? 3 : 1));
    if (random.coin()) options.total = count;
    if (random.coin()) options.max_norm = 0.5;
    Window<double> window(sgd, options);
    std::vector<std::int64_t> sizes;
    for (std::int64_t left = drawn.items; left > 0; left -= sizes.back())
        sizes.push_back(random.whole(1, left));
    CAPTURE(sizes, drawn.images, drawn.squares, drawn.items, options.total, options.max_norm.has_value());
    const auto loss = [&](const Tensor64& y, const Items& some) { return drawn.loss(y, some); };
    if (exact) {
        add_with_exact_batch_norm<double>(
            window, drawn.model, split(Items::in_order(drawn.items), sizes),
            [&](const Items& some) { return drawn.input(some); }, loss);
        CHECK(window.micro_batches() == static_cast<std::int64_t>(sizes.size()));
    } else {
        const Items all = Items::in_order(drawn.items);
        window.add(loss(drawn.model(drawn.input(all), window.begin_micro_batch(drawn.items)), all));
    }
    if (random.coin()) window.add_regularizer(sum(drawn.model.parameters()[0]) * 0.25);
    const auto done = window.finish();
    CHECK(done.stepped);
    CHECK(done.count == count);
    return numbers(drawn, before);
}

void check_near(const std::vector<double>& got, const std::vector<double>& want) {
    REQUIRE(got.size() == want.size());
    double largest = 0, most = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        largest = std::max(largest, std::abs(want[i]));
        most = std::max(most, std::abs(got[i] - want[i]));
    }
    CHECK(most <= 1e-12 * (1 + largest));
}

}  // namespace

TEST_CASE("Law: with exact batch norm the window's gradient is the full batch's for every split") {
    const std::uint64_t seed = GENERATE(range(1u, 301u));
    CAPTURE(seed);
    const Numbers whole = trained(seed, false), split = trained(seed, true);
    check_near(split.gradients, whole.gradients);
    check_near(split.buffers, whole.buffers);
}

TEST_CASE("add_with_exact_batch_norm: models and windows for which it would not be exact throw an Error") {
    const Array<double> x = Random(1).array<double>({4, 3});
    const auto add = [&](Sequential<double>& model, Window<double>& window, std::int64_t items = 4) {
        add_with_exact_batch_norm<double>(
            window, model, split(Items::in_order(items), 2),
            [&](const Items& some) { return constant(rows(x, some)); },
            [](const Tensor64& y, const Items&) { return Loss(y * y); });
    };
    const auto error_of = [&](Sequential<double> model, Window<double>::Options options = {}) {
        Sgd<double> sgd(model.parameters(), {.learning_rate = 1});
        Window<double> window(sgd, options);
        try {
            add(model, window);
        } catch (const Error& error) {
            CHECK(window.micro_batches() == 0);
            return std::string(error.what());
        }
        return std::string("no error");
    };
    CHECK_THAT(error_of(Sequential<double>{Linear<double>(3, 3, {1, 0})}),
               contains("has no batch norm; add()"));
    CHECK_THAT(error_of(Sequential<double>{BatchNorm<double>(3), Tanh<double>(),
                                           Sequential<double>{BatchNorm<double>(3)}}),
               contains("has 2 batch norms, '0', '2.0': the statistics of each"));
    Sequential<double> nested;
    nested.add(Sequential<double>{BatchNorm<double>(3)});
    CHECK_THAT(error_of(std::move(nested)), contains("batch norm '0.0' is inside another module"));
    CHECK_THAT(error_of(Sequential<double>{BatchNorm<double>(3)}, {.non_finite = NonFinite::drop_micro}),
               contains("cannot be dropped"));

    Sequential<double> model{Linear<double>(3, 3, {1, 0}), BatchNorm<double>(3)};
    Sgd<double> sgd(model.parameters(), {.learning_rate = 0.1});
    Window<double> window(sgd);
    add(model, window);
    CHECK_THROWS_WITH(add(model, window),
                      contains("holds 2 micro-batches, which were normalised separately"));
    window.discard();
    CHECK_THROWS_WITH(add(model, window, 1), contains("1 values per feature have no variance"));
    CHECK_THROWS_WITH(window.finish(), contains("discard() the window"));
    window.discard();
    const std::size_t in_use = memory::in_use();
    const std::int64_t nodes = Node::live_count();
    add(model, window);
    window.discard();
    CHECK(memory::in_use() == in_use);
    CHECK(Node::live_count() == nodes);
}

TEST_CASE("add_with_exact_batch_norm: layers before the batch norm run three times, layers after it once") {
    class Counting : public Layer<double> {
    public:
        explicit Counting(int& calls) : calls_(&calls) {}
        void list(Members&) override {}

    protected:
        Tensor64 forward(Tensor64 x, ForwardPass&) override {
            ++*calls_;
            return x;
        }

    private:
        int* calls_;
    };
    int before = 0, behind = 0;
    Sequential<double> model{Linear<double>(3, 3, {1, 0}), Counting(before), BatchNorm<double>(3),
                             Counting(behind)};
    Sgd<double> sgd(model.parameters(), {.learning_rate = 0.1});
    Window<double> window(sgd);
    const Array<double> x = Random(1).array<double>({6, 3});
    add_with_exact_batch_norm<double>(
        window, model, split(Items::in_order(6), 2),
        [&](const Items& some) { return constant(rows(x, some)); },
        [](const Tensor64& y, const Items&) { return Loss(y * y); });
    CHECK(before == 3 * 3);
    CHECK(behind == 3);
}

}  // namespace tally::test
