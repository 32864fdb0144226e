// Tests the class Chain with segments and with snapshots. Checks the number of runs of each layer, the memory
// in use, and the bits of the gradients.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "effort.hpp"
#include "memory/memory_helpers.hpp"
#include "tally/tally.hpp"

using namespace tally;
using namespace tally::test;

namespace {

using Sizes = std::vector<std::size_t>;

// Makes layers of several kinds. `begun` counts how often each layer runs.
template <class S> struct Layers {
    using V = Var<Array<S>>;
    Chain<Array<S>> chain;
    std::vector<V> leaves;
    std::size_t begun = 0;

    Layers(std::size_t count, std::uint64_t seed, std::int64_t rows = 3, std::int64_t width = 4) {
        Random random(seed);
        leaves.push_back(parameter(random.array<S>({rows, width}, -1, 1)));
        for (std::size_t i = 0; i < count; ++i) {
            const V w = parameter(random.array<S>({width, width}, -1, 1)),
                    b = parameter(random.array<S>({width}, -1, 1));
            leaves.push_back(w), leaves.push_back(b);
            switch (random.whole(0, 4)) {
                case 0:
                    add([w, b](V x) { return relu(linear(std::move(x), w, b)); });
                    break;
                case 1:
                    add([w, b](V x) { return linear_relu(std::move(x), w, b); });
                    break;
                case 2:
                    add([w, b](V x) { return x + tanh(linear(x, w, b)); });
                    break;
                case 3:
                    add([b, i](V x) { return dropout(std::move(x) * b, 0.2, {1, i, 0}); });
                    break;
                default:
                    add([w, b](V x) { return layer_norm(matmul(std::move(x), w), b, b); });
            }
        }
    }
    void add(std::function<V(V)> layer) {
        chain.push_back([this, layer = std::move(layer)](V x) {
            ++begun;
            return layer(std::move(x));
        });
    }
    template <class Way> std::vector<Array<S>> gradients(Way way) {
        begun = 0;
        sum(way(leaves[0])).backward();
        std::vector<Array<S>> all;
        for (const V& leaf : leaves) {
            all.push_back(leaf.has_grad() ? leaf.grad().clone() : Array<S>());
            leaf.zero_grad();
        }
        return all;
    }
    std::vector<Array<S>> plain() {
        return gradients([&](const V& x) { return checkpoint_sequential(chain, 1, x); });
    }
};

template <class S> bool same(const std::vector<Array<S>>& a, const std::vector<Array<S>>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (detail::has_memory(a[i]) != detail::has_memory(b[i]) ||
            (detail::has_memory(a[i]) && !same_bits(a[i], b[i])))
            return false;
    return a.size() == b.size();
}

// Computes by recursion the least number of steps that Revolve must run.
std::uint64_t least_advances(std::size_t steps, std::size_t snapshots) {
    static std::vector<std::vector<std::uint64_t>> known(65,
                                                         std::vector<std::uint64_t>(9, ~std::uint64_t{0}));
    std::uint64_t& least = known[steps][snapshots];
    if (least != ~std::uint64_t{0}) return least;
    if (snapshots == 1 || steps == 1) return least = steps * (steps - 1) / 2;
    for (std::size_t k = 1; k < steps; ++k)
        least = std::min(least, k + least_advances(steps - k, snapshots - 1) + least_advances(k, snapshots));
    return least;
}

}  // namespace

TEST_CASE("even_segments: spread the remainder evenly") {
    CHECK(even_segments(9, 5) == Sizes{2, 2, 2, 2, 1});
    CHECK(even_segments(16, 4) == Sizes{4, 4, 4, 4});
    CHECK(even_segments(3, 3) == Sizes{1, 1, 1});
    for (std::size_t n = 1; n <= 64; ++n)
        for (std::size_t k = 1; k <= n; ++k) {
            const Sizes sizes = even_segments(n, k);
            REQUIRE(sizes.size() == k);
            REQUIRE(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) == n);
            REQUIRE(std::is_sorted(sizes.rbegin(), sizes.rend()));
            REQUIRE(sizes.front() - sizes.back() <= 1);
        }
    CHECK(detail::default_segment_count(16) == 4);
    CHECK(detail::default_segment_count(1) == 1);
    CHECK(detail::default_segment_count(100) == 10);
    CHECK(message_of([] { even_segments(4, 5); }) ==
          "[even_segments] 4 layers cannot be cut into 5 segments; choose between 1 and 4");
    CHECK(message_of([] { even_segments(4, 0); }).find("into 0 segments") != std::string::npos);
    CHECK(message_of([] { even_segments(1, 2); }) ==
          "[even_segments] 1 layer cannot be cut into 2 segments; choose 1");
    Layers<double> layers(3, 1), empty(0, 1);
    CHECK(message_of([&] { checkpoint_sequential(layers.chain, 4, layers.leaves[0]); }) ==
          "[checkpoint_sequential] 3 layers cannot be cut into 4 segments; choose between 1 and 3");
    CHECK(message_of([&] { checkpoint_sequential(empty.chain, empty.leaves[0]); }) ==
          "[checkpoint_sequential] the chain has no layers; add at least one");
    CHECK(message_of([&] {
              checkpoint_sequential(layers.chain, {2, 2}, layers.leaves[0]);
          }) == "[checkpoint_sequential] the segments have 4 layers, the chain has 3");
    CHECK(message_of([&] {
              checkpoint_sequential(layers.chain, {3, 0}, layers.leaves[0]);
          }) == "[checkpoint_sequential] a segment has 0 layers; pass at least 1 for each");
}

