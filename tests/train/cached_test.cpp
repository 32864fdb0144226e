// Tests add_cached() and cached_backward(). Both functions must compute the gradient of the loss over all
// items, for all encoders and splits.
#include "tally/train/grad_cache.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/layer_norm.hpp"
#include "tally/train/image_layers.hpp"
#include "tally/train/micro_batch.hpp"

namespace tally::test {
namespace {

// Returns random sizes of parts that together have `items` items.
std::vector<std::int64_t> cuts(Random& random, std::int64_t items) {
    std::vector<std::int64_t> sizes;
    for (std::int64_t left = items; left > 0; left -= sizes.back()) sizes.push_back(random.whole(1, left));
    return sizes;
}

// Creates random encoders for several views of the same items. Some views share an encoder.
struct Towers {
    using Encoder = std::function<Tensor64(const Items&, ForwardPass&)>;

    Towers(Random& random, std::uint64_t seed, std::int64_t count, std::int64_t width, int views) {
        for (int view = 0; view < views; ++view) {
            x.push_back(random.array<double>({count, 3}));
            if (view == 0 || random.coin()) {
                auto tower = std::make_unique<Sequential<double>>();
                const auto stream = static_cast<std::uint64_t>(10 * view);
                tower->add(Linear<double>(3, width, {seed, stream}));
                if (random.coin()) tower->add(Tanh<double>());
                if (random.coin()) tower->add(Dropout<double>(0.4, stream + 1));
                if (random.coin()) tower->add(LayerNorm<double>(width));
                tower->add(Linear<double>(width, 4, {seed, stream + 2}));
                towers.push_back(std::move(tower));
            }
            of_view.push_back(towers.size() - 1);
        }
        for (auto& tower : towers)
            for (const Tensor64& p : tower->parameters()) parameters.push_back(p);
        parameters.push_back(scale);
    }

    std::vector<Encoder> encoders() {
        std::vector<Encoder> all;
        for (std::size_t view = 0; view < x.size(); ++view)
            all.push_back([this, view](const Items& items, ForwardPass& pass) {
                return (*towers[of_view[view]])(constant(rows(x[view], items)), pass);
            });
        return all;
    }

    // Sums the InfoNCE losses between the first view and every other view. If there is only one view, this
    // view is compared with itself.
    Loss<Array<double>> loss(const detail::Representations<double>& r) const {
        auto first = info_nce(r[0] * scale, r.back(), 0.5);
        for (std::size_t view = 1; view + 1 < r.size(); ++view) {
            const auto more = info_nce(r[0] * scale, r[view], 0.7);
            first = {first.sum + more.sum, first.count + more.count};
        }
        return first;
    }

    std::vector<std::unique_ptr<Sequential<double>>> towers;
    std::vector<std::size_t> of_view;
    std::vector<Array<double>> x;
    Tensor64 scale = parameter({1.5});
    std::vector<Tensor64> parameters;
};

std::vector<double> numbers(const std::vector<Tensor64>& parameters) {
    std::vector<double> all;
    for (const Tensor64& p : parameters)
        for (const double number : p.value().to_vector()) all.push_back(number);
    return all;
}

double relative(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double most = 0, largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        most = std::max(most, std::abs(a[i] - b[i]));
        largest = std::max(largest, std::abs(b[i]));
    }
    return most / (1 + largest);
}

}  // namespace

