// A ProgramBuilder adds random steps to a program. Each step is evaluated on the tape, and stays in the
// program only if its numbers are within bounds.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "programs/evaluator.hpp"
#include "programs/indices.hpp"

namespace programs {

inline constexpr std::size_t most_numbers = 300, most_nodes = 20000;

class ProgramBuilder {
public:
    explicit ProgramBuilder(std::uint64_t seed)
        : rng_(seed), program_(new_program(seed, rng_)), evaluator_(program_) {}

protected:
    static Program new_program(std::uint64_t seed, Rng& rng) {
        Program program;
        program.seed = seed;
        program.wide = rng.one_in(2);
        program.special = rng.one_in(8);
        return program;
    }

    // ---- adding steps, and removing invalid ones ----
    template <class F> bool attempt(F f) {
        const std::size_t before = program_.steps.size();
        const auto operations = operations_;
        try {
            f();
            return true;
        } catch (const Invalid&) {
            program_.steps.resize(before);
            evaluator_.truncate(before);
            consumed_.resize(before);
            operations_ = operations;
            return false;
        }
    }
    int put(Step step) {
        if (!is_leaf(step.op) && !is_act(step.op)) {
            step.no_grad = rng_.one_in(40);
            ++operations_;
        }
        program_.steps.push_back(std::move(step));
        evaluator_.step();
        consumed_.push_back(false);
        const int place = static_cast<int>(program_.steps.size()) - 1;
        const TapeArray& y = evaluator_.value(place);
        demand(y.at.size() <= most_numbers, "too large");
        if (!program_.special)
            for (const int node : y.at) {
                const Bounded& number = evaluator_.number(node);
                demand(std::isfinite(number.error) && std::abs(number.value) <= 50, "out of bounds");
            }
        return place;
    }
    int put(Op op, std::vector<int> in, std::vector<std::int64_t> whole = {},
            std::vector<double> numbers = {}) {
        Step step;
        step.op = op;
        step.in = std::move(in);
        step.whole = std::move(whole);
        step.numbers = std::move(numbers);
        return put(std::move(step));
    }