TEST_CASE("checkpoint_sequential: n layers in k segments run 2n - n/k times and keep every gradient's bits") {
    const auto longest = static_cast<std::size_t>(24 + cases_of(40));
    for (std::size_t n = 1; n <= longest; ++n) {
        Layers<float> layers(n, n);
        const auto plain = layers.plain();
        CHECK(layers.begun == n);
        for (std::size_t k = 1; k <= n; ++k) {
            INFO(n << " layers, " << k << " segments");
            const auto again =
                layers.gradients([&](const Tensor& x) { return checkpoint_sequential(layers.chain, k, x); });
            REQUIRE(layers.begun == 2 * n - n / k);
            REQUIRE(same(plain, again));
        }
    }
}

TEST_CASE("Revolve: runs as many steps as its formula gives, and never holds more snapshots") {
    CHECK(detail::revolve_cost(10, 3) == 15);
    CHECK(detail::revolve_cost(16, 4) == 27);
    CHECK(detail::revolve_cost(100, 5) == 316);
    CHECK(detail::revolve_cost(100, 10) == 222);
    CHECK(detail::revolve_cost(1000, 10) == 3636);
    for (std::size_t l = 1; l <= 64; ++l) {
        Layers<float> layers(l, l, 2, 3);
        const auto plain = layers.plain();
        for (std::size_t c = 1; c <= 8; ++c) {
            INFO(l << " steps, " << c << " snapshots");
            REQUIRE(detail::revolve_cost(l, c) == least_advances(l, c));
            const Revolve<Array<float>> revolve(layers.chain, c);
            const auto again = layers.gradients([&](const Tensor& x) { return revolve(x); });
            REQUIRE(revolve.count().advanced == detail::revolve_cost(l, c));
            REQUIRE(revolve.count().recorded == l);
            REQUIRE(layers.begun == detail::revolve_cost(l, c) + l);
            REQUIRE(revolve.count().snapshots == std::min(c, std::max<std::size_t>(l, 2) - 1));
            REQUIRE(same(plain, again));
        }
    }
}

TEST_CASE("Revolve: throws Error without snapshots, without steps, and inside a checkpoint") {
    Layers<double> layers(3, 1);
    using R = Revolve<Array<double>>;
    CHECK(message_of([&] { R(layers.chain, 0); }) ==
          "[revolve] 0 snapshots are too few, because the input counts as one; use at least 1");
    CHECK(message_of([] { R({}, 1); }) == "[revolve] the chain has no steps; add at least one");
    const R revolve(layers.chain, 2);
    CHECK(message_of([&] {
              checkpoint([&](const Tensor64& x) { return revolve(x); }, layers.leaves[0]);
          }).find("[revolve] a Revolve cannot run inside a checkpointed function") == 0);
    {
        const NoGrad off;
        CHECK_FALSE(revolve(layers.leaves[0]).requires_grad());
    }
}

TEST_CASE("Revolve: throws Error when a step gives other values, and leaves no node") {
    const Tensor64 x = parameter(Random(1).array<double>({3}));
    const std::int64_t nodes = Node::live_count();
    int runs = 0;
    Chain<Array<double>> steps(5, [](Tensor64 h) { return sin(std::move(h)); });
    {
        const Revolve<Array<double>> revolve(steps, 2);
        const Tensor64 first = sum(revolve(x)), second = sum(revolve(x) * 2);
        first.backward();
        const Array<double> once = x.grad().clone();
        x.zero_grad();
        second.backward();
        CHECK(x.grad().span()[0] == 2 * once.span()[0]);
        const Tensor64 never = revolve(x);  // is freed without a backward pass
        steps[1] = [&](Tensor64 h) { return std::move(h) * double(++runs); };
        const std::string error = message_of([&] { sum(Revolve<Array<double>>(steps, 2)(x)).backward(); });
        INFO(error);
        CHECK(error.find("other values") != std::string::npos);
    }
    CHECK(Node::live_count() == nodes);
}