TEST_CASE("Law: cached gradients equal the gradient of the loss over all items") {
    const std::uint64_t seed = GENERATE(range(1u, 201u));
    Random random(seed);
    const bool large = seed % 8 == 0;  // uses BLAS products, whose bits depend on the size
    const std::int64_t items = large ? random.whole(40, 90) : random.whole(1, 12);
    const int views = static_cast<int>(random.whole(1, 3));
    Towers towers(random, seed, items, large ? 48 : 5, views);
    const std::vector<std::int64_t> sizes = cuts(random, items);
    const bool known = random.coin(), clipped = random.coin();
    CAPTURE(seed, items, views, towers.towers.size(), sizes, known, clipped);

    Window<double>::Options options{.micro_batches = 2, .seed = seed};
    if (known) options.total = static_cast<double>(2 * items * std::max(1, views - 1));
    if (clipped) options.max_norm = 0.01;
    const auto before = numbers(towers.parameters);
    const auto moved = [&](bool cached) {
        Sgd<double> sgd(towers.parameters, {.learning_rate = 1});
        Window<double> window(sgd, options);
        const auto encoders = towers.encoders();
        const auto loss = [&](const detail::Representations<double>& r) { return towers.loss(r); };
        for (int batch = 0; batch < 2; ++batch) {
            if (cached) {
                add_cached<double>(window, split(Items::in_order(items), sizes), encoders, loss);
                continue;
            }
            ForwardPass& pass = window.begin_micro_batch(items);
            detail::Representations<double> all;
            for (const auto& encoder : encoders) all.push_back(encoder(Items::in_order(items), pass));
            window.add(loss(all));
        }
        CHECK(window.full());
        const auto done = window.finish();
        CHECK(done.stepped);
        auto steps = numbers(towers.parameters);
        std::size_t at = 0;
        for (const Tensor64& p : towers.parameters)
            p.modify_value([&](Array<double>& value) {
                std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(at), value.size(), value.writable());
                at += value.size();
            });
        steps.push_back(done.loss());
        steps.push_back(done.count);
        return steps;
    };
    const auto whole = moved(false), cached = moved(true);
    CHECK(relative(cached, whole) <= 1e-12);
    if (!large) CHECK((cached == whole));
}

TEST_CASE("cached_backward: gradients are added to the parameters without a window") {
    Random random(4);
    const Array<double> x = random.array<double>({6, 3}), y = random.array<double>({6, 2});
    const Tensor64 a = parameter(random.array<double>({3, 4})), b = parameter(random.array<double>({2, 4})),
                   lone = parameter({1.0}), temperature = parameter({0.5});
    const auto loss = [&](const detail::Representations<double>& r) {
        return info_nce(r[0] * temperature, r[1]).mean();
    };
    const Tensor64 whole = loss({matmul(constant(x), a), matmul(constant(y), b)});
    whole.backward();
    std::vector<Array<double>> wanted;
    for (const Tensor64& p : {a, b, temperature}) {
        wanted.push_back(p.grad().clone());
        p.zero_grad();
    }
    const auto run = [&] {
        return cached_backward<double>(3,
                                       {[&](std::size_t k) {
                                            const auto from = static_cast<std::int64_t>(2 * k);
                                            return matmul(constant(x.slice_rows(from, from + 2)), a);
                                        },
                                        [&](std::size_t k) {
                                            const auto from = static_cast<std::int64_t>(2 * k);
                                            return matmul(constant(y.slice_rows(from, from + 2)), b);
                                        }},
                                       loss);
    };
    CHECK(run().item() == whole.item());
    CHECK(same_bits(a.grad(), wanted[0]));
    CHECK(same_bits(b.grad(), wanted[1]));
    CHECK(same_bits(temperature.grad(), wanted[2]));
    CHECK_FALSE(lone.has_grad());
    run();
    CHECK(std::abs(a.grad().span()[0] - 2 * wanted[0].span()[0]) < 1e-15);
}

TEST_CASE("add_cached: side effects of encoders happen once, and an encoder may have no parameters") {
    Random random(6);
    const Array<double> x = random.array<double>({8, 3}), keys = random.array<double>({8, 5});
    const auto statistics = [&](bool cached) {
        Sequential<double> model{Linear<double>(3, 5, {1, 0}), BatchNorm<double>(5), Dropout<double>(0.5, 3)};
        Sgd<double> sgd(model.parameters(), {.learning_rate = 0});  // a learning rate of 0 changes no weight
        Window<double> window(sgd);
        const auto parts = split(Items::in_order(8), 3);
        // The second update reveals side effects that the first update has left behind.
        for (int update = 0; update < 2; ++update) {
            if (cached) {
                add_cached<double>(
                    window, parts,
                    {[&](const Items& items, ForwardPass& pass) {
                         return model(constant(rows(x, items)), pass);
                     },
                     [&](const Items& items, ForwardPass&) { return constant(rows(keys, items)); }},
                    [](const auto& r) { return info_nce(r[0], r[1]); });
            } else {
                for (const Items& part : parts) {
                    const auto y = model(constant(rows(x, part)), window.begin_micro_batch(part.count()));
                    window.add(mse(y, constant(rows(keys, part))));
                }
            }
            CHECK(window.finish().stepped);
        }
        std::vector<double> all;
        for (const detail::Member<double>& member : detail::members(model)) {
            if (member.buffer)
                for (const double number : member.buffer->to_vector()) all.push_back(number);
            if (member.counter) all.push_back(member.counter->item());
        }
        return all;
    };
    CHECK(statistics(true) == statistics(false));
}

