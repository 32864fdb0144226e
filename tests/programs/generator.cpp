// Generates random operations with operands, requests for gradients, and checkpointed blocks.
#include "programs/generator.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "programs/growth.hpp"

namespace programs {

namespace {

class Generator : ProgramBuilder {
public:
    using ProgramBuilder::ProgramBuilder;

    Program grow() {
        const std::int64_t depth = rng_.whole(1, 40);
        for (std::int64_t leaves = rng_.whole(1, 3); leaves > 0;)
            leaves -= attempt([this] { leaf(shape(4)); });
        for (int tries = 0;
             operations_ < depth && tries < 20 * depth && evaluator_.tape().size() < most_nodes; ++tries) {
            attempt([this] { operation(); });
            if (rng_.one_in(10)) attempt([this] { request(false); });
        }
        for (int last = rng_.one_in(3) ? 2 : 1; last > 0; --last)
            for (int tries = 0; tries < 8 && !attempt([this] { request(true); }); ++tries) {
            }
        draw_blocks();
        return std::move(program_);
    }

private:
    // ---- one operation ----
    void operation() {
        const int low = static_cast<int>(Op::neg), high = static_cast<int>(Op::custom_into);
        operation(static_cast<Op>(rng_.whole(low, high)));
    }
    void operation(Op op) {
        Step s;
        s.op = op;
        switch (op) {
            case Op::neg:
            case Op::exp:
            case Op::tanh:
            case Op::sigmoid:
            case Op::relu:
            case Op::gelu:
            case Op::abs:
            case Op::sin:
            case Op::cos:
            case Op::custom_give:
                s.in = {any()};
                break;
            case Op::detach:
                s.in = {rng_.one_in(2) ? any() : any(true)};
                break;
            case Op::log:
            case Op::sqrt:
                s.in = {positive()};
                break;
            case Op::number_div:
                s.in = {positive()};
                s.numbers = {plain_number()};
                break;
            case Op::pow_number:
                s.numbers = {rng_.of(std::vector<double>{0, 1, 2, 2, 3, -1, -2, 0.5, 2.5})};
                s.in = {s.numbers[0] == 2 || s.numbers[0] == 3 || s.numbers[0] == 0 || s.numbers[0] == 1
                            ? any()
                            : positive()};
                break;
            case Op::add_number:
            case Op::number_add:
            case Op::sub_number:
            case Op::number_sub:
            case Op::mul_number:
            case Op::number_mul:
            case Op::div_number:
            case Op::clamp_below:
                s.in = {any()};
                s.numbers = {plain_number()};
                break;
            case Op::clamp:
                s.in = {any()};
                s.numbers = {-0.75, 0.5};
                break;
            case Op::div:
            case Op::pow: {
                const int b = positive();
                s.in = op == Op::div ? std::vector<int>{partner(shape_of(b)), b}
                                     : std::vector<int>{b, partner(shape_of(b))};
                break;
            }
            case Op::add:
            case Op::sub:
            case Op::mul:
            case Op::maximum:
            case Op::minimum:
            case Op::squared_difference: {
                const int a = any(), b = rng_.one_in(12) ? a : partner(shape_of(a));
                s.in = {a, b};
                if (rng_.one_in(2)) std::swap(s.in[0], s.in[1]);
                break;
            }
            case Op::custom_into: {
                const int a = any();
                s.in = {a, of_shape(shape_of(a))};
                break;
            }
            case Op::where: {
                const int a = any(), b = partner(shape_of(a));
                const Extents out = broadcast(shape_of(a), shape_of(b));
                s.in = {a, b};
                s.shape = rng_.one_in(6) ? around(out) : within(out);
                s.index = integers(size_of(s.shape), 0, 1);
                break;
            }
            case Op::sum:
            case Op::mean:
            case Op::max:
            case Op::logsumexp:
                s.in = {any()};
                s.whole = axes_in(shape_of(s.in[0]));
                s.first = rng_.one_in(2);
                break;
            case Op::softmax:
            case Op::log_softmax:
                s.in = {any()};
                s.whole = {axis_in(shape_of(s.in[0]))};
                break;
            case Op::dropout: {
                s.in = {any()};
                s.numbers = {rng_.one_in(16) ? 1.0 : static_cast<double>(rng_.whole(1, 12)) / 16};
                s.whole = {rng_.whole(0, 1 << 20), rng_.whole(0, 3),
                           rng_.one_in(2) ? 0 : rng_.whole(0, 1000)};
                break;
            }
            case Op::mse:
            case Op::binary_cross_entropy: {
                const int a = op == Op::mse ? any() : probabilities();
                s.in = {a, op == Op::mse ? of_shape(shape_of(a)) : leaf(shape_of(a), 0.1, 0.9)};
                s.first = rng_.one_in(2);
                break;
            }
            default:
                return shaped(std::move(s));
        }
        put(std::move(s));
    }