TEST_CASE("Revolve: is_recomputing() is false exactly once per step, also on the way to a snapshot") {
    const Tensor64 x = parameter(Random(1).array<double>({3}));
    int happened = 0, runs = 0;
    const Chain<Array<double>> steps(6, [&](Tensor64 h) {
        ++runs;
        if (!is_recomputing()) ++happened;
        return sin(std::move(h));
    });
    sum(Revolve<Array<double>>(steps, 2)(x)).backward();
    CHECK(happened == 6);
    CHECK(runs > 12);
}

TEST_CASE("Revolve: finds changed steps, and computes values that a step reads") {
    const Tensor64 x = parameter(Random(1).array<double>({3}));
    std::uint64_t runs = 0;
    Chain<Array<double>> steps(6, [](Tensor64 h) { return sin(std::move(h)); });
    steps[1] = [&](Tensor64 h) {
        return std::move(h) + constant(Array<double>::full({3}, static_cast<double>(++runs), here()));
    };
    CHECK(message_of([&] {
              sum(Revolve<Array<double>>(steps, 2)(x)).backward();
          }).find("gave other values than the first time") != std::string::npos);
    x.zero_grad();
    const Tensor64 w = parameter(Random(2).array<double>({3, 3})),
                   b = parameter(Random(3).array<double>({3}));
    std::size_t looked = 0;
    for (auto& step : steps)
        step = [&](const Tensor64& h) {
            const Tensor64 y = linear(reshape(h, {1, 3}), w, b);
            looked += y.value().to_vector().size();
            return reshape(y, {3});
        };
    sum(checkpoint_sequential(steps, 1, x)).backward();
    const Array<double> plain = x.grad().clone();
    x.zero_grad();
    sum(Revolve<Array<double>>(steps, 2)(x)).backward();
    CHECK(same_bits(plain, x.grad()));
    CHECK(message_of([] { detail::revolve_cost(5, 0); }).find("[revolve] 0 snapshots") == 0);
    CHECK(detail::revolve_cost(5, ~std::uint64_t{0}) == 4);
}

TEST_CASE("checkpoint_sequential: cuts into the square root of the layers, and can be used in a checkpoint") {
    Layers<double> layers(9, 4);
    const auto plain = layers.plain();
    CHECK(same(plain,
               layers.gradients([&](const Tensor64& x) { return checkpoint_sequential(layers.chain, x); })));
    CHECK(layers.begun == 2 * 9 - 3);
    CHECK(same(plain, layers.gradients([&](const Tensor64& x) {
        return checkpoint(
            [&](const Tensor64& h) {
                const auto cut = fit_into(layers.chain, h, 1 << 20);
                return checkpoint_sequential(layers.chain, cut.sizes, h);
            },
            x);
    })));
}

// ---- memory ----

namespace {

constexpr std::size_t buffer = 4096;  // bytes of a layer's result of 16 x 64 floats

// A chain of equal layers, which each save one buffer.
struct Uniform {
    Tensor w = parameter(Random(1).array<float>({64, 64}, -0.1, 0.1)),
           b = parameter(Random(2).array<float>({64}));
    Tensor x = constant(Random(3).array<float>({16, 64}));
    Chain<Array<float>> chain;
    explicit Uniform(std::size_t layers)
        : chain(layers, [this](Tensor h) { return relu(linear(std::move(h), w, b)); }) {
        sum(chain[0](x)).backward();  // this backward pass allocates the gradients
        w.zero_grad(), b.zero_grad();
    }
    template <class Way> std::size_t peak(Way way) {
        w.zero_grad(), b.zero_grad();
        const std::size_t before = memory::in_use();
        memory::reset_peak();
        sum(way(x)).backward();
        return memory::peak() - before;
    }
};

}  // namespace

TEST_CASE(
    "checkpoint_sequential: memory follows the model within one buffer, and is least near the square root") {
    for (const std::size_t n : {1u, 2u, 5u, 16u, 33u, 64u}) {
        Uniform model(n);
        const auto measured = detail::measure_layers(model.chain, model.x);
        CHECK_FALSE(model.w.has_grad());
        std::vector<std::size_t> peaks;
        for (std::size_t k = 1; k <= n; ++k) {
            INFO(n << " layers, " << k << " segments");
            const std::size_t peak =
                model.peak([&](const Tensor& x) { return checkpoint_sequential(model.chain, k, x); });
            const std::size_t predicted = detail::predicted_bytes(measured, even_segments(n, k));
            CHECK(peak + buffer <= predicted);  // x is in use before the measurement
            CHECK(predicted <= peak + buffer + 256);
            // At the peak, memory contains the inputs of all segments, the values of the longest segment, and
            // at most two more buffers.
            const std::size_t model_of_docs = (k - 1 + (n + k - 1) / k + 1) * buffer;
            CHECK(peak <= model_of_docs + buffer);
            CHECK(peak + buffer >= model_of_docs - (k > 1 ? buffer : 0));
            peaks.push_back(peak);
        }
        const auto least = *std::min_element(peaks.begin(), peaks.end());
        CHECK(peaks[detail::default_segment_count(n) - 1] <= least + buffer);
    }
}

