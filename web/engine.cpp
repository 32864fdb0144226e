// Implements the three experiments of classroom.html with the engine that the lessons use.
#include "engine.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "tally/base/text.hpp"
#include "tally/tally.hpp"

namespace tally::web {

namespace {

// ---- JSON, in which each number has its printed form and its bits ----

std::string number(float x) {
    char bits[16];
    std::snprintf(bits, sizeof bits, "%08x", std::bit_cast<std::uint32_t>(x));
    return "{\"text\":\"" + detail::short_number(double{x}) + "\",\"bits\":\"" + bits + "\"}";
}

template <class Items, class F> std::string list(const Items& items, F each) {
    std::string text = "[";
    for (const auto& item : items) text += (text.size() > 1 ? "," : "") + each(item);
    return text + "]";
}

std::string numbers(const Array<float>& x) { return list(x.to_vector(), number); }

std::string member(const char* name, const std::string& value) {
    return std::string("\"") + name + "\":" + value;
}

bool same_bits(const Array<float>& a, const Array<float>& b) {
    return list(a.to_vector(), number) == list(b.to_vector(), number);
}

// Measures memory relative to the memory in use when the `Ledger` was constructed.
class Ledger {
public:
    Ledger() { memory::reset_peak(); }
    std::size_t now() const { return memory::in_use() - before_; }
    std::size_t peak() const { return memory::peak() - before_; }

private:
    std::size_t before_ = memory::in_use();
};

// Notes the highest number of bytes in use within each operation and each backward function.
class Moments final : Observer {
public:
    explicit Moments(const Ledger& ledger) : ledger_{ledger} {}
    std::vector<std::size_t> bytes;

private:
    void on_forward(const ForwardEvent&) override { note(); }
    void after_backward(const Node&) override { note(); }
    void note() {
        bytes.push_back(ledger_.peak());
        memory::reset_peak();
    }