    void shaped(Step s) {
        switch (s.op) {
            case Op::reshape: {
                s.in = {any()};
                auto left = static_cast<std::int64_t>(evaluator_.value(s.in[0]).at.size());
                const bool empty = left == 0;
                for (std::int64_t axes = rng_.whole(0, 3); axes > 0; --axes) {
                    std::int64_t factor = rng_.whole(1, 4);
                    if (empty || left % factor) factor = 1;
                    s.whole.push_back(factor);
                    if (!empty) left /= factor;
                }
                if (left != 1) s.whole.insert(s.whole.begin() + rng_.whole(0, std::ssize(s.whole)), left);
                if (!empty && !s.whole.empty() && rng_.one_in(3)) random_element(s.whole) = -1;
                break;
            }
            case Op::permute: {
                s.in = {any()};
                const auto rank = std::ssize(shape_of(s.in[0]));
                for (std::int64_t axis = 0; axis < rank; ++axis)
                    s.whole.insert(s.whole.begin() + rng_.whole(0, axis),
                                   rng_.one_in(2) ? axis : axis - rank);
                break;
            }
            case Op::transpose:
                s.in = {any()};
                s.whole = {axis_in(shape_of(s.in[0])), axis_in(shape_of(s.in[0]))};
                break;
            case Op::broadcast_to:
                s.in = {any()};
                s.whole = around(shape_of(s.in[0]));
                break;
            case Op::slice: {
                s.in = {any()};
                const Extents& of = shape_of(s.in[0]);
                const std::int64_t axis = axis_in(of), extent = of[axis_of(axis, of)];
                const std::int64_t from = rng_.whole(0, extent), to = rng_.whole(from, extent);
                s.whole = {axis, from, from == to && rng_.one_in(2) ? extent : to};
                break;
            }
            case Op::split: {
                s.in = {any()};
                demand(!shape_of(s.in[0]).empty(), "no rows");
                const std::int64_t rows = shape_of(s.in[0])[0], size = rng_.whole(1, 3);
                s.whole = {size, rng_.whole(0, std::max<std::int64_t>(0, (rows - 1) / size))};
                break;
            }
            case Op::concat: {
                const int x = any();
                const std::int64_t axis = axis_in(shape_of(x));
                s.whole = {axis};
                for (std::int64_t parts = rng_.whole(1, 3); parts > 0; --parts) {
                    Extents other = shape_of(x);
                    if (rng_.one_in(2)) other[axis_of(axis, other)] = rng_.whole(0, 3);
                    s.in.push_back(of_shape(other));
                }
                s.in.insert(s.in.begin() + rng_.whole(0, std::ssize(s.in)), x);
                break;
            }
            case Op::rows:
            case Op::embedding: {
                s.in = {any()};
                demand(!shape_of(s.in[0]).empty(), "no rows");
                const std::int64_t rows = shape_of(s.in[0])[0];
                s.shape = {rng_.whole(0, 4)};
                if (s.op == Op::embedding && rng_.one_in(2))
                    s.shape.insert(s.shape.begin(), rng_.whole(1, 3));
                if (s.op == Op::embedding && rng_.one_in(6)) s.shape.clear();
                demand(rows > 0 || size_of(s.shape) == 0, "no rows");
                s.index = integers(size_of(s.shape), 0, std::max<std::int64_t>(rows - 1, 0));
                s.first = s.op == Op::embedding && rows > 0 && rng_.one_in(2);
                if (s.first) s.whole = {rng_.whole(-rows, rows - 1)};
                break;
            }
            case Op::matmul: {
                if (rng_.one_in(40)) {  // more than 4096 multiply-adds
                    const int a = leaf({16, 17});
                    s.in = {a, leaf({17, 16})};
                    break;
                }
                const int x = any();
                const Extents of = shape_of(x);
                demand(!of.empty(), "no matrix");
                s.first = of.size() > 1 && rng_.one_in(2);
                const std::int64_t inner = of.size() == 1 || !s.first ? of.back() : of[of.size() - 2];
                const bool vector = rng_.one_in(5);
                s.second = !vector && rng_.one_in(2);
                Extents other{inner};
                if (!vector) {
                    other = {inner, rng_.one_in(12)   ? 0
                                    : rng_.one_in(20) ? rng_.whole(8, 20)
                                                      : rng_.whole(1, 4)};
                    if (s.second) std::swap(other[0], other[1]);
                    if (of.size() > 2 && rng_.one_in(2)) {
                        const Extents many = within(Extents(of.begin(), of.end() - 2));
                        other.insert(other.begin(), many.begin(), many.end());
                    } else if (rng_.one_in(6)) {
                        other.insert(other.begin(), rng_.whole(1, 3));
                    }
                }
                s.in = {x, of_shape(other)};
                if (rng_.one_in(3)) {  // exchanges the operands: (A B)' = B' A'
                    std::swap(s.in[0], s.in[1]);
                    std::swap(s.first, s.second);
                    s.first = !s.first && shape_of(s.in[0]).size() > 1;
                    s.second = !s.second && shape_of(s.in[1]).size() > 1;
                }
                break;
            }
            case Op::linear:
            case Op::linear_relu: {
                const int x = any();
                demand(!shape_of(x).empty(), "no matrix");
                const std::int64_t out = rng_.one_in(12) ? 0 : rng_.whole(1, 5);
                s.in = {x, of_shape({shape_of(x).back(), out})};
                if (s.op == Op::linear_relu || rng_.one_in(2)) s.in.push_back(of_shape({out}));
                break;
            }
            case Op::conv2d: {
                const int x = of_rank(4);
                const Extents of = shape_of(x);
                demand(of[1] <= 6, "too many channels");
                const std::int64_t padding = rng_.whole(0, 2), out = rng_.one_in(16) ? 0 : rng_.whole(1, 3);
                demand(of[2] + 2 * padding > 0 && of[3] + 2 * padding > 0, "no pixels");
                const std::int64_t tall = rng_.whole(1, std::min<std::int64_t>(3, of[2] + 2 * padding)),
                                   wide = rng_.whole(1, std::min<std::int64_t>(3, of[3] + 2 * padding));
                s.whole = {rng_.whole(1, 2), padding};
                s.in = {x, of_shape({out, of[1], tall, wide})};
                if (rng_.one_in(2)) s.in.push_back(of_shape({out}));
                break;
            }
            case Op::max_pool2d:
                s.in = {of_rank(4)};
                s.whole = {rng_.whole(1, 3), rng_.whole(0, 2)};
                break;
            case Op::layer_norm:
            case Op::batch_norm:
            case Op::batch_norm_running: {
                const bool rows = s.op == Op::layer_norm;
                const int x = rows ? any() : rng_.one_in(2) ? of_rank(2) : of_rank(4);
                demand(!shape_of(x).empty(), "nothing to normalise");
                const std::int64_t width = rows ? shape_of(x).back() : shape_of(x)[1];
                if (s.op == Op::batch_norm_running) {
                    for (std::int64_t i = 0; i < 2 * width; ++i)
                        s.numbers.push_back(
                            static_cast<float>(rng_.between(i < width ? -1 : 0.5, i < width ? 1 : 2)));
                }
                s.in = {x, of_shape({width}), of_shape({width})};
                break;
            }
            case Op::cross_entropy: {
                s.in = {of_rank(2)};
                const Extents& of = shape_of(s.in[0]);
                demand(of[1] > 0, "no classes");
                s.shape = {of[0]};
                s.index = integers(static_cast<std::size_t>(of[0]), 0, of[1] - 1);
                s.whole = {rng_.one_in(2) ? -100 : rng_.whole(0, of[1] - 1)};
                if (s.whole[0] == -100 && of[0] > 1 && rng_.one_in(3)) s.index[0] = -100;
                s.numbers = {rng_.one_in(2) ? 0 : 0.125};
                s.first = rng_.one_in(2);
                break;
            }
            default: {
                demand(s.op == Op::info_nce, "an operation that is never drawn");
                const int x = of_rank(2);
                s.in = {x, of_shape(shape_of(x))};
                s.numbers = {rng_.one_in(2) ? 1 : 0.5};
                s.first = rng_.one_in(2);
            }
        }
        put(std::move(s));
    }