TEST_CASE("Revolve: holds its snapshots, the values of one step and two states") {
    Uniform model(33);
    for (std::size_t c = 1; c <= 8; ++c) {
        const Revolve<Array<float>> revolve(model.chain, c);
        const std::size_t peak = model.peak([&](const Tensor& x) { return revolve(x); });
        INFO(c << " snapshots: " << peak);
        // At the peak, memory contains c snapshots, the values of one step, and two more buffers.
        const std::size_t model_of_docs = (c - 1 + 1 + 2) * buffer;
        CHECK(peak <= model_of_docs + 256);
        CHECK(peak + buffer >= model_of_docs);
    }
}

TEST_CASE("fit_into: the cut fits into the bytes and recomputes as few layers as possible") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        Random random(seed);
        const auto n = static_cast<std::size_t>(random.whole(1, 9));
        std::vector<detail::LayerBytes> layers;
        std::size_t state = static_cast<std::size_t>(random.whole(1, 9)) * 64;
        for (std::size_t i = 0; i < n; ++i) {
            detail::LayerBytes layer;
            layer.input = state;
            layer.result = state = static_cast<std::size_t>(random.whole(1, 9)) * 64;
            layer.internal = static_cast<std::size_t>(random.whole(0, 9)) * 64;
            layer.transient = static_cast<std::size_t>(random.whole(0, 5)) * 64;
            layer.keeps_input = random.coin();
            layer.keeps_result = random.coin();
            layers.push_back(layer);
        }
        // Bit i of `bits` is 1 if a segment ends after layer i.
        std::size_t least = ~std::size_t{0};
        std::vector<std::pair<std::size_t, std::size_t>> all;  // pairs of bytes and recomputed layers
        for (std::size_t bits = 0; bits < std::size_t{1} << (n - 1); ++bits) {
            Sizes sizes{1};
            for (std::size_t i = 0; i + 1 < n; ++i) {
                if (bits >> i & 1) sizes.push_back(0);
                ++sizes.back();
            }
            all.emplace_back(detail::predicted_bytes(layers, sizes), n - sizes.back());
            least = std::min(least, all.back().first);
        }
        for (const auto& [bytes, again] : all) {
            INFO("seed " << seed << ", " << bytes << " bytes");
            std::size_t fewest = again;
            for (const auto& [other, other_again] : all)
                if (other <= bytes) fewest = std::min(fewest, other_again);
            const auto cut = fit_into(layers, bytes);
            CHECK(cut.bytes <= bytes);
            CHECK(cut.bytes == detail::predicted_bytes(layers, cut.sizes));
            CHECK(cut.recomputed == fewest);
        }
        const std::string error = message_of([&] { fit_into(layers, least - 1); });
        INFO("seed " << seed << ": " << error);
        CHECK(error.find("the least is " + std::to_string(least) + " bytes") != std::string::npos);
    }
}

TEST_CASE("fit_into: its cut fits into a budget that is too small for the plain chain") {
    std::vector<std::vector<float>> expected;
    Sizes sizes;
    std::string words;
    const auto gradients = [&](bool cut) {
        Uniform model(32);
        if (cut) {
            const auto chosen = fit_into(model.chain, model.x, 14 * buffer);
            sizes = chosen.sizes;
            words = to_string(chosen);
        }
        sum(checkpoint_sequential(model.chain, cut ? sizes : Sizes{32}, model.x)).backward();
        return std::vector{model.w.grad().to_vector(), model.b.grad().to_vector()};
    };
    expected = gradients(false);
    memory::drop_cache();
    const Budget small(27 * buffer);  // 8.5 for weights and gradients, 1 for x, and gaps
    CHECK_THROWS_AS(gradients(false), OutOfMemory);
    CHECK(gradients(true) == expected);
    CHECK(words.find("segments of ") != std::string::npos);
    CHECK(to_string(detail::Segmentation{.sizes = {1}}) ==
          "1 segment of 1 layer: 0 B instead of 0 B; 0 of 1 layer runs again");
    INFO(words);
    CHECK(words.find("instead of 136.1 KiB") != std::string::npos);
}
