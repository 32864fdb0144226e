// Implements two minimal autograd engines for comparison with tally: one for numbers, one for vectors. The
// engines check nothing, and support only the operations that the benchmarks need.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

namespace tally::bench {

// ---- numbers: each node has two inputs and their derivatives ----

struct NumberTape {
    struct Node {
        int a, b;
        double da, db;
    };
    int leaves, end;  // leaves have the first indices, but no Node
    std::vector<Node> nodes;
    std::vector<double> gradients;
    static inline NumberTape* current = nullptr;

    NumberTape(int all_leaves, std::size_t most)
        : leaves(all_leaves), end(all_leaves), nodes(most), gradients(most) {}
    int push(int a, double da, int b, double db) {
        nodes[static_cast<std::size_t>(end)] = {a, b, da, db};
        return end++;
    }
    void backward() {
        std::fill_n(gradients.begin(), end, 0.0);
        gradients[static_cast<std::size_t>(end) - 1] = 1;
        for (int i = end; i-- > leaves;) {
            const Node& n = nodes[static_cast<std::size_t>(i)];
            const double d = gradients[static_cast<std::size_t>(i)];
            gradients[static_cast<std::size_t>(n.a)] += n.da * d;
            gradients[static_cast<std::size_t>(n.b)] += n.db * d;
        }
        end = leaves;
    }
};

struct Taped {
    double value;
    int node;
};
inline Taped operator+(Taped x, Taped y) {
    return {x.value + y.value, NumberTape::current->push(x.node, 1, y.node, 1)};
}
inline Taped operator*(Taped x, Taped y) {
    return {x.value * y.value, NumberTape::current->push(x.node, y.value, y.node, x.value)};
}
inline Taped tanh(Taped x) {
    const double y = std::tanh(x.value);
    return {y, NumberTape::current->push(x.node, 1 - y * y, x.node, 0)};
}

// ---- vectors: values, gradients and nodes are in one arena, which backward() empties ----

// Unrolls the loop for vectors of three elements, because small examples use vectors of this size.
inline void each(std::size_t size, auto f) {
    if (size == 3) {
        f(std::size_t(0)), f(std::size_t(1)), f(std::size_t(2));
        return;
    }
    for (std::size_t i = 0; i < size; ++i) f(i);
}

class ArenaTape {
public:
    struct Vector {
        float *value, *gradient;
        std::size_t size;
    };

    explicit ArenaTape(std::size_t numbers) : numbers_(new float[numbers + 16]) {}

    Vector matmul(const float* x, std::size_t rows, Vector w) {
        const Vector y = make(rows);
        for (std::size_t r = 0; r < rows; ++r) {
            float sum = 0;
            each(w.size, [&](std::size_t i) { sum += x[r * w.size + i] * w.value[i]; });
            y.value[r] = sum;
        }
        nodes_.push_back({Op::matmul, 1, rows, w.size, x, y.gradient, w.gradient});
        return y;
    }
    Vector mean(Vector x, float divisor = 1) {  // divides the mean by `divisor`
        const Vector y = make(1);
        const float scale = 1 / (static_cast<float>(x.size) * divisor);
        float sum = 0;
        each(x.size, [&](std::size_t i) { sum += x.value[i]; });
        y.value[0] = sum * scale;
        nodes_.push_back({Op::mean, scale, x.size, 0, nullptr, y.gradient, x.gradient});
        return y;
    }
    Vector sum(Vector x) { return mean(x, 1 / static_cast<float>(x.size)); }
    Vector mul(Vector x, const float* c) {
        const Vector y = make(x.size);
        each(x.size, [&](std::size_t i) { y.value[i] = x.value[i] * c[i]; });
        nodes_.push_back({Op::mul, 1, x.size, 0, c, y.gradient, x.gradient});
        return y;
    }
    Vector add(Vector x, const float* c) {
        const Vector y = make(x.size);
        each(x.size, [&](std::size_t i) { y.value[i] = x.value[i] + c[i]; });
        nodes_.push_back({Op::add, 1, x.size, 0, nullptr, y.gradient, x.gradient});
        return y;
    }
    // Adds gradients to the gradients of the leaves, and then empties the arena.
    void backward() {
        nodes_.back().dy[0] = 1;
        for (std::size_t i = nodes_.size(); i-- > 0;) pull(nodes_[i]);
        nodes_.clear();
        used_ = 0;
    }

private:
    enum class Op { matmul, mean, mul, add };
    struct Node {
        Op op;
        float scale;
        std::size_t size, columns;
        const float* x;  // the matrix, or the other factor
        float *dy, *da;
    };
    Vector make(std::size_t size) {
        const Vector made{numbers_.get() + used_, numbers_.get() + used_ + size, size};
        used_ += 2 * size;
        each(size, [&](std::size_t i) { made.gradient[i] = 0; });
        return made;
    }
    static void pull(const Node& n) {
        float* const __restrict dy = n.dy, * const __restrict da = n.da;
        const float* const __restrict x = n.x;
        switch (n.op) {
            case Op::matmul:
                for (std::size_t r = 0; r < n.size; ++r)
                    each(n.columns, [&](std::size_t i) { da[i] += dy[r] * x[r * n.columns + i]; });
                break;
            case Op::mean:
                each(n.size, [&, d = dy[0] * n.scale](std::size_t i) { da[i] += d; });
                break;
            case Op::mul:
                each(n.size, [&](std::size_t i) { da[i] += dy[i] * x[i]; });
                break;
            case Op::add:
                each(n.size, [&](std::size_t i) { da[i] += dy[i]; });
                break;
        }
    }

    std::unique_ptr<float[]> numbers_;  // values and gradients
    std::size_t used_ = 0;
    std::vector<Node> nodes_;
};

}  // namespace tally::bench