    // ---- gradients ----
    void request(bool last) {
        Step s;
        const int kind = last ? 0 : static_cast<int>(rng_.whole(0, 3));
        if (kind == 3) {
            s.op = rng_.one_in(2) ? Op::zero_grad : Op::free_grad;
            const int place = any_that(
                [&](int p) { return program_.steps[static_cast<std::size_t>(p)].op == Op::parameter; });
            demand(place >= 0, "no parameter");
            s.in = {place};
            put(std::move(s));
            return;
        }
        int y = any();
        if (last)  // chooses one of the newest usable values
            for (y = static_cast<int>(program_.steps.size()) - 1; y > 0; --y)
                if (!is_act(program_.steps[static_cast<std::size_t>(y)].op) && usable(y) &&
                    evaluator_.value(y).recorded &&
                    !is_leaf(program_.steps[static_cast<std::size_t>(y)].op) && !rng_.one_in(4))
                    break;
        demand(usable(y), "its graph has run backward");
        s.op = kind == 2 ? Op::grad : Op::backward;
        s.in = {y};
        const std::size_t size = evaluator_.value(y).at.size();
        if (size != 1 || rng_.one_in(2))
            for (std::size_t i = 0; i < size; ++i)
                s.numbers.push_back(std::round(rng_.between(-1, 1) * 8) / 8);
        const std::vector<bool> reached = evaluator_.dependencies(y);
        if (s.op == Op::grad)
            for (std::int64_t wanted = rng_.whole(1, 3); wanted > 0; --wanted) {
                const int x = any_that([&](int p) {
                    return p != y && reached[static_cast<std::size_t>(p)] &&
                           std::count(s.in.begin(), s.in.end(), p) == 0;
                });
                if (x >= 0) s.in.push_back(x);
            }
        demand(s.op == Op::backward || s.in.size() > 1, "nothing is requested");
        put(std::move(s));
        mark_consumed(reached);
    }
    // Marks the values of a graph that has run backward, so that no later step reads these values.
    void mark_consumed(const std::vector<bool>& reached) {
        for (std::size_t i = 0; i < program_.steps.size(); ++i) {
            const Step& step = program_.steps[i];
            if (is_leaf(step.op) || is_act(step.op)) continue;
            bool consumed = i < reached.size() && reached[i];
            if (evaluator_.value(static_cast<int>(i)).recorded)
                for (const int operand : step.in)
                    consumed = consumed || consumed_[static_cast<std::size_t>(operand)];
            consumed_[i] = consumed_[i] || consumed;
        }
    }

