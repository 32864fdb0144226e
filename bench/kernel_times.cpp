// Each kernel of the CPU beside a loop written by hand for that one case: how far from the machine's own
// speed we are.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "bench/timing.hpp"
#include "tally/kernels/kernels.hpp"
#include "tally/values/exact_sum.hpp"

using namespace tally;
using namespace tally::detail;

namespace {

struct Floats {  // aligned and in whole lines, as the ledger hands them out
    explicit Floats(std::size_t n, float scale = 1)
        : data(static_cast<float*>(::operator new((n * 4 + 63) / 64 * 64, std::align_val_t(64)))) {
        for (std::size_t i = 0; i < n; ++i)
            data[i] = scale * (static_cast<float>(i * 2654435761u % 1000) / 500 - 1);
    }
    Floats(const Floats&) = delete;
    ~Floats() { ::operator delete(data, std::align_val_t(64)); }
    operator float*() const { return data; }
    float* data;
};

const Kernels<float>& kernel() {
    static const Kernels<float>& table = kernels<float>(Device::cpu);
    return table;
}

template <class Loop, class Kernel>
void beside(const std::string& title, double work, Loop loop, Kernel call) {
    const auto repeat = static_cast<std::size_t>(std::max(1.0, 3e6 / (work + 20)));
    bench::race(title, {{"loop", loop, repeat}, {"kernel", call, repeat}}, 41);
}

Walk<2> walk(std::size_t rows, std::size_t columns, bool a_repeats_down, bool b_repeats_down) {
    Walk<2> made;
    const auto step = static_cast<std::ptrdiff_t>(columns);
    made.rank = a_repeats_down || b_repeats_down ? 2 : 1;
    made.size = rows * columns;
    if (made.rank == 1) {
        made.extent = {rows * columns};
        made.stride = {{{1}, {1}}};
    } else {
        made.extent = {rows, columns};
        made.stride[0] = {a_repeats_down ? 0 : step, 1};
        made.stride[1] = {b_repeats_down ? 0 : step, 1};
    }
    made.reach = {a_repeats_down ? columns : rows * columns, b_repeats_down ? columns : rows * columns};
    return made;
}

template <class F> constexpr std::size_t unary = slot<F, UnaryOps>;
template <class F> constexpr std::size_t binary = slot<F, BinaryOps>;

void elementwise(std::size_t rows, std::size_t columns) {
    const std::size_t n = rows * columns;
    const std::string size = " " + std::to_string(rows) + "x" + std::to_string(columns);
    const Floats x(n), y(n), z(n), row(columns);
    const auto work = static_cast<double>(n) / 10;
    float* const __restrict px = x, * const __restrict py = y, * const __restrict pz = z, * const __restrict prow = row;
    const functor::Relu relu;
    const functor::Exp exponential;
    const functor::Tanh hyperbolic;
    const functor::Add add;
    const functor::Mul mul;
    beside(
        "relu" + size, work,
        [=] {
            for (std::size_t i = 0; i < n; ++i) {
                const float v = px[i];
                py[i] = v <= 0 ? 0 : v;
            }
        },
        [&] { kernel().map[unary<functor::Relu>](&relu, x, y, n); });
    beside(
        "relu backward, added" + size, work,
        [=] {
            for (std::size_t i = 0; i < n; ++i) {
                const float d = px[i];
                pz[i] += py[i] <= 0 ? 0 : d;
            }
        },
        [&] {
            kernel().map_back[unary<functor::Relu>](&relu, x, y, {z, Write::add}, n);
        });
    beside(
        "exp" + size, 10 * work,
        [=] {
            for (std::size_t i = 0; i < n; ++i) py[i] = std::exp(px[i]);
        },
        [&] { kernel().map[unary<functor::Exp>](&exponential, x, y, n); });
    beside(
        "tanh" + size, 30 * work,
        [=] {
            for (std::size_t i = 0; i < n; ++i) py[i] = std::tanh(px[i]);
        },
        [&] { kernel().map[unary<functor::Tanh>](&hyperbolic, x, y, n); });
    beside(
        "a + b" + size, work,
        [=] {
            for (std::size_t i = 0; i < n; ++i) pz[i] = px[i] + py[i];
        },
        [&, w = walk(rows, columns, false, false)] { kernel().zip[binary<functor::Add>](&add, w, x, y, z); });
    beside(
        "x + bias" + size, work,
        [=] {
            for (std::size_t r = 0; r < rows; ++r)
                for (std::size_t i = 0; i < columns; ++i) pz[r * columns + i] = px[r * columns + i] + prow[i];
        },
        [&, w = walk(rows, columns, false, true)] {
            kernel().zip[binary<functor::Add>](&add, w, x, row, z);
        });
    beside(
        "gradient of bias" + size, work,
        [=] {
            for (std::size_t i = 0; i < columns; ++i) prow[i] = 0;
            for (std::size_t r = 0; r < rows; ++r)
                for (std::size_t i = 0; i < columns; ++i) prow[i] += px[r * columns + i];
        },
        [&, w = walk(rows, columns, false, true)] {
            kernel().zip_back_b[binary<functor::Add>](&add, w, x, nullptr, nullptr, nullptr,
                                                      {row, Write::set});
        });
    beside(
        "gradient of gain" + size, work,
        [=] {
            for (std::size_t i = 0; i < columns; ++i) prow[i] = 0;
            for (std::size_t r = 0; r < rows; ++r)
                for (std::size_t i = 0; i < columns; ++i)
                    prow[i] += px[r * columns + i] * py[r * columns + i];
        },
        [&, w = walk(rows, columns, false, true)] {
            kernel().zip_back_b[binary<functor::Mul>](&mul, w, x, y, nullptr, nullptr, {row, Write::set});
        });
    beside(
        "add_scaled, added" + size, work,
        [=] {
            for (std::size_t i = 0; i < n; ++i) py[i] += 0.5f * px[i];
        },
        [&] {
            kernel().add_scaled(0.5f, x, {y, Write::add}, n);
        });
    beside(
        "sum down" + size, work,
        [=] {
            for (std::size_t i = 0; i < columns; ++i) prow[i] = 0;
            for (std::size_t r = 0; r < rows; ++r)
                for (std::size_t i = 0; i < columns; ++i) prow[i] += px[r * columns + i];
        },
        [&] {
            kernel().sum(x, {row, Write::set}, {1, rows, columns});
        });
    beside(
        "sum across" + size, work,
        [=] {
            for (std::size_t r = 0; r < rows; ++r) {
                float lanes[64] = {};
                std::size_t i = 0;
                for (; i + 64 <= columns; i += 64)
                    for (std::size_t l = 0; l < 64; ++l) lanes[l] += px[r * columns + i + l];
                float total = 0;
                for (float lane : lanes) total += lane;
                for (; i < columns; ++i) total += px[r * columns + i];
                py[r] = total;
            }
        },
        [&] {
            kernel().sum(x, {y, Write::set}, {rows, columns, 1});
        });
    beside(
        "max across" + size, work,
        [=] {
            for (std::size_t r = 0; r < rows; ++r) {
                float lanes[64];
                for (std::size_t l = 0; l < 64; ++l) lanes[l] = px[r * columns];
                std::size_t i = 0;
                for (; i + 64 <= columns; i += 64)
                    for (std::size_t l = 0; l < 64; ++l) {
                        const float v = px[r * columns + i + l];
                        lanes[l] = lanes[l] > v ? lanes[l] : v;
                    }
                float top = lanes[0];
                for (float lane : lanes) top = top > lane ? top : lane;
                for (; i < columns; ++i) top = top > px[r * columns + i] ? top : px[r * columns + i];
                py[r] = top;
            }
        },
        [&] {
            kernel().max(x, y, {rows, columns, 1});
        });
    beside(
        "spread down" + size, work,
        [=] {
            for (std::size_t r = 0; r < rows; ++r)
                for (std::size_t i = 0; i < columns; ++i) pz[r * columns + i] = prow[i];
        },
        [&] {
            kernel().spread(row, 1.0f, {z, Write::set}, {1, rows, columns});
        });
    Walk<1> turned;
    turned.rank = 2;
    turned.size = n;
    turned.extent = {columns, rows};
    turned.stride[0] = {1, static_cast<std::ptrdiff_t>(columns)};
    turned.reach = {n};
    beside(
        "transpose" + size, 4 * work,
        [=] {
            for (std::size_t i = 0; i < columns; ++i)
                for (std::size_t r = 0; r < rows; ++r) py[i * rows + r] = px[r * columns + i];
        },
        [&] {
            kernel().gather(turned, x, {y, Write::set});
        });
    beside(
        "softmax" + size, 20 * work,
        [=] {
            for (std::size_t r = 0; r < rows; ++r) {
                const float* from = px + r * columns;
                float *to = py + r * columns, top = from[0], total = 0;
                for (std::size_t i = 0; i < columns; ++i) top = from[i] > top ? from[i] : top;
                for (std::size_t i = 0; i < columns; ++i) total += to[i] = std::exp(from[i] - top);
                for (std::size_t i = 0; i < columns; ++i) to[i] /= total;
            }
        },
        [&] {
            kernel().softmax(x, y, {rows, columns, 1});
        });
}

void cross_entropy(std::size_t rows, std::size_t classes) {
    const std::size_t n = rows * classes;
    const Floats x(n), p(n), d(n);
    const std::vector<std::int32_t> labels(rows, 3);
    float total = 0, count = 0, slope = 1.0f / static_cast<float>(rows);
    float* const __restrict px = x, * const __restrict pp = p, * const __restrict pd = d;
    beside(
        "cross_entropy " + std::to_string(rows) + "x" + std::to_string(classes) + ", forward and backward",
        10 * static_cast<double>(n),
        [&, px, pp, pd] {
            total = 0;
            for (std::size_t r = 0; r < rows; ++r) {
                const float* from = px + r * classes;
                float *to = pp + r * classes, top = from[0], sum = 0;
                for (std::size_t i = 0; i < classes; ++i) top = from[i] > top ? from[i] : top;
                for (std::size_t i = 0; i < classes; ++i) sum += to[i] = std::exp(from[i] - top);
                for (std::size_t i = 0; i < classes; ++i) to[i] /= sum;
                total += std::log(sum) - (from[labels[r]] - top);
            }
            for (std::size_t i = 0; i < n; ++i) pd[i] = slope * pp[i];
            for (std::size_t r = 0; r < rows; ++r)
                pd[r * classes + static_cast<std::size_t>(labels[r])] -= slope;
        },
        [&] {
            kernel().cross_entropy(x, labels.data(), Targets{}, p, &total, &count, rows, classes);
            kernel().cross_entropy_back(&slope, p, labels.data(), Targets{}, {d, Write::set}, rows, classes);
        });
}

void product(const char* name, Product p, Write how) {
    const Floats a(p.m * p.k), b(p.k * p.n), c(p.m * p.n, 1e-3f);
    const float* const __restrict pa = a, * const __restrict pb = b;
    float* const __restrict pc = c;
    const std::size_t down = p.transpose_a ? 1 : p.k, right = p.transpose_a ? p.m : 1,
                      deep = p.transpose_b ? 1 : p.n, across = p.transpose_b ? p.k : 1;
    beside(
        std::string(name) + " (" + std::to_string(p.m) + "," + std::to_string(p.k) + ")x(" +
            std::to_string(p.k) + "," + std::to_string(p.n) + ")",
        static_cast<double>(p.m * p.n * p.k) / 10,
        [=] {
            for (std::size_t i = 0; i < p.m; ++i) {
                if (how == Write::set)
                    for (std::size_t j = 0; j < p.n; ++j) pc[i * p.n + j] = 0;
                for (std::size_t l = 0; l < p.k; ++l)
                    for (std::size_t j = 0; j < p.n; ++j)
                        pc[i * p.n + j] += pa[i * down + l * right] * pb[l * deep + j * across];
            }
        },
        [&] {
            kernel().matmul(p, a, b, {c, how});
        });
}

// What a window of Sum::exact does with a micro-batch's gradient, beside adding it to a running sum: for each
// number. `spread`: over so many powers of two.
template <class S> void exact_sum(const char* type, int spread) {
    const std::int64_t n = 1 << 16;
    Array<S> x = Array<S>::empty({n}), running = Array<S>::zeros({n});
    S* const numbers = x.writable();
    for (std::int64_t i = 0; i < n; ++i)
        numbers[i] = std::ldexp(static_cast<S>(static_cast<int>(i * 2654435761u % 1999) - 999),
                                static_cast<int>(i * 40503u % static_cast<unsigned>(spread)) - spread);
    ExactSum<S> sum({n});
    sum.add(x);
    const auto count = static_cast<double>(n);
    bench::race("exact sums, " + std::string(type) + " over 2^" + std::to_string(spread) + ", " +
                    std::to_string(sum.bytes() / static_cast<std::size_t>(n)) + " bytes a number; for each",
                {{"running", [&] { add_scaled(running, 1, x); }, 20, count},
                 {"exact", [&] { sum.add(x); }, 4, count},
                 {"rounded", [&] { sum.round_to(running.raw()); }, 1, count}},
                41);
}

}  // namespace

