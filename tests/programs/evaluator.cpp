// Evaluates elementwise operations, reductions, operations that move numbers, and gradients on the tape.
#include "programs/evaluator.hpp"

#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "programs/indices.hpp"

namespace programs {

void Evaluator::step() {
    const Step& step = program_.steps.at(values_.size());
    TapeArray result;
    if (!step.removed) {
        for (const int operand : step.in)
            demand(!program_.steps[static_cast<std::size_t>(operand)].removed, "an operand was removed");
        if (is_act(step.op)) {
            act(step);
        } else {
            result = compute(step);
            demand(result.shape.size() <= 6, "too many axes");
            demand(result.at.size() == size_of(result.shape), "the result has another size than its shape");
            if (!is_leaf(step.op)) {
                for (const int operand : step.in)
                    result.recorded = result.recorded || value(operand).recorded;
                if (step.no_grad || step.op == Op::detach) result.recorded = false;
                for (int& x : result.at)
                    result.recorded ? tape_.require_gradient(x) : void(x = tape_.as_constant(x));
            }
        }
    }
    values_.push_back(std::move(result));
    gradients_.resize(values_.size());
}

TapeArray Evaluator::compute(const Step& step) {
    switch (step.op) {
        case Op::parameter:
        case Op::constant: {
            TapeArray y{step.shape, {}, step.op == Op::parameter};
            demand(step.numbers.size() == size_of(step.shape), "a leaf has another size than its shape");
            for (const double number : step.numbers)
                y.at.push_back(tape_.leaf(program_.wide ? number : static_cast<float>(number), y.recorded));
            return y;
        }
        case Op::sum:
        case Op::mean:
        case Op::max:
        case Op::logsumexp:
        case Op::softmax:
        case Op::log_softmax:
            return reduction(step);
        case Op::reshape:
        case Op::permute:
        case Op::transpose:
        case Op::broadcast_to:
        case Op::slice:
        case Op::concat:
        case Op::split:
        case Op::rows:
        case Op::embedding:
        case Op::detach:
            return moved(step);
        case Op::matmul:
        case Op::linear:
        case Op::linear_relu:
            return product(step);
        case Op::conv2d:
        case Op::max_pool2d:
            return window(step);
        case Op::layer_norm:
        case Op::batch_norm:
        case Op::batch_norm_running:
            return normalised(step);
        case Op::mse:
        case Op::binary_cross_entropy:
        case Op::cross_entropy:
        case Op::info_nce:
            return loss(step);
        default:
            return elementwise(step);
    }
}

TapeArray Evaluator::elementwise(const Step& step) {
    Tape& t = tape_;
    const TapeArray& a = in(step, 0);
    TapeArray y{a.shape, {}};
    const auto each = [&](auto f) {
        for (const int x : a.at) y.at.push_back(f(x));
        return y;
    };
    const auto pairs = [&](auto f) {
        const TapeArray& b = in(step, 1);
        y.shape = broadcast(a.shape, b.shape);
        const auto left = spread(a.at, a.shape, y.shape), right = spread(b.at, b.shape, y.shape);
        for (std::size_t i = 0; i < left.size(); ++i) y.at.push_back(f(left[i], right[i]));
        return y;
    };
    const double n = step.numbers.empty() ? 0 : step.numbers[0];
    const auto number = [&] { return t.constant(n); };
    switch (step.op) {
        case Op::neg:
            return each([&](int x) { return t.neg(x); });
        case Op::exp:
            return each([&](int x) { return t.exp(x); });
        case Op::log:
            return each([&](int x) { return t.log(x); });
        case Op::sqrt:
            return each([&](int x) { return t.sqrt(x); });
        case Op::tanh:
            return each([&](int x) { return t.tanh(x); });
        case Op::sigmoid:
            return each([&](int x) { return t.sigmoid(x); });
        case Op::relu:
            return each([&](int x) { return t.relu(x); });
        case Op::gelu:
            return each([&](int x) { return t.gelu(x); });
        case Op::abs:
            return each([&](int x) { return t.abs(x); });
        case Op::sin:
            return each([&](int x) { return t.sin(x); });
        case Op::cos:
            return each([&](int x) { return t.cos(x); });
        case Op::add_number:
            return each([&](int x) { return t.add(x, number()); });
        case Op::number_add:
            return each([&](int x) { return t.add(number(), x); });
        case Op::sub_number:
            return each([&](int x) { return t.sub(x, number()); });
        case Op::number_sub:
            return each([&](int x) { return t.sub(number(), x); });
        case Op::mul_number:
            return each([&](int x) { return t.mul(x, number()); });
        case Op::number_mul:
            return each([&](int x) { return t.mul(number(), x); });
        case Op::div_number:
            return each([&](int x) { return t.div(x, number()); });
        case Op::number_div:
            return each([&](int x) { return t.div(number(), x); });
        case Op::pow_number:
            return each([&](int x) { return t.pow_number(x, n); });
        case Op::clamp:
            return each([&](int x) { return t.clamp(x, n, step.numbers.at(1)); });
        case Op::clamp_below:
            return each([&](int x) { return t.clamp(x, n, std::numeric_limits<double>::infinity()); });
        case Op::custom_give:
            return each([&](int x) { return t.mul(t.mul(x, x), x); });
        case Op::custom_into:
            demand(a.shape == in(step, 1).shape, "this operation does not broadcast");
            return pairs([&](int p, int q) { return t.add(t.mul(p, q), p); });
        case Op::add:
            return pairs([&](int p, int q) { return t.add(p, q); });
        case Op::sub:
            return pairs([&](int p, int q) { return t.sub(p, q); });
        case Op::mul:
            return pairs([&](int p, int q) { return t.mul(p, q); });
        case Op::div:
            return pairs([&](int p, int q) { return t.div(p, q); });
        case Op::pow:
            return pairs([&](int p, int q) { return t.pow(p, q); });
        case Op::maximum:
            return pairs([&](int p, int q) { return t.maximum(p, q, 1); });
        case Op::minimum:
            return pairs([&](int p, int q) { return t.maximum(p, q, -1); });
        case Op::squared_difference:
            return pairs([&](int p, int q) {
                const int d = t.sub(p, q);
                return t.mul(d, d);
            });
        case Op::where: {
            const TapeArray& b = in(step, 1);
            y.shape = broadcast(step.shape, broadcast(a.shape, b.shape));
            const auto left = spread(a.at, a.shape, y.shape), right = spread(b.at, b.shape, y.shape);
            demand(step.index.size() == size_of(step.shape), "a condition has another shape");
            const auto condition = spread(step.index, step.shape, y.shape);
            for (std::size_t i = 0; i < left.size(); ++i)
                y.at.push_back(t.copy(condition[i] ? left[i] : right[i]));
            return y;
        }
        case Op::dropout: {
            demand(!a.shape.empty(), "dropout of a single number");
            const std::vector<double> factors = dropout_factors(step, a.shape);
            for (std::size_t i = 0; i < factors.size(); ++i)
                y.at.push_back(
                    t.mul(a.at[i], t.constant(factors[i], factors[i] == 0 ? 0 : t.unit() * factors[i])));
            return y;
        }
        default:
            throw Invalid("no such operation");
    }
}

TapeArray Evaluator::reduction(const Step& step) {
    Tape& t = tape_;
    const TapeArray& x = in(step, 0);
    const auto exponentials = [&](const std::vector<int>& all) {  // shifted by the maximum
        int best = all.at(0);
        for (const int i : all)
            if (t[i].value > t[best].value) best = i;
        const int shift = t.constant(t[best].value);
        std::vector<int> shifted, powers;
        for (const int i : all) shifted.push_back(t.sub(i, shift));
        for (const int i : shifted) powers.push_back(t.exp(i));
        return std::tuple(shift, shifted, powers);
    };
    const auto gather = [&](const std::vector<std::size_t>& places) {
        std::vector<int> all;
        for (const std::size_t place : places) all.push_back(x.at[place]);
        return all;
    };
    std::vector<bool> reduced(x.shape.size(), step.whole.empty());
    for (const std::int64_t axis : step.whole) {
        demand(!reduced[axis_of(axis, x.shape)], "an axis is named twice");
        reduced[axis_of(axis, x.shape)] = true;
    }
    if (step.op == Op::softmax || step.op == Op::log_softmax) {
        demand(step.whole.size() == 1, "one axis");
        TapeArray y{x.shape, std::vector<int>(x.at.size())};
        for (const auto& places : groups(x.shape, reduced)) {
            if (places.empty()) continue;
            const auto [shift, shifted, powers] = exponentials(gather(places));
            const int total = t.sum(powers), logarithm = step.op == Op::log_softmax ? t.log(total) : 0;
            for (std::size_t k = 0; k < places.size(); ++k)
                y.at[places[k]] =
                    step.op == Op::softmax ? t.div(powers[k], total) : t.sub(shifted[k], logarithm);
        }
        return y;
    }
    TapeArray y;
    for (std::size_t axis = 0; axis < x.shape.size(); ++axis) {
        if (!reduced[axis]) y.shape.push_back(x.shape[axis]);
        if (reduced[axis] && step.first) y.shape.push_back(1);
    }
    for (const auto& places : groups(x.shape, reduced)) {
        const std::vector<int> all = gather(places);
        demand(step.op == Op::sum || !all.empty(), "nothing to reduce");
        if (step.op == Op::sum) {
            y.at.push_back(t.sum(all));
        } else if (step.op == Op::mean) {
            y.at.push_back(t.div(t.sum(all), t.constant(static_cast<Number>(all.size()))));
        } else if (step.op == Op::max) {
            y.at.push_back(t.largest(all, true));
        } else {
            const auto [shift, shifted, powers] = exponentials(all);
            y.at.push_back(t.add(shift, t.log(t.sum(powers))));
        }
    }
    return y;
}

TapeArray Evaluator::moved(const Step& step) {
    const TapeArray& x = in(step, 0);
    TapeArray y;
    const auto copy_of = [&](std::size_t place) { y.at.push_back(tape_.copy(x.at.at(place))); };
    const auto copy_all = [&](auto place) {  // `place` maps an index of y to an offset in x
        for (std::size_t i = 0; i < size_of(y.shape); ++i) copy_of(place(index_at(i, y.shape)));
    };
    switch (step.op) {
        case Op::detach:
            y = {x.shape, x.at};
            break;
        case Op::reshape: {
            y.shape = step.whole;
            std::size_t known = 1;
            for (const std::int64_t extent : y.shape)
                known *= extent < 0 ? 1 : static_cast<std::size_t>(extent);
            for (std::int64_t& extent : y.shape)
                if (extent < 0) {
                    demand(known > 0, "the extent is not determined");
                    extent = static_cast<std::int64_t>(x.at.size() / known);
                }
            demand(size_of(y.shape) == x.at.size(), "a reshape changes the size");
            for (std::size_t i = 0; i < x.at.size(); ++i) copy_of(i);
            break;
        }
        case Op::permute:
        case Op::transpose: {
            std::vector<std::size_t> order;
            for (std::size_t axis = 0; axis < x.shape.size(); ++axis) order.push_back(axis);
            if (step.op == Op::transpose) {
                std::swap(order.at(axis_of(step.whole.at(0), x.shape)),
                          order.at(axis_of(step.whole.at(1), x.shape)));
            } else {
                demand(step.whole.size() == order.size(), "a permutation of other axes");
                for (std::size_t i = 0; i < order.size(); ++i) order[i] = axis_of(step.whole[i], x.shape);
            }
            std::vector<bool> named(order.size());
            for (const std::size_t axis : order) named[axis] = true;
            demand(std::count(named.begin(), named.end(), false) == 0, "an axis is named twice");
            for (const std::size_t axis : order) y.shape.push_back(x.shape[axis]);
            copy_all([&](const Index& index) {
                Index from(index.size());
                for (std::size_t i = 0; i < order.size(); ++i) from[order[i]] = index[i];
                return place_of(from, x.shape);
            });
            break;
        }
        case Op::broadcast_to:
            y.shape = step.whole;
            demand(broadcast(x.shape, y.shape) == y.shape, "does not fit");
            copy_all([&](const Index& index) { return broadcast_place(index, x.shape); });
            break;
        case Op::slice:
        case Op::split: {  // whole: {axis, from, to}, or {rows of a part, number of the part}
            const bool whole_rows = step.op == Op::split;
            demand(!x.shape.empty(), "a single number has no rows");
            const std::size_t axis = whole_rows ? 0 : axis_of(step.whole.at(0), x.shape);
            const std::int64_t from = whole_rows ? step.whole.at(0) * step.whole.at(1) : step.whole.at(1);
            const std::int64_t to =
                whole_rows ? std::min(from + step.whole[0], x.shape[0]) : step.whole.at(2);
            demand(from >= 0 && from <= to && to <= x.shape[axis] && (!whole_rows || from < to),
                   "no such part");
            y.shape = x.shape;
            y.shape[axis] = to - from;
            copy_all([&](Index index) {
                index[axis] += from;
                return place_of(index, x.shape);
            });
            break;
        }
        case Op::concat: {
            const std::size_t axis = axis_of(step.whole.at(0), x.shape);
            y.shape = x.shape;
            y.shape[axis] = 0;
            for (std::size_t k = 0; k < step.in.size(); ++k) {
                Extents other = in(step, k).shape;
                demand(other.size() == x.shape.size(), "parts of different ranks");
                y.shape[axis] += other[axis];
                other[axis] = x.shape[axis];
                demand(other == x.shape, "parts do not fit");
            }
            for (std::size_t i = 0; i < size_of(y.shape); ++i) {
                Index index = index_at(i, y.shape);
                std::size_t k = 0;
                while (index[axis] >= in(step, k).shape[axis]) index[axis] -= in(step, k++).shape[axis];
                y.at.push_back(tape_.copy(in(step, k).at[place_of(index, in(step, k).shape)]));
            }
            break;
        }
        default: {  // rows and embedding; with step.first, whole is the padding row
            demand(!x.shape.empty() && (step.op == Op::embedding || step.shape.size() == 1), "no rows");
            demand(step.index.size() == size_of(step.shape), "indices have another shape");
            y.shape = step.shape;
            y.shape.insert(y.shape.end(), x.shape.begin() + 1, x.shape.end());
            const std::size_t width = size_of(Extents(x.shape.begin() + 1, x.shape.end()));
            const bool padded = step.op == Op::embedding && step.first;
            if (padded)
                demand(step.whole.at(0) >= -x.shape[0] && step.whole[0] < x.shape[0], "no such padding");
            const std::int64_t padding = padded ? (step.whole[0] + x.shape[0]) % x.shape[0] : -1;
            for (const std::int32_t row : step.index) {
                demand(row >= 0 && row < x.shape[0], "no such row");
                for (std::size_t k = 0; k < width; ++k) {
                    const int element = x.at[static_cast<std::size_t>(row) * width + k];
                    y.at.push_back(row == padding ? tape_.as_constant(element) : tape_.copy(element));
                }
            }
        }
    }
    return y;
}

std::vector<bool> Evaluator::dependencies(int place) const {
    std::vector<bool> reached(values_.size());
    if (!value(place).recorded) return reached;
    reached[static_cast<std::size_t>(place)] = true;
    for (int i = place; i >= 0; --i) {
        if (!reached[static_cast<std::size_t>(i)]) continue;
        for (const int operand : program_.steps[static_cast<std::size_t>(i)].in)
            if (value(operand).recorded) reached[static_cast<std::size_t>(operand)] = true;
    }
    return reached;
}

void Evaluator::act(const Step& step) {
    const int act = static_cast<int>(values_.size()), place = step.in.at(0);
    auto& own = gradients_[static_cast<std::size_t>(place)];
    if (step.op == Op::zero_grad || step.op == Op::free_grad) {
        demand(program_.steps[static_cast<std::size_t>(place)].op == Op::parameter, "not a parameter");
        own.reset();
        return;
    }
    const TapeArray& y = value(place);
    demand(y.recorded && !is_leaf(program_.steps[static_cast<std::size_t>(place)].op),
           "nothing to differentiate");
    std::vector<Number> seed(y.at.size(), 1);
    if (step.numbers.empty()) {
        demand(seed.size() == 1, "a seed is needed");
    } else {
        demand(step.numbers.size() == seed.size(), "a seed of another shape");
        for (std::size_t i = 0; i < seed.size(); ++i)
            seed[i] = program_.wide ? step.numbers[i] : static_cast<float>(step.numbers[i]);
    }
    const std::vector<bool> reached = dependencies(place);
    std::vector<bool> numbers(tape_.size());
    for (std::size_t i = 0; i < reached.size(); ++i)
        if (reached[i])
            for (const int node : values_[i].at) numbers[static_cast<std::size_t>(node)] = true;
    std::vector<Bounded> adjoint;
    tape_.backward(y.at, seed, std::move(numbers), adjoint);
    const auto gradient_of = [&](int x) {
        std::vector<Bounded> all;
        for (const int node : value(x).at) all.push_back(adjoint[static_cast<std::size_t>(node)]);
        return all;
    };
    if (step.op == Op::grad) {
        for (std::size_t k = 1; k < step.in.size(); ++k) {
            demand(reached[static_cast<std::size_t>(step.in[k])] && step.in[k] != place,
                   "the result does not depend on it");
            demand(std::count(step.in.begin() + 1, step.in.end(), step.in[k]) == 1, "requested twice");
            expected_.push_back({act, step.in[k], gradient_of(step.in[k])});
        }
        return;
    }
    for (int leaf = 0; leaf < act; ++leaf) {
        if (program_.steps[static_cast<std::size_t>(leaf)].op != Op::parameter ||
            program_.steps[static_cast<std::size_t>(leaf)].removed)
            continue;
        auto& sum = gradients_[static_cast<std::size_t>(leaf)];
        if (reached[static_cast<std::size_t>(leaf)]) {
            std::vector<Bounded> fresh = gradient_of(leaf);
            if (sum)
                for (std::size_t i = 0; i < fresh.size(); ++i) {
                    fresh[i].value += (*sum)[i].value;
                    fresh[i].size += (*sum)[i].size;
                    fresh[i].error += (*sum)[i].error + 2 * tape_.unit() * fresh[i].size;
                }
            sum = std::move(fresh);
        }
        expected_.push_back({act, leaf, sum});
    }
}

}  // namespace programs
