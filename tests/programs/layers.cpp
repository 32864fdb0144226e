// Evaluates products, windows over images, norms and losses on the tape.
#include <cmath>
#include <limits>

#include "programs/evaluator.hpp"
#include "programs/indices.hpp"

namespace programs {

TapeArray Evaluator::product(const Step& step) {
    Tape& t = tape_;
    const TapeArray &a = in(step, 0), &b = in(step, 1);
    TapeArray y;
    if (step.op != Op::matmul) {  // x (..., in) · w (in, out) + bias (out)
        demand(!a.shape.empty() && b.shape.size() == 2 && a.shape.back() == b.shape[0], "inner sizes differ");
        const auto width = static_cast<std::size_t>(b.shape[0]), out = static_cast<std::size_t>(b.shape[1]);
        const bool biased = step.in.size() > 2;
        if (biased) demand(in(step, 2).shape == Extents{b.shape[1]}, "a bias of another shape");
        y.shape = a.shape;
        y.shape.back() = b.shape[1];
        const std::size_t rows = size_of(Extents(a.shape.begin(), a.shape.end() - 1));
        for (std::size_t i = 0; i < rows; ++i)
            for (std::size_t j = 0; j < out; ++j) {
                std::vector<int> terms;
                if (biased) terms.push_back(in(step, 2).at[j]);
                for (std::size_t k = 0; k < width; ++k)
                    terms.push_back(t.mul(a.at[i * width + k], b.at[k * out + j]));
                const int total = t.sum(terms);
                y.at.push_back(step.op == Op::linear_relu ? t.relu(total) : total);
            }
        return y;
    }
    const bool vector_a = a.shape.size() == 1, vector_b = b.shape.size() == 1;
    demand(!a.shape.empty() && !b.shape.empty(), "a single number is not a matrix");
    demand(!(vector_a && step.first) && !(vector_b && step.second), "a vector has no transpose");
    Extents p = a.shape, q = b.shape;  // shapes of the operands as matrices
    if (vector_a) p = {1, p[0]};
    if (vector_b) q = {q[0], 1};
    const Extents many_a(p.begin(), p.end() - 2), many_b(q.begin(), q.end() - 2);
    const auto last = [](const Extents& s, std::size_t i) { return s[s.size() - i]; };
    const std::int64_t m = step.first ? last(p, 1) : last(p, 2), k = step.first ? last(p, 2) : last(p, 1);
    const std::int64_t n = step.second ? last(q, 2) : last(q, 1);
    demand(k == (step.second ? last(q, 1) : last(q, 2)), "inner sizes differ");
    const Extents many = broadcast(many_a, many_b);
    const auto size = [](std::int64_t extent) { return static_cast<std::size_t>(extent); };
    for (std::size_t member = 0; member < size_of(many); ++member) {
        const Index index = index_at(member, many);
        const std::size_t from_a = broadcast_place(index, many_a) * size(m * k);
        const std::size_t from_b = broadcast_place(index, many_b) * size(k * n);
        for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
                std::vector<int> terms;
                for (std::int64_t l = 0; l < k; ++l)
                    terms.push_back(t.mul(a.at[from_a + size(step.first ? l * m + i : i * k + l)],
                                          b.at[from_b + size(step.second ? j * k + l : l * n + j)]));
                y.at.push_back(t.sum(terms));
            }
    }
    y.shape = many;
    if (!vector_a) y.shape.push_back(m);
    if (!vector_b) y.shape.push_back(n);
    return y;
}