    const Ledger& ledger_;
    const Observer::Scope scope_{*this};
};

}  // namespace

namespace {
Tensor scaled(Tensor loss, Divide divide, int rows, int parts, std::int64_t all_rows) {
    if (divide == Divide::by_parts) return std::move(loss) / parts;
    if (divide == Divide::by_rows) return std::move(loss) * rows / static_cast<int>(all_rows);
    return loss;
}
}  // namespace

std::string toy(const std::vector<float>& x, const std::vector<float>& w, const std::vector<int>& cuts,
                Divide divide) {
    const auto rows = static_cast<std::int64_t>(x.size() / 3);
    if (w.size() != 3 || x.size() % 3 != 0 || std::accumulate(cuts.begin(), cuts.end(), 0) != rows)
        throw Error("[toy] " + std::to_string(x.size()) + " numbers in rows of 3, " +
                    std::to_string(w.size()) + " weights, and cuts for " +
                    std::to_string(std::accumulate(cuts.begin(), cuts.end(), 0)) + " rows");
    const Tensor all = constant(Array<float>({rows, 3}, x));
    const Tensor weights = parameter(Array<float>({3}, w));

    std::size_t full_peak = 0;
    Tensor loss;
    {
        const Ledger ledger;
        loss = mean(matmul(all, weights));
        loss.backward();
        full_peak = ledger.peak();
    }
    const float full_loss = loss.item();
    loss = {};
    const Array<float> full = weights.grad().clone();
    weights.free_grad();

    std::string parts;
    std::size_t peak = 0;
    std::int64_t from = 0;
    for (const int size : cuts) {
        const auto forward = [&] {
            return scaled(mean(matmul(slice(all, 0, from, from + size), weights)), divide, size,
                          static_cast<int>(cuts.size()), rows);
        };
        const Array<float> alone = grad(forward(), {weights}).front();
        const Ledger ledger;
        Tensor part = forward();
        const float value = part.item();
        const std::size_t held = ledger.now();
        part.backward();
        part = {};
        peak = std::max(peak, ledger.peak());
        parts += (parts.empty() ? "{" : ",{") + member("from", std::to_string(from)) + "," +
                 member("rows", std::to_string(size)) + "," + member("loss", number(value)) + "," +
                 member("alone", numbers(alone)) + "," + member("grad", numbers(weights.grad())) + "," +
                 member("held", std::to_string(held)) + "}";
        from += size;
    }
    const Array<float> sum = weights.grad().clone();
    return "{" + member("loss", number(full_loss)) + "," + member("full", numbers(full)) + "," +
           member("sum", numbers(sum)) + "," + member("parts", "[" + parts + "]") + "," +
           member("same", same_bits(sum, full) ? "true" : "false") + "," +
           member("full_peak", std::to_string(full_peak)) + "," + member("peak", std::to_string(peak)) + "}";
}

std::string race(const std::vector<float>& x, const std::vector<int>& cuts, Divide divide, float rate,
                 int steps) {
    const auto rows = static_cast<std::int64_t>(x.size() / 3);
    if (x.size() % 3 != 0 || std::accumulate(cuts.begin(), cuts.end(), 0) != rows || steps < 1 || steps > 100)
        throw Error("[race] rows of 3 numbers, cuts for all rows and 1 to 100 steps are needed");
    const Tensor all = constant(Array<float>({rows, 3}, x));
    const Tensor target = matmul(all, constant({1.0f, 1.0f, 1.0f}));
    const Tensor w = parameter({0.0f, 0.0f, 0.0f});
    std::string track = numbers(w.value());
    for (int step = 0; step < steps; ++step) {
        w.zero_grad();
        std::int64_t from = 0;
        for (const int size : cuts) {
            const Tensor error =
                matmul(slice(all, 0, from, from + size), w) - slice(target, 0, from, from + size);
            scaled(mean(pow(error, 2)), divide, size, static_cast<int>(cuts.size()), rows).backward();
            from += size;
        }
        sgd_step({w}, rate);
        track += "," + numbers(w.value());
    }
    return "{" + member("track", "[" + track + "]") + "}";
}

std::string batch_memory(const std::vector<int>& sizes) {
    constexpr std::int64_t items = 64, units = 32;
    if (std::accumulate(sizes.begin(), sizes.end(), 0) != items ||
        *std::min_element(sizes.begin(), sizes.end()) < 1)
        throw Error("[batch_memory] micro-batches of 64 items in all, each of at least 1");
    const Tensor x = constant(Array<float>::full({items, units}, 0.5f));
    std::vector<Tensor> weights;
    for (int layer = 0; layer < 4; ++layer)
        weights.push_back(parameter(Array<float>::full({units, units}, 0.03125f)));
    const auto update = [&] {
        std::int64_t from = 0;
        for (const int size : sizes) {
            Tensor h = slice(x, 0, from, from + size);
            for (const Tensor& W : weights) h = tanh(matmul(std::move(h), W));
            (sum(pow(std::move(h), 2)) / static_cast<int>(items)).backward();
            from += size;
        }
    };
    update();  // allocates the gradients
    const Ledger ledger;
    const Moments moments{ledger};
    update();
    return "{" +
           member("peak", std::to_string(*std::max_element(moments.bytes.begin(), moments.bytes.end()))) +
           "," +
           member("moments", list(moments.bytes, [](std::size_t bytes) { return std::to_string(bytes); })) +
           "}";
}

namespace {

// A moment ends when a layer has run or its backward function has run.
struct Moment {
    const char* kind;   // forward, again or backward
    std::size_t layer;  // counted from 0
    std::size_t peak;   // the most bytes in use since the moment before
    std::size_t after;  // the bytes in use at the end
};

// Notes the moments of a chain whose layers are a product and tanh.
class LayerMoments final : Observer {
public:
    explicit LayerMoments(std::size_t layers) : not_yet_backward_{layers} {}
    void note(const char* kind, std::size_t layer) {
        all.push_back({kind, layer, ledger_.peak(), ledger_.now()});
        memory::reset_peak();
    }
    std::vector<Moment> all;

private:
    // The backward pass goes from the last layer to the first. In each layer, the product comes last.
    void after_backward(const Node& node) override {
        if (std::string_view(node.op()) == "matmul") note("backward", --not_yet_backward_);
    }

