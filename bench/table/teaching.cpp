// Makes the rows of small examples, such as the toy and a series of operations on three numbers.
#include <memory>
#include <string>

#include "bench/table/libtorch.hpp"
#include "bench/table/rows.hpp"
#include "bench/table/tapes.hpp"
#include "tally/tally.hpp"

namespace tally::bench {
namespace {

constexpr const char* tape = "a tape in an arena";
constexpr const char* hand = "by hand";

Numbers one(const auto& numbers) { return {doubles(numbers)}; }

Side tally_side(const Tensor& w, std::function<void()> run) {
    return {"tally", Role::tally, run, [w, run] {
                run();
                return one(w.grad().span());
            }};
}

// ---- the toy: mean(X w), in micro-batches of `micro` rows ----

Side toy_by_tally(const Toy& toy, std::int64_t micro) {
    const Tensor x = constant(Array<float>({Toy::rows, Toy::columns}, toy.x));
    const Tensor w = parameter(Array<float>({Toy::columns}, toy.w));
    if (micro == Toy::rows)
        return tally_side(w, [x, w] {
            w.zero_grad();
            mean(matmul(x, w)).backward();
        });
    return tally_side(w, [x, w, micro] {
        w.zero_grad();
        for (const Tensor& part : split(x, micro))
            (mean(matmul(part, w)) / (Toy::rows / static_cast<double>(micro))).backward();
    });
}

Side toy_by_tape(const Toy& toy, std::size_t micro) {
    struct State {
        Toy toy;
        ArenaTape tape{64};
        float gradient[Toy::columns] = {};
    };
    const auto s = std::make_shared<State>(State{toy});
    const auto run = [s, micro] {
        std::fill_n(s->gradient, Toy::columns, 0.f);
        for (std::size_t from = 0; from < Toy::rows; from += micro) {
            const ArenaTape::Vector w{s->toy.w.data(), s->gradient, Toy::columns};
            s->tape.mean(s->tape.matmul(s->toy.x.data() + from * Toy::columns, micro, w),
                         static_cast<float>(Toy::rows / micro));
            s->tape.backward();
        }
    };
    return {tape, Role::floor, run, [s, run] {
                run();
                return one(s->gradient);
            }};
}

Side toy_by_hand(const Toy& toy, std::size_t micro) {
    struct State {
        Toy toy;
        float loss = 0, gradient[Toy::columns] = {};
    };
    const auto s = std::make_shared<State>(State{toy});
    const auto run = [s, micro] {
        const float* x = s->toy.x.data();
        const float* w = s->toy.w.data();
        float loss = 0, g[Toy::columns] = {};
        for (std::size_t from = 0; from < Toy::rows; from += micro)
            for (std::size_t r = from; r < from + micro; ++r)
                for (std::size_t i = 0; i < Toy::columns; ++i) {
                    loss += x[r * Toy::columns + i] * w[i];
                    g[i] += x[r * Toy::columns + i];
                }
        s->loss = loss / Toy::rows;
        for (std::size_t i = 0; i < Toy::columns; ++i) s->gradient[i] = g[i] / Toy::rows;
        asm volatile("" : : "r"(s.get()) : "memory");  // prevents the compiler from removing the work
    };
    return {hand, Role::floor, run, [s, run] {
                run();
                return one(s->gradient);
            }};
}

Row toy_row(const char* name, const char* title, std::int64_t micro) {
    const Toy toy;
    const auto rows = static_cast<std::size_t>(micro);
    Row row{name, title, {toy_by_tally(toy, micro), toy_by_tape(toy, rows), toy_by_hand(toy, rows)}};
    add_libtorch(row, toy, micro);
    return row;
}

// ---- a chain of elementwise operations ----

Side chain_by_tape(const ElementwiseChain& chain) {
    struct State {
        ElementwiseChain chain;
        ArenaTape tape;
        std::vector<float> gradient;
    };
    const std::size_t size = chain.start.size();
    const std::size_t numbers = 2 * size * static_cast<std::size_t>(chain.operations + 1);
    const auto s = std::make_shared<State>(State{chain, ArenaTape(numbers), std::vector<float>(size)});
    const auto run = [s, size] {
        std::fill(s->gradient.begin(), s->gradient.end(), 0.f);
        ArenaTape::Vector y{s->chain.start.data(), s->gradient.data(), size};
        const float* const c = s->chain.c.data();
        for (int i = 0; i < s->chain.operations / 2; ++i) y = s->tape.add(s->tape.mul(y, c), c);
        s->tape.sum(y);
        s->tape.backward();
    };
    return {tape, Role::floor, run, [s, run] {
                run();
                return one(s->gradient);
            }};
}

// ---- a network of numbers ----

Side scalars_by_tally(const ScalarNetwork& network) {
    std::vector<Scalar> weights;
    for (const double w : network.weights) weights.push_back(parameter(w));
    const auto run = [weights, network] {
        for (const Scalar& w : weights) w.zero_grad();
        network(weights, constant(network.a), constant(network.b)).backward();
    };
    return {"tally", Role::tally, run, [weights, run] {
                run();
                std::vector<double> all;
                for (const Scalar& w : weights) all.push_back(w.grad());
                return Numbers{all};
            }};
}

Side scalars_by_tape(const ScalarNetwork& network) {
    const int count = static_cast<int>(network.weights.size());
    const auto t = std::make_shared<NumberTape>(count + 2, network.weights.size() + 2000);
    std::vector<Taped> weights;
    for (const double w : network.weights) weights.push_back({w, static_cast<int>(weights.size())});
    const auto run = [t, network, weights, count] {
        NumberTape::current = t.get();
        network(weights, Taped{network.a, count}, Taped{network.b, count + 1});
        t->backward();
    };
    return {"a tape of 25 lines", Role::floor, run, [t, run, count] {
                run();
                return Numbers{{t->gradients.begin(), t->gradients.begin() + count}};
            }};
}

// Implements backpropagation for the network with two loops and without a graph.
class HandNetwork {
public:
    explicit HandNetwork(const ScalarNetwork& network) : n_(network), gradients_(network.weights.size()) {
        for (const int size : network.sizes) {
            values_.emplace_back(static_cast<std::size_t>(size));
            slopes_.emplace_back(static_cast<std::size_t>(size));
        }
    }
    void run() {
        values_[0] = {n_.a, n_.b};
        std::size_t at = 0;
        for (std::size_t layer = 1; layer < values_.size(); ++layer)
            for (double& out : values_[layer]) {
                double sum = n_.weights[at++];
                for (const double in : values_[layer - 1]) sum += n_.weights[at++] * in;
                out = std::tanh(sum);
            }
        slopes_.back()[0] = 1;
        for (std::size_t layer = values_.size(); --layer > 0;) back(layer, at);
    }
    const std::vector<double>& gradients() const { return gradients_; }

private:
    void back(std::size_t layer, std::size_t& end) {
        const std::vector<double>&in = values_[layer - 1], &out = values_[layer];
        std::vector<double>& slope = slopes_[layer - 1];
        std::fill(slope.begin(), slope.end(), 0.0);
        std::size_t at = end -= (in.size() + 1) * out.size();
        for (std::size_t j = 0; j < out.size(); ++j) {
            const double d = slopes_[layer][j] * (1 - out[j] * out[j]);
            gradients_[at++] = d;
            for (std::size_t i = 0; i < in.size(); ++i, ++at) {
                gradients_[at] = d * in[i];
                slope[i] += d * n_.weights[at];
            }
        }
    }
    ScalarNetwork n_;
    std::vector<double> gradients_;
    std::vector<std::vector<double>> values_, slopes_;
};

Row scalar_row() {
    const ScalarNetwork network;
    const auto by_hand = std::make_shared<HandNetwork>(network);
    Row row{"scalars",
            "network of numbers 2-16-16-1, tanh, one sample, per operation",
            {scalars_by_tally(network),
             scalars_by_tape(network),
             {hand, Role::floor, [by_hand] { by_hand->run(); },
              [by_hand] {
                  by_hand->run();
                  return Numbers{by_hand->gradients()};
              }}}};
    row.units = network.operations;
    row.tolerance = 1e-12;
    row.aims = {{Goal::at_most, 16 / 4.75, "a tape of 25 lines"}};
    row.note = "goal: 16 ns if the tape takes 4.75 ns";
    add_libtorch(row, network);
    return row;
}

}  // namespace

Row chain_row(const ElementwiseChain& chain) {
    const auto size = static_cast<std::int64_t>(chain.start.size());
    const Tensor start = parameter(Array<float>({size}, chain.start)),
                 c = constant(Array<float>({size}, chain.c));
    const int pairs = chain.operations / 2;
    const Side by_tally = tally_side(start, [start, c, pairs] {
        start.zero_grad();
        Tensor y = start;
        for (int i = 0; i < pairs; ++i) y = std::move(y) * c + c;
        sum(std::move(y)).backward();
    });
    Row row{"chain", "", {by_tally, chain_by_tape(chain)}};
    row.units = chain.operations;
    add_libtorch(row, chain);
    return row;
}

std::vector<Planned> teaching_rows() {
    return {{"toy",
             [] {
                 Row row = toy_row("toy", "the toy: mean(X w), X 6x3, forward + backward", Toy::rows);
                 row.must = {{Goal::faster, 100, libtorch}, {Goal::at_most, 4.8, tape}};
                 row.aims = {{Goal::faster, 200, libtorch}, {Goal::at_most, 4, tape}};
                 return row;
             }},
            {"toy-in-three",
             [] {
                 Row row = toy_row("toy-in-three", "the toy in 3 micro-batches of 2, each / 3", 2);
                 row.aims = {{Goal::faster, 150, libtorch}};
                 return row;
             }},
            {"chain",
             [] {
                 Row row = chain_row({});
                 row.title = "chain of 100 elementwise operations on 3 numbers, per operation";
                 row.must = {{Goal::faster, 80, libtorch}};
                 row.aims = {{Goal::faster, 110, libtorch}};
                 return row;
             }},
            {"scalars", scalar_row}};
}

}  // namespace tally::bench