TEST_CASE("cached_backward: an encoder with another result the second time throws an Error") {
    const Tensor64 w = parameter({1.0, 2.0});
    double calls = 0;
    const auto encode = [&](const std::function<Tensor64(std::size_t, double)>& second) {
        w.free_grad();
        calls = 0;
        cached_backward<double>(2,
                                {[&](std::size_t) {
                                     return reshape(w, Shape{1, 2}) * 2.0;
                                 },
                                 [&](std::size_t part) { return second(part, calls++); }},
                                [](const auto& r) { return info_nce(r[0], r[1]).mean(); });
    };
    encode([&](std::size_t, double) { return reshape(w, Shape{1, 2}); });
    CHECK_THROWS_WITH(encode([&](std::size_t, double call) {
                          return reshape(w, Shape{1, 2}) * (call == 3 ? 1.5 : 1.0);
                      }),
                      contains("[cached] encoder 1 returns another result for part 1 the second time"));
    CHECK_THROWS_WITH(encode([&](std::size_t, double call) {
                          return call < 2 ? reshape(w, Shape{1, 2}) : reshape(w, Shape{2, 1});
                      }),
                      contains("encoder 1 returns another result for part 0"));
    CHECK_THROWS_WITH(encode([&](std::size_t, double) { return sum(w); }), contains("a row for each item"));
    CHECK_THROWS_WITH(
        cached_backward<double>(0, {[&](std::size_t) { return w; }}, [](const auto& r) { return sum(r[0]); }),
        contains("requires encoders and parts; there are 1 and 0"));
}

TEST_CASE("add_cached: after an error the window can only be discarded, and no part is dropped") {
    Random random(2);
    Towers towers(random, 2, 6, 4, 2);
    Sgd<double> sgd(towers.parameters, {.learning_rate = 1});
    const auto loss = [&](const detail::Representations<double>& r) { return towers.loss(r); };
    {
        Window<double> window(sgd);
        auto encoders = towers.encoders();
        int calls = 0;
        encoders.push_back([&](const Items& items, ForwardPass& pass) {
            if (++calls > 3) throw Error("gone");
            return encoders[0](items, pass);
        });
        CHECK_THROWS_WITH(add_cached<double>(window, split(Items::in_order(6), 2), encoders, loss),
                          contains("gone"));
        CHECK_THROWS_WITH(window.finish(), contains("discard() the window"));
        window.discard();
        add_cached<double>(window, split(Items::in_order(6), 2), towers.encoders(), loss);
        CHECK(window.finish().stepped);
    }
    Window<double> window(sgd, {.non_finite = NonFinite::drop_micro});
    CHECK_THROWS_WITH(add_cached<double>(window, split(Items::in_order(6), 2), towers.encoders(), loss),
                      contains("no micro-batch that could be dropped"));
}

TEST_CASE("add_cached: only one part at a time is saved, and MicroBatchSize may choose its size") {
    Random random(3);
    const std::int64_t items = 64;
    Towers towers(random, 3, items, 200, 2);
    Sgd<double> sgd(towers.parameters, {.learning_rate = 0.1});
    Window<double> window(sgd);
    const auto loss = [&](const detail::Representations<double>& r) { return towers.loss(r); };
    const auto saved = [&](std::int64_t size) {
        memory::reset_peak();
        add_cached<double>(window, split(Items::in_order(items), size), towers.encoders(), loss);
        window.finish();
        return memory::report().peak_by[static_cast<std::size_t>(MemoryClass::saved)];
    };
    const std::size_t logits = static_cast<std::size_t>(items * items) * sizeof(double);
    const std::size_t whole = saved(items), parts = saved(4);
    CHECK(whole > 2 * logits);
    CHECK(parts < 2 * logits);  // only the values that the loss itself saves are left

    MicroBatchSize size(items);
    const auto done = size.update(window, items, [&](std::int64_t most) {
        add_cached<double>(window, split(Items::in_order(items), most), towers.encoders(), loss);
        if (most > 20) throw OutOfMemory("none left", Device::cpu, 64, 0);
    });
    CHECK(size.now() == 16);
    CHECK(done.count == static_cast<double>(items));
    CHECK(done.micro_batches == 1);
}

}  // namespace tally::test