    const Ledger ledger_;
    std::size_t not_yet_backward_;
    const Observer::Scope scope_{*this};
};

struct ChainRun {
    std::vector<Moment> moments;
    std::vector<std::uint32_t> gradient;  // the bits of its numbers

    std::size_t peak() const {
        return std::max_element(moments.begin(), moments.end(),
                                [](const Moment& a, const Moment& b) { return a.peak < b.peak; })
            ->peak;
    }
    auto again() const {
        return std::count_if(moments.begin(), moments.end(),
                             [](const Moment& moment) { return std::string_view(moment.kind) == "again"; });
    }
};

using Layers = Chain<Array<float>>;

// The values of a LayerChain have 16 x 16 numbers, which are 1 KiB.
class LayerChain {
public:
    explicit LayerChain(std::size_t layers) : layers_{layers} {
        if (layers < 2 || layers > 64) throw Error("[chain] 2 to 64 layers, not " + std::to_string(layers));
        sum(layer(input())).backward();  // allocates the gradient, so that no run needs memory for it
    }

    // Runs forward and backward. `run` gets the layers and the input, and returns the output.
    template <class Run> ChainRun measure(Run run) const {
        matrix_.zero_grad();
        LayerMoments moments(layers_);
        std::vector<bool> ran(layers_);
        Layers noted;
        for (std::size_t i = 0; i < layers_; ++i)
            noted.push_back([&, i](Tensor h) {
                Tensor y = layer(std::move(h));
                moments.note(ran[i] ? "again" : "forward", i);
                ran[i] = true;
                return y;
            });
        sum(run(noted, input())).backward();
        ChainRun measured{moments.all, {}};
        for (const float x : matrix_.grad().to_vector())
            measured.gradient.push_back(std::bit_cast<std::uint32_t>(x));
        return measured;
    }
    ChainRun in_segments(const std::vector<std::size_t>& sizes) const {
        return measure([&](const Layers& layers, Tensor x) {
            return checkpoint_sequential(layers, sizes, std::move(x));
        });
    }

    // Measures the layers for fit_into(), which counts the gradient of the loss although a segment runs again without
    // it. This function subtracts these bytes from all layers but the last one, because the last layer never runs
    // again. The budget of the page then agrees with the measured peaks.
    std::vector<detail::LayerBytes> bytes_of_layers() const {
        auto measured = detail::measure_layers(
            Layers(layers_, [this](Tensor h) { return layer(std::move(h)); }), input());
        const std::vector<std::size_t> longest{layers_ - 1, 1};
        const std::size_t excess = detail::predicted_bytes(measured, longest) - in_segments(longest).peak();
        for (std::size_t i = 0; i + 1 < layers_; ++i) measured[i].transient -= excess;
        return measured;
    }

private:
    static Tensor input() { return constant(Array<float>::full({16, 16}, 0.5f)); }
    Tensor layer(Tensor h) const { return tanh(matmul(std::move(h), matrix_)); }