// In conv2d, `whole` is {stride, padding}. In max_pool2d, `whole` is {size, stride}, and stride 0 means size.
TapeArray Evaluator::window(const Step& step) {
    Tape& t = tape_;
    const TapeArray& x = in(step, 0);
    demand(x.shape.size() == 4, "no images");
    const bool conv = step.op == Op::conv2d;
    const std::int64_t tall = conv ? in(step, 1).shape.at(2) : step.whole.at(0),
                       wide = conv ? in(step, 1).shape.at(3) : tall;
    const std::int64_t padding = conv ? step.whole.at(1) : 0;
    const std::int64_t stride = conv ? step.whole.at(0) : step.whole.at(1) ? step.whole[1] : tall;
    const std::int64_t height = x.shape[2] + 2 * padding, width = x.shape[3] + 2 * padding;
    demand(tall >= 1 && wide >= 1 && stride >= 1 && padding >= 0 && tall <= height && wide <= width,
           "no such window");
    TapeArray y{{x.shape[0], x.shape[1], (height - tall) / stride + 1, (width - wide) / stride + 1}, {}};
    if (conv) {
        const TapeArray& w = in(step, 1);
        demand(w.shape.size() == 4 && w.shape[1] == x.shape[1], "other channels");
        if (step.in.size() > 2) demand(in(step, 2).shape == Extents{w.shape[0]}, "a bias of another shape");
        y.shape[1] = w.shape[0];
    }
    for (std::size_t i = 0; i < size_of(y.shape); ++i) {
        const Index at = index_at(i, y.shape);
        std::vector<int> seen;
        if (conv && step.in.size() > 2) seen.push_back(in(step, 2).at[static_cast<std::size_t>(at[1])]);
        for (std::int64_t c = 0; c < (conv ? x.shape[1] : 1); ++c)
            for (std::int64_t down = 0; down < tall; ++down)
                for (std::int64_t across = 0; across < wide; ++across) {
                    const std::int64_t row = at[2] * stride + down - padding,
                                       column = at[3] * stride + across - padding;
                    const bool inside = row >= 0 && column >= 0 && row < x.shape[2] && column < x.shape[3];
                    if (!inside && !program_.special)
                        continue;  // outside pixels are 0, and matter only when multiplied by infinity
                    const int pixel = inside ? x.at[place_of({at[0], conv ? c : at[1], row, column}, x.shape)]
                                             : t.constant(0);
                    if (conv)
                        seen.push_back(t.mul(
                            pixel, in(step, 1).at[place_of({at[1], c, down, across}, in(step, 1).shape)]));
                    else
                        seen.push_back(pixel);
                }
        y.at.push_back(conv ? t.sum(seen) : t.largest(seen, false));
    }
    return y;
}

// Normalises the numbers of `group` with the mean and the variance of `statistics_of`.
std::vector<int> Evaluator::normal(const std::vector<int>& group, const std::vector<int>& statistics_of,
                                   double eps) {
    Tape& t = tape_;
    const int count = t.constant(static_cast<Number>(statistics_of.size()));
    const int mean = t.div(t.sum(statistics_of), count);
    std::vector<int> squares, result;
    for (const int x : statistics_of) {
        const int d = t.sub(x, mean);
        squares.push_back(t.mul(d, d));
    }
    const int variance = t.div(t.sum(squares), count);
    const int deviation = t.sqrt(t.add(variance, t.constant(eps, t.unit() * eps)));
    for (const int x : group) result.push_back(t.div(t.sub(x, mean), deviation));
    return result;
}

// A norm has the operands x, gain and bias. For batch_norm_running, step.numbers is {means, variances}.
TapeArray Evaluator::normalised(const Step& step) {
    Tape& t = tape_;
    const TapeArray &x = in(step, 0), &gain = in(step, 1), &bias = in(step, 2);
    const bool rows = step.op == Op::layer_norm;
    demand(x.shape.size() >= (rows ? 1u : 2u), "nothing to normalise");
    const std::size_t axis = rows ? x.shape.size() - 1 : 1;
    demand(gain.shape == Extents{x.shape[axis]} && bias.shape == gain.shape,
           "gain and bias of another shape");
    std::vector<bool> reduced(x.shape.size(), !rows);
    reduced[axis] = rows;
    constexpr double eps = 1e-5;
    TapeArray y{x.shape, std::vector<int>(x.at.size())};
    const auto all = groups(x.shape, reduced);
    std::int64_t count = 1;
    for (std::size_t other = 0; other < x.shape.size(); ++other) count *= other == axis ? 1 : x.shape[other];
    demand(step.op != Op::batch_norm || count > 1, "one value has no variance");
    for (std::size_t g = 0; g < all.size(); ++g) {
        if (all[g].empty()) continue;
        std::vector<int> numbers, normalised;
        for (const std::size_t place : all[g]) numbers.push_back(x.at[place]);
        if (step.op == Op::batch_norm_running) {
            const std::size_t features = gain.at.size();
            demand(step.numbers.size() == 2 * features, "statistics of another shape");
            const auto stored = [&](std::size_t i) {
                return Number(program_.wide ? step.numbers[i] : static_cast<float>(step.numbers[i]));
            };
            const int mean = t.constant(stored(g));
            const int deviation =
                t.sqrt(t.add(t.constant(stored(features + g)), t.constant(eps, t.unit() * eps)));
            for (const int n : numbers) normalised.push_back(t.div(t.sub(n, mean), deviation));
        } else {
            normalised = normal(numbers, numbers, eps);
        }
        for (std::size_t k = 0; k < numbers.size(); ++k) {
            const std::size_t feature = rows ? k : g;
            int scaled = t.mul(normalised[k], gain.at[feature]);
            // A kernel may first multiply the gain by 1 / deviation, and this factor is at most 317.
            if (std::abs(t[gain.at[feature]].value) * 317 > t.huge()) scaled = t.without_bound(scaled);
            y.at[all[g][k]] = t.add(scaled, bias.at[feature]);
        }
    }
    return y;
}

