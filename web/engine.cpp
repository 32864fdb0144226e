// Implements the three experiments of classroom.html with the engine that the lessons use.
#include "engine.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <numeric>
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

std::string chain(const std::vector<bool>& keep) {
    constexpr std::int64_t items = 16, units = 16;  // 1 KiB per value
    const std::size_t layers = keep.size();
    if (layers < 2 || layers > 64) throw Error("[chain] 2 to 64 layers, not " + std::to_string(layers));
    const Tensor x = constant(Array<float>::full({items, units}, 0.5f));
    const Tensor matrix = parameter(Array<float>::full({units, units}, 0.125f));

    struct Taken {
        std::size_t peak = 0;
        std::vector<int> runs;
        std::string moments;
        std::vector<float> gradient;
    };
    const auto take = [&](const auto& run) {
        Taken taken;
        taken.runs.resize(layers);
        const Ledger ledger;
        const auto note = [&](const char* what, std::size_t layer) {
            taken.moments += (taken.moments.empty() ? "{" : ",{") +
                             member("what", std::string("\"") + what + "\"") + "," +
                             member("layer", std::to_string(layer)) + "," +
                             member("bytes", std::to_string(ledger.now())) + "}";
        };
        Chain<Array<float>> steps;
        for (std::size_t i = 0; i < layers; ++i)
            steps.push_back([&, i](Tensor h) {
                Tensor y = tanh(matmul(std::move(h), matrix));
                note(taken.runs[i]++ == 0 ? "forward" : "again", i);
                return y;
            });
        {
            const Tensor loss = sum(run(steps));
            loss.backward();
        }
        note("end", layers);
        taken.peak = ledger.peak();
        taken.gradient = matrix.grad().to_vector();
        matrix.free_grad();
        return taken;
    };

    const auto again = [](const Taken& taken) {
        return std::accumulate(taken.runs.begin(), taken.runs.end(), 0) - static_cast<int>(taken.runs.size());
    };

    std::vector<std::size_t> sizes;  // number of layers of each segment
    for (std::size_t i = 0; i < layers; ++i) {
        if (i == 0 || keep[i])
            sizes.push_back(1);
        else
            ++sizes.back();
    }
    const Taken plain = take([&](const auto& steps) { return checkpoint_sequential(steps, 1, x); });
    const Taken cut = take([&](const auto& steps) { return checkpoint_sequential(steps, sizes, x); });
    // Finds the segments that recompute the fewest layers without more memory than the user's segments. Tries
    // smaller budgets, because predicted memory is slightly more than measured memory.
    const Chain<Array<float>> quiet(layers, [&](Tensor h) { return tanh(matmul(std::move(h), matrix)); });
    const std::vector<detail::LayerBytes> measured = detail::measure_layers(quiet, x);
    std::vector<std::size_t> best_sizes = sizes;
    Taken best = cut;
    for (std::size_t bytes = detail::predicted_bytes(measured, sizes);
         bytes >= detail::predicted_bytes(measured, sizes) / 2;) {
        std::vector<std::size_t> tried;
        try {
            tried = fit_into(measured, bytes).sizes;
        } catch (const OutOfMemory&) {  // no division into segments needs less memory
            break;
        }
        const Taken taken = take([&](const auto& steps) { return checkpoint_sequential(steps, tried, x); });
        if (taken.peak <= cut.peak && again(taken) < again(best)) {
            best = taken;
            best_sizes = tried;
        }
        if (taken.peak <= cut.peak || tried.size() * 2 > layers) break;
        bytes = detail::predicted_bytes(measured, tried) - 1;
    }
    const Taken revolve =
        take([&](const auto& steps) { return Revolve<Array<float>>(steps, sizes.size())(x); });

    bool all_same = true;
    for (const Taken* taken : {&cut, &std::as_const(best), &revolve})
        all_same = all_same && taken->gradient == plain.gradient;
    return "{" + member("peak", std::to_string(cut.peak)) + "," +
           member("again", std::to_string(again(cut))) + "," +
           member("runs", list(cut.runs, [](int runs) { return std::to_string(runs); })) + "," +
           member("plain", std::to_string(plain.peak)) + "," + member("moments", "[" + cut.moments + "]") +
           "," + member("best", list(best_sizes, [](std::size_t size) { return std::to_string(size); })) +
           "," + member("best_peak", std::to_string(best.peak)) + "," +
           member("best_again", std::to_string(again(best))) + "," +
           member("revolve_peak", std::to_string(revolve.peak)) + "," +
           member("revolve_again", std::to_string(again(revolve))) + "," +
           member("kept", std::to_string(sizes.size())) + "," + member("same", all_same ? "true" : "false") +
           "}";
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