    // ---- random parts ----
    Extents shape(int most_axes) {
        Extents all(static_cast<std::size_t>(rng_.whole(0, most_axes)));
        for (auto& extent : all) extent = rng_.one_in(5) ? 1 : rng_.whole(2, 4);
        if (!all.empty() && rng_.one_in(8)) all.back() = rng_.whole(5, 20);
        if (!all.empty() && rng_.one_in(16))
            all[static_cast<std::size_t>(rng_.whole(0, std::ssize(all) - 1))] = 0;
        return all;
    }
    double number(double low, double high, bool round) {
        if (program_.special && rng_.one_in(5)) {
            const double huge = program_.wide ? 1e300 : 1e37, tiny = program_.wide ? 1e-300 : 1e-37;
            return rng_.of(std::vector<double>{0.0, -0.0, huge, -huge, tiny, -tiny, tiny * 1e-6, 1.0, -1.0});
        }
        const double drawn = rng_.between(low, high);
        return round ? std::round(drawn * 4) / 4 : static_cast<float>(drawn);
    }
    int leaf(const Extents& shape, double low = -2, double high = 2, bool may_be_constant = true) {
        Step step;
        step.op = may_be_constant && rng_.one_in(5) ? Op::constant : Op::parameter;
        step.shape = shape;
        const bool round = low < 0 && rng_.one_in(4);  // so that some numbers are equal
        for (std::size_t i = 0; i < size_of(shape); ++i) step.numbers.push_back(number(low, high, round));
        return put(std::move(step));
    }
    double plain_number() {
        const double n = static_cast<double>(rng_.whole(-16, 16)) / 8;
        return n == 0 ? 0.75 : n;
    }
    int any(bool also_consumed = false) {
        const auto count = static_cast<int>(program_.steps.size());
        for (int tries = 0; tries < 50; ++tries) {
            const int from = rng_.one_in(2) ? std::max(0, count - 3) : 0;
            const int place = static_cast<int>(rng_.whole(from, count - 1));
            if (!is_act(program_.steps[static_cast<std::size_t>(place)].op) &&
                (also_consumed || usable(place)))
                return place;
        }
        throw Invalid("nothing to compute with");
    }
    bool usable(int place) const { return !consumed_[static_cast<std::size_t>(place)]; }
    const Extents& shape_of(int place) const { return evaluator_.value(place).shape; }
    template <class Fits> int any_that(Fits fits) {  // returns -1 if six random attempts find no value
        for (int tries = 0; tries < 6; ++tries)
            if (const int place = any(); fits(place)) return place;
        return -1;
    }
    int of_shape(const Extents& shape, double low = -2, double high = 2) {
        const int found = low < 0 ? any_that([&](int place) { return shape_of(place) == shape; }) : -1;
        return found >= 0 ? found : leaf(shape, low, high);
    }
    int of_rank(std::size_t rank) {  // an earlier value, a reshaped value or a new leaf
        const int found = any_that([&](int place) { return shape_of(place).size() == rank; });
        if (found >= 0) return found;
        const int x = any();
        std::size_t left = evaluator_.value(x).at.size();
        if (left == 0 || rng_.one_in(3)) {
            Extents drawn(rank);
            for (auto& extent : drawn) extent = rng_.whole(1, 4);
            if (rank == 4) drawn[1] = rng_.whole(1, 2);
            if (rng_.one_in(20)) drawn[0] = 0;
            return leaf(drawn);
        }
        Extents extents(rank, 1);
        for (std::size_t axis = rank; axis-- > 1;)
            for (const std::size_t factor : {4u, 3u, 2u, 5u})
                if (left % factor == 0 && !rng_.one_in(4)) {
                    extents[axis] = static_cast<std::int64_t>(factor);
                    left /= factor;
                    break;
                }
        extents[0] = static_cast<std::int64_t>(left);
        return put(Op::reshape, {x}, extents);
    }
    bool above(int place, double least) const {
        for (const int node : evaluator_.value(place).at)
            if (evaluator_.number(node).value < least) return false;
        return true;
    }
    int positive() {
        const int found = any_that([&](int place) { return above(place, 0.1); });
        if (found >= 0) return found;
        if (rng_.one_in(3)) return leaf(shape(3), 0.3, 2);
        return put(rng_.one_in(2) ? Op::sigmoid : Op::exp, {any()});
    }
    int probabilities() { return put(Op::sigmoid, {any()}); }
    Extents within(Extents out) {
        if (rng_.one_in(3)) out.erase(out.begin(), out.begin() + rng_.whole(0, std::ssize(out)));
        for (auto& extent : out)
            if (rng_.one_in(3)) extent = 1;
        return out;
    }
    Extents around(Extents in) {
        for (auto& extent : in)
            if (extent == 1 && rng_.one_in(2)) extent = rng_.whole(0, 3) == 0 ? 1 : rng_.whole(2, 3);
        if (in.size() < 4 && rng_.one_in(3)) in.insert(in.begin(), rng_.whole(1, 3));
        return in;
    }
    int partner(const Extents& of) {
        const int found = any_that([&](int place) {
            try {
                broadcast(of, shape_of(place));
                return true;
            } catch (const Invalid&) {
                return false;
            }
        });
        if (found >= 0 && !rng_.one_in(3)) return found;
        return leaf(rng_.one_in(4) ? around(of) : within(of));
    }
    std::int64_t axis_in(const Extents& shape) {
        demand(!shape.empty(), "no axis");
        const auto rank = std::ssize(shape);
        return rng_.whole(-rank, rank - 1);
    }
    std::vector<std::int64_t> axes_in(const Extents& shape) {
        std::vector<std::int64_t> axes;
        const auto rank = std::ssize(shape);
        if (rng_.one_in(4)) return axes;
        for (std::int64_t axis = 0; axis < rank; ++axis)
            if (rng_.one_in(2)) axes.push_back(rng_.one_in(2) ? axis : axis - rank);
        if (axes.size() > 1 && rng_.one_in(2)) std::swap(axes.front(), axes.back());
        return axes;
    }
    std::vector<std::int32_t> integers(std::size_t count, std::int64_t low, std::int64_t high) {
        std::vector<std::int32_t> all(count);
        for (auto& each : all) each = static_cast<std::int32_t>(rng_.whole(low, high));
        return all;
    }

    std::int64_t& random_element(std::vector<std::int64_t>& all) {
        return all[static_cast<std::size_t>(rng_.whole(0, std::ssize(all) - 1))];
    }

    Rng rng_;
    Program program_;
    Evaluator evaluator_;
    std::vector<bool> consumed_;
    std::int64_t operations_ = 0;
};

}  // namespace programs