// Returns the sum of the losses, or their mean if step.first is true. In cross_entropy, `index` is the
// labels, `whole` is {ignored} and `numbers` is {smoothing}. In info_nce, `numbers` is {temperature}.
TapeArray Evaluator::loss(const Step& step) {
    Tape& t = tape_;
    const TapeArray& a = in(step, 0);
    std::vector<int> terms;
    std::size_t count = 0;
    const auto entropy = [&](const std::vector<std::vector<int>>& logits,
                             const std::vector<std::int64_t>& labels, std::int64_t ignored,
                             double smoothing) {
        for (std::size_t row = 0; row < logits.size(); ++row) {
            if (labels[row] == ignored) continue;
            ++count;
            const auto classes = static_cast<std::int64_t>(logits[row].size());
            demand(labels[row] >= 0 && labels[row] < classes, "no such label");
            int best = logits[row][0];
            for (const int x : logits[row])
                if (t[x].value > t[best].value) best = x;
            const int shift = t.constant(t[best].value);
            std::vector<int> powers;
            for (const int x : logits[row]) powers.push_back(t.exp(t.sub(x, shift)));
            const int logarithm = t.log(t.sum(powers));
            for (std::int64_t c = 0; c < classes; ++c) {
                const Number weight = (c == labels[row] ? 1 - Number(smoothing) : 0) +
                                      Number(smoothing) / static_cast<Number>(classes);
                if (weight == 0) continue;
                const int likely = t.sub(t.sub(logits[row][static_cast<std::size_t>(c)], shift), logarithm);
                terms.push_back(t.neg(t.mul(t.constant(weight, smoothing == 0 ? 0 : 2 * t.unit()), likely)));
            }
        }
    };
    if (step.op == Op::mse || step.op == Op::binary_cross_entropy) {
        const TapeArray& b = in(step, 1);
        demand(a.shape == b.shape, "a loss of different shapes");
        count = a.at.size();
        for (std::size_t i = 0; i < count; ++i) {
            if (step.op == Op::mse) {
                const int d = t.sub(a.at[i], b.at[i]);
                terms.push_back(t.mul(d, d));
                continue;
            }
            const int one = t.constant(1), target = b.at[i];
            const Number likely = t[a.at[i]].value;  // beyond 1e-12 the gradient is 0 by convention
            const int p = likely * (1 - likely) > 2e-12L ? a.at[i] : t.without_bound(a.at[i]);
            const auto stopped = [&](int x) {
                return t.clamp(t.log(x), -100, std::numeric_limits<double>::infinity());
            };
            terms.push_back(
                t.sub(t.mul(t.sub(target, one), stopped(t.sub(one, p))), t.mul(target, stopped(p))));
        }
    } else if (step.op == Op::cross_entropy) {
        demand(a.shape.size() == 2 && static_cast<std::int64_t>(step.index.size()) == a.shape[0] &&
                   a.shape[1] > 0,
               "a label for each row");
        std::vector<std::vector<int>> logits(step.index.size());
        for (std::size_t i = 0; i < a.at.size(); ++i)
            logits[i / static_cast<std::size_t>(a.shape[1])].push_back(a.at[i]);
        entropy(logits, {step.index.begin(), step.index.end()}, step.whole.at(0), step.numbers.at(0));
    } else {
        const TapeArray& b = in(step, 1);
        demand(a.shape.size() == 2 && a.shape == b.shape, "queries and keys differ");
        const auto rows = static_cast<std::size_t>(a.shape[0]), width = static_cast<std::size_t>(a.shape[1]);
        std::vector<std::vector<int>> logits(rows);
        std::vector<std::int64_t> own;
        for (std::size_t i = 0; i < rows; ++i) {
            own.push_back(static_cast<std::int64_t>(i));
            for (std::size_t j = 0; j < rows; ++j) {
                std::vector<int> products;
                for (std::size_t k = 0; k < width; ++k)
                    products.push_back(t.mul(a.at[i * width + k], b.at[j * width + k]));
                logits[i].push_back(t.div(t.sum(products), t.constant(step.numbers.at(0))));
            }
        }
        entropy(logits, own, -100, 0);
    }
    int y = t.sum(terms);
    if (step.first) {
        demand(count > 0, "a mean of nothing");
        y = t.div(y, t.constant(static_cast<Number>(count)));
    }
    return {{}, {t.copy(y)}};
}

}  // namespace programs