    // ---- checkpoints ----
    void draw_blocks() {
        const auto count = static_cast<std::int64_t>(program_.steps.size());
        for (std::int64_t tries = rng_.whole(0, 6); tries > 0; --tries) {
            const std::vector<Block> before = program_.blocks;
            Block block{static_cast<int>(rng_.whole(0, count - 1)), 0, rng_.one_in(2) ? rng_.bits() : 0};
            block.to = static_cast<int>(std::min(count, block.from + rng_.whole(1, rng_.one_in(2) ? 6 : 20)));
            bool fits = true;
            for (int i = block.from; i < block.to; ++i)
                fits = fits && !is_act(program_.steps[static_cast<std::size_t>(i)].op);
            for (const Block& b : before) {
                const bool disjoint = b.to <= block.from || block.to <= b.from;
                const bool nested =
                    (b.from <= block.from && block.to <= b.to) || (block.from <= b.from && b.to <= block.to);
                fits = fits && (disjoint || nested);
            }
            if (!fits) continue;
            program_.blocks.push_back(block);
            std::stable_sort(program_.blocks.begin(), program_.blocks.end(),
                             [](const Block& a, const Block& b) {
                                 return a.from != b.from ? a.from < b.from : a.to > b.to;
                             });
            if (!fits_blocks(program_, evaluator_)) program_.blocks = before;
        }
    }
};

}  // namespace

bool fits_blocks(const Program& program, const Evaluator& evaluated) {
    const std::size_t count = program.steps.size();
    std::vector<int> block_of(count, -1);  // number of the outermost block
    for (std::size_t b = program.blocks.size(); b-- > 0;)
        for (int i = program.blocks[b].from; i < program.blocks[b].to; ++i)
            if (!is_leaf(program.steps[static_cast<std::size_t>(i)].op))
                block_of[static_cast<std::size_t>(i)] = static_cast<int>(b);
    std::vector<bool> consumed(count);
    for (const Step& act : program.steps) {
        if (act.removed || (act.op != Op::backward && act.op != Op::grad)) continue;
        std::vector<bool> reached(count);
        reached[static_cast<std::size_t>(act.in[0])] = true;
        // Collects all steps on which the result depends. A block depends on the operands of all its steps.
        for (bool more = true; more;) {
            more = false;
            for (std::size_t i = count; i-- > 0;) {
                if (!reached[i] || is_leaf(program.steps[i].op)) continue;
                const auto reach = [&](int k) {
                    if (reached[static_cast<std::size_t>(k)]) return;
                    reached[static_cast<std::size_t>(k)] = more = true;
                };
                for (const int operand : program.steps[i].in)
                    if (evaluated.value(operand).recorded) reach(operand);
                if (const int b = block_of[i]; b >= 0) {
                    const Block& block = program.blocks[static_cast<std::size_t>(b)];
                    for (int k = block.from; k < block.to; ++k)
                        if (!is_leaf(program.steps[static_cast<std::size_t>(k)].op)) reach(k);
                }
            }
        }
        for (std::size_t i = 0; i < count; ++i) {
            if (!reached[i] || is_leaf(program.steps[i].op)) continue;
            if (consumed[i]) return false;
            consumed[i] = true;
        }
        for (std::size_t k = 1; k < act.in.size(); ++k)
            if (block_of[static_cast<std::size_t>(act.in[k])] >= 0) return false;
    }
    return true;
}

Program draw(std::uint64_t seed) { return Generator(seed).grow(); }

}  // namespace programs
