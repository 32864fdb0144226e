// Defines the sizes and input values of the benchmarks. Each program in the comparison copies these values
// into its own arrays.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "tally/base/random.hpp"

namespace tally::bench {

struct Toy {
    static constexpr std::size_t rows = 6, columns = 3;
    std::vector<float> x = {0.375f, -1.25f,  0.5f,  -1.125f, 0.5f,  -0.875f, 0.625f,   1.f,      -1.5f,
                            -0.25f, -0.375f, 0.25f, -1.5f,   0.75f, -0.625f, -0.2466f, -0.5010f, -1.4250f};
    std::vector<float> w = {0.5f, -1.25f, 0.75f};
};

struct ElementwiseChain {  // repeats y = y * c + c; the result is the sum
    int operations = 100;
    std::vector<float> start = {0.1f, 0.2f, 0.3f}, c = {0.9f, 1.1f, 1.0f};
};

// Describes a network of tanh layers without arrays. Every weight and every sum is a node of the graph.
struct ScalarNetwork {
    std::vector<int> sizes{2, 16, 16, 1};
    std::vector<double> weights;
    double operations = 0;
    double a = 0.3, b = -0.7;

    ScalarNetwork() {
        for (std::size_t layer = 1; layer < sizes.size(); ++layer) {
            const int count = (sizes[layer - 1] + 1) * sizes[layer];
            for (int i = 0; i < count; ++i)
                weights.push_back(random::detail::uniform<double>(1, layer, static_cast<std::uint64_t>(i)) -
                                  0.5);
            operations += (2 * sizes[layer - 1] + 1) * sizes[layer];
        }
    }

    // Evaluates the network with any number type that supports tanh(), * and +.
    template <class T, class Weights> T operator()(const Weights& w, T first, T second) const {
        using std::tanh;
        std::vector<T> in, out;
        in.reserve(16), out.reserve(16);
        in.push_back(std::move(first));
        in.push_back(std::move(second));
        std::size_t next = 0;
        for (std::size_t layer = 1; layer < sizes.size(); ++layer) {
            out.clear();
            for (int j = 0; j < sizes[layer]; ++j) {
                T sum = w[next++];
                for (const T& x : in) {
                    sum = std::move(sum) + w[next] * x;
                    ++next;
                }
                out.push_back(tanh(std::move(sum)));
            }
            std::swap(in, out);
        }
        return std::move(in[0]);
    }
};

// Describes one update of an MLP 784-512-512-10 with 64 pictures, which are divided into micro-batches.
struct Mlp {
    std::int64_t rows = 64, micro = 64;
    std::vector<std::int64_t> sizes{784, 512, 512, 10};
    float rate = 1e-3f;

    std::size_t layers() const { return sizes.size() - 1; }
    std::vector<float> weight(std::size_t layer) const {
        const auto in = static_cast<std::size_t>(sizes[layer]),
                   out = static_cast<std::size_t>(sizes[layer + 1]);
        return uniform(in * out, 10 + layer, 1 / std::sqrt(static_cast<float>(in)));
    }
    std::vector<float> bias(std::size_t layer) const {
        return uniform(static_cast<std::size_t>(sizes[layer + 1]), 20 + layer,
                       1 / std::sqrt(static_cast<float>(sizes[layer])));
    }
    std::vector<float> pictures() const {
        return uniform(static_cast<std::size_t>(rows * sizes.front()), 1, 1);
    }
    std::vector<std::int32_t> labels() const {
        std::vector<std::int32_t> all;
        for (std::int64_t i = 0; i < rows; ++i)
            all.push_back(static_cast<std::int32_t>(i * 7 % sizes.back()));
        return all;
    }
    static std::vector<float> uniform(std::size_t size, std::uint64_t stream, float bound) {
        std::vector<float> values(size);
        random::detail::fill_uniform<float>(values, 1, stream, -bound, bound);
        return values;
    }
};

struct Logits {
    std::int64_t rows = 512, classes = 1000;
    std::vector<float> values() const { return Mlp::uniform(static_cast<std::size_t>(rows * classes), 3, 4); }
    std::vector<std::int32_t> labels() const {
        std::vector<std::int32_t> all;
        for (std::int64_t i = 0; i < rows; ++i) all.push_back(static_cast<std::int32_t>(i * 37 % classes));
        return all;
    }
};

// Describes the forward and backward pass of an elementwise operation on a matrix, or of a sum over a matrix.
struct Elementwise {
    enum class Kind { relu, add, bias, sum_down, sum_across } kind = Kind::relu;
    std::int64_t rows = 64, columns = 512;

    std::vector<float> x() const { return Mlp::uniform(size(), 4, 1); }
    std::vector<float> other() const {
        return Mlp::uniform(kind == Kind::bias ? static_cast<std::size_t>(columns) : size(), 5, 1);
    }
    std::vector<float> seed() const {
        const std::int64_t count = kind == Kind::sum_down     ? columns
                                   : kind == Kind::sum_across ? rows
                                                              : rows * columns;
        return Mlp::uniform(static_cast<std::size_t>(count), 6, 1);
    }
    std::size_t size() const { return static_cast<std::size_t>(rows * columns); }
};

// Describes a model that repeats Linear + ReLU `layers` times. Layers have the width `width`, micro-batches
// have `rows` rows, and backward recomputes the layers of each segment.
struct Deep {
    std::size_t layers = 32;
    std::int64_t width = 256, batch = 4096, rows = 4096;
    std::vector<std::size_t> segments{};  // sizes in layers; empty: no checkpoints

    float bound() const { return 1 / std::sqrt(static_cast<float>(width)); }
    std::vector<float> weight(std::size_t layer) const {
        return Mlp::uniform(static_cast<std::size_t>(width * width), 100 + 2 * layer, bound());
    }
    std::vector<float> bias(std::size_t layer) const {
        return Mlp::uniform(static_cast<std::size_t>(width), 101 + 2 * layer, bound());
    }
    std::vector<float> data() const { return Mlp::uniform(static_cast<std::size_t>(batch * width), 2, 1); }
};

inline std::vector<double> doubles(const auto& numbers) { return {std::begin(numbers), std::end(numbers)}; }

}  // namespace tally::bench