int main() {
    const Floats x(64), y(64), z(64);
    const functor::Relu relu;
    const functor::Tanh hyperbolic;
    const functor::Add add;
    float* const __restrict px = x, * const __restrict py = y;
    beside(
        "relu of 3 numbers", 5,
        [=] {
            for (std::size_t i = 0; i < 3; ++i) py[i] = px[i] <= 0 ? 0 : px[i];
        },
        [&] { kernel().map[unary<functor::Relu>](&relu, x, y, 3); });
    beside(
        "tanh of 3 numbers", 30,
        [=] {
            for (std::size_t i = 0; i < 3; ++i) py[i] = std::tanh(px[i]);
        },
        [&] { kernel().map[unary<functor::Tanh>](&hyperbolic, x, y, 3); });
    beside(
        "a + b of 3 numbers", 5,
        [=] {
            for (std::size_t i = 0; i < 3; ++i) py[i] += px[i];
        },
        [&, w = walk(1, 3, false, false)] { kernel().zip[binary<functor::Add>](&add, w, x, y, z); });
    beside(
        "gradient of a, added, of 3 numbers", 5,
        [=] {
            for (std::size_t i = 0; i < 3; ++i) py[i] += px[i];
        },
        [&, w = walk(1, 3, false, false)] {
            kernel().zip_back_a[binary<functor::Add>](&add, w, x, nullptr, nullptr, nullptr, {y, Write::add});
        });
    beside(
        "mean of 6 numbers", 5,
        [=] {
            float t = 0;
            for (std::size_t i = 0; i < 6; ++i) t += px[i];
            py[0] = t / 6;
        },
        [&] {
            kernel().sum(x, {y, Write::set}, {1, 6, 1});
        });
    product("the toy, forward", {6, 1, 3, false, false}, Write::set);
    product("the toy, gradient", {3, 1, 6, true, false}, Write::set);
    product("the toy, gradient, added", {3, 1, 2, true, false}, Write::add);
    product("small layer", {8, 10, 16, false, false}, Write::set);
    product("small layer, gradient of x", {8, 16, 10, false, true}, Write::set);
    product("one row", {1, 512, 784, false, false}, Write::set);
    product("one row, gradient of x", {1, 784, 512, false, true}, Write::set);
    product("one row, gradient of w, added", {784, 512, 1, true, false}, Write::add);
    product("16 rows, gradient of w, added", {784, 512, 16, true, false}, Write::add);
    elementwise(64, 10);
    elementwise(64, 512);
    elementwise(512, 1024);
    cross_entropy(512, 1000);
    exact_sum<float>("float", 20);
    exact_sum<float>("float", 120);
    exact_sum<double>("double", 20);
    exact_sum<double>("double", 1000);
}