    std::size_t layers_;
    Tensor matrix_ = parameter(Array<float>::full({16, 16}, 0.125f));
};

std::string text_of(const Moment& moment) {
    return "{" + member("kind", std::string("\"") + moment.kind + "\"") + "," +
           member("layer", std::to_string(moment.layer)) + "," + member("peak", std::to_string(moment.peak)) +
           "," + member("after", std::to_string(moment.after)) + "}";
}

// The measurements that do not depend on the segments. The page asks for many segments of one chain, so it is measured only once.
struct ChainFacts {
    std::vector<std::uint32_t> gradient;  // without checkpoints
    std::vector<detail::LayerBytes> bytes;
};

const ChainFacts& facts_of(std::size_t layers) {
    static std::map<std::size_t, ChainFacts> known;
    const auto found = known.find(layers);
    if (found != known.end()) return found->second;
    const LayerChain chain(layers);
    return known.emplace(layers, ChainFacts{chain.in_segments({layers}).gradient, chain.bytes_of_layers()})
        .first->second;
}

// Writes what all ways to run a chain have in common, without the braces.
std::string costs(const ChainRun& run, std::size_t layers) {
    return member("peak", std::to_string(run.peak())) + "," + member("again", std::to_string(run.again())) +
           "," + member("same", run.gradient == facts_of(layers).gradient ? "true" : "false");
}

}  // namespace

std::string chain(const std::vector<bool>& starts) {
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < starts.size(); ++i) {
        if (i == 0 || starts[i]) sizes.push_back(0);
        ++sizes.back();
    }
    const ChainRun run = LayerChain(starts.size()).in_segments(sizes);
    return "{" + costs(run, starts.size()) + "," + member("moments", list(run.moments, text_of)) + "}";
}

std::string chain_fit(int layers, int bytes) {
    const auto& measured = facts_of(static_cast<std::size_t>(layers)).bytes;
    detail::Segmentation segments;
    bool fits = true;
    try {
        segments = fit_into(measured, static_cast<std::size_t>(std::max(bytes, 0)));
    } catch (const OutOfMemory& error) {
        fits = false;
        segments = fit_into(measured, error.asked);
    }
    return "{" + member("fits", fits ? "true" : "false") + "," +
           member("peak", std::to_string(segments.bytes)) + "," +
           member("sizes", list(segments.sizes, [](std::size_t size) { return std::to_string(size); })) + "}";
}

std::string chain_revolve(int layers, int snapshots) {
    const auto count = static_cast<std::size_t>(layers);
    const ChainRun run = LayerChain(count).measure([&](const Layers& steps, Tensor x) {
        return Revolve<Array<float>>(steps, static_cast<std::size_t>(std::max(snapshots, 0)))(std::move(x));
    });
    return "{" + costs(run, count) + "}";
}

std::string noise(std::uint64_t seed, int size, int draws) {
    constexpr std::int64_t items = 512;
    if (size < 1 || size > items || draws < 1 || draws > 1000)
        throw Error("[noise] micro-batches of 1 to 512 items and 1 to 1000 draws, not " +
                    std::to_string(size) + " and " + std::to_string(draws));
    const Tensor x = randn({items, 2}, {.seed = seed});
    const Tensor y = matmul(x, constant({1.0f, -0.5f})) + randn({items}, {.seed = seed + 1});
    const Tensor w = parameter({0.0f, 0.0f});
    const auto gradient = [&](const Tensor& of, const Tensor& to) {
        w.zero_grad();
        mean(pow(matmul(of, w) - to, 2)).backward();
        return w.grad().to_vector();
    };
    const std::vector<float> full = gradient(x, y);
    std::string points;
    for (int draw = 0; draw < draws; ++draw) {
        std::vector<std::int32_t> numbers;
        for (int i = 0; i < size; ++i)
            numbers.push_back(static_cast<std::int32_t>(
                random::detail::bits(
                    seed, 2, static_cast<std::uint64_t>(draw) * items + static_cast<std::uint64_t>(i)) %
                items));
        const Array<std::int32_t> picked({size}, numbers);
        points +=
            (points.empty() ? "" : ",") + list(gradient(embedding(x, picked), embedding(y, picked)), number);
    }
    return "{" + member("full", list(full, number)) + "," + member("points", "[" + points + "]") + "}";
}

}  // namespace tally::web
