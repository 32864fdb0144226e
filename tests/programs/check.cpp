// Compares results of a program with a Tape. Each number may differ by eight times its error bound.
#include "programs/check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "programs/evaluator.hpp"
#include "programs/generator.hpp"
#include "programs/outcome.hpp"

namespace programs {

namespace {

constexpr double allowance = 8;

class Comparison {
public:
    Comparison(const Program& program, const Evaluator& evaluated, Counts& counts, const char* name,
               double factor)
        : program_(program), evaluated_(evaluated), counts_(counts), name_(name), factor_(factor) {}

    // `exact` is true for the engine, which must also reproduce missing gradients and overflow.
    std::string of(const Outcome& outcome, bool exact) {
        exact_ = exact;
        for (std::size_t i = 0; i < program_.steps.size(); ++i) {
            if (!outcome.values[i]) continue;
            const TapeArray& expected = evaluated_.value(static_cast<int>(i));
            if (outcome.shapes[i] != expected.shape) return text("shape of", static_cast<int>(i), {});
            std::vector<Bounded> numbers;
            for (const int node : expected.at) numbers.push_back(evaluated_.number(node));
            if (const auto off = first_off(numbers, *outcome.values[i]); !off.empty())
                return text("value of", static_cast<int>(i), off);
        }
        const auto& expected = evaluated_.expected();
        if (expected.size() != outcome.gradients.size())
            return std::string(name_) + ": another number of gradients";
        for (std::size_t k = 0; k < expected.size(); ++k) {
            const std::string which = std::string("after ") +
                                      name_of(program_.steps[static_cast<std::size_t>(expected[k].act)].op) +
                                      " v" + std::to_string(expected[k].act) + ": gradient of";
            const auto& got = outcome.gradients[k].gradient;
            if (exact && expected[k].gradient.has_value() != got.has_value())
                return text(which, expected[k].place, got ? "arrived, and should not" : "did not arrive");
            if (!expected[k].gradient || !got) continue;
            if (const auto off = first_off(*expected[k].gradient, *got); !off.empty())
                return text(which, expected[k].place, off);
        }
        return {};
    }

private:
    std::string first_off(const std::vector<Bounded>& expected, const std::vector<double>& got) {
        if (expected.size() != got.size()) return "has another size";
        double scale = 0;
        for (const Bounded& number : expected)
            if (std::isfinite(number.error))
                scale = std::max(scale, std::abs(static_cast<double>(number.value)));
        for (std::size_t i = 0; i < got.size(); ++i) {
            const double bound =
                factor_ * allowance * static_cast<double>(expected[i].error) + evaluated_.tape().tiny();
            const bool overflowed =
                exact_ ? false : program_.special && !std::isfinite(got[i]);  // LibTorch's formula overflows
            if (overflowed || !(bound <= std::max(scale / 8, 1e-3))) {
                ++counts_.loose;
                continue;
            }
            ++counts_.compared;
            const double off = std::abs(static_cast<double>(got[i] - expected[i].value));
            counts_.nearest = std::max(counts_.nearest, off / bound);
            if (off <= bound) continue;
            std::ostringstream out;
            out.precision(17);
            out << "element " << i << " is " << got[i] << ", not " << static_cast<double>(expected[i].value)
                << " within " << bound;
            return out.str();
        }
        return {};
    }
    std::string text(const std::string& what, int place, const std::string& off) const {
        return std::string(name_) + ": " + what + " v" + std::to_string(place) + " (" +
               name_of(program_.steps[static_cast<std::size_t>(place)].op) + ") " + off;
    }

    const Program& program_;
    const Evaluator& evaluated_;
    Counts& counts_;
    const char* name_;
    double factor_;
    bool exact_ = true;
};

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

std::string different_bits(const Outcome& a, const Outcome& b) {
    for (std::size_t i = 0; i < a.values.size(); ++i)
        if (a.values[i] && b.values[i] && !same_bits(*a.values[i], *b.values[i]))
            return "value of v" + std::to_string(i);
    if (a.gradients.size() != b.gradients.size()) return "number of gradients";
    for (std::size_t k = 0; k < a.gradients.size(); ++k) {
        const auto &p = a.gradients[k].gradient, &q = b.gradients[k].gradient;
        if (p.has_value() != q.has_value() || (p && !same_bits(*p, *q)))
            return "gradient of v" + std::to_string(a.gradients[k].place) + " after v" +
                   std::to_string(a.gradients[k].act);
    }
    return {};
}

// Compares the derivative along a random direction with central differences of two step sizes.
std::string differences(const Program& program, const Evaluator& evaluated, const Outcome& plain,
                        Counts& counts) {
    if (!program.wide || program.special || evaluated.tape().undecided() || evaluated.tape().closest() < 2e-3)
        return {};
    double roundings = 0;
    int last = -1;
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
        const Step& step = program.steps[i];
        if (step.removed) continue;
        const bool hides = step.no_grad || step.op == Op::detach || step.op == Op::zero_grad ||
                           step.op == Op::free_grad || (step.op == Op::embedding && step.first);
        if (hides) return {};
        if (step.op != Op::backward) continue;
        last = static_cast<int>(i);
        const std::vector<int>& y = evaluated.value(step.in[0]).at;
        for (std::size_t k = 0; k < y.size(); ++k)
            roundings += static_cast<double>(evaluated.number(y[k]).error) *
                         std::abs(step.numbers.empty() ? 1 : step.numbers[k]);
    }
    if (last < 0) return {};
    Rng rng(program.seed ^ 0xD1FF);
    std::vector<std::vector<double>> direction(program.steps.size());
    double expected = 0, size = 0;
    for (const Observed& gradient : plain.gradients) {
        if (gradient.act != last || !gradient.gradient) continue;
        for (const double g : *gradient.gradient) {
            const double d = rng.between(-1, 1);
            direction[static_cast<std::size_t>(gradient.place)].push_back(d);
            expected += g * d;
            size += std::abs(g * d);
        }
    }
    const auto slope = [&](double h) {
        double value[2];
        for (const int side : {0, 1}) {
            Program moved = program;
            for (std::size_t i = 0; i < direction.size(); ++i)
                for (std::size_t k = 0; k < direction[i].size(); ++k)
                    moved.steps[i].numbers[k] += (side == 0 ? h : -h) * direction[i][k];
            value[side] = objective(moved);
        }
        return (value[0] - value[1]) / (2 * h);
    };
    const double h = 2e-5, narrow = slope(h), wide = slope(2 * h);
    const double bound = 4 * std::abs(narrow - wide) + 4 * roundings / h + 1e-9 * (1 + size);
    if (!(bound < 1e-3 * std::max(size, 1.0))) {
        ++counts.weak_differences;
        return {};
    }
    ++counts.with_differences;
    if (std::abs(narrow - expected) <= bound) return {};
    std::ostringstream out;
    out.precision(17);
    out << "differences: the slope is " << narrow << " (" << wide
        << " over twice the distance), gradients say " << expected << ", allowed are " << bound;
    return out.str();
}

}  // namespace

std::string check(const Program& program, bool with_peer, Counts& counts) {
    Evaluator evaluated(program);
    evaluated.run();
    if (!fits_blocks(program, evaluated)) throw Invalid("a graph would run backward twice");
    const Outcome plain = run_engine(program, Way::plain);
    if (!plain.error.empty()) return "engine: " + plain.error;
    if (auto off = Comparison(program, evaluated, counts, "evaluator", 1).of(plain, true); !off.empty())
        return off;
    for (const Way way : {Way::plain, Way::moved, Way::blocks, Way::moved_blocks}) {
        const bool same = way == Way::plain;
        const Outcome other = same ? Outcome() : run_engine(program, way);
        const Outcome& ran = same ? plain : other;
        if (!ran.error.empty()) return std::string(name_of(way)) + ": " + ran.error;
        if (ran.nodes_left || ran.bytes_left)
            return std::string(name_of(way)) + ": " + std::to_string(ran.nodes_left) + " nodes and " +
                   std::to_string(ran.bytes_left) + " bytes are left";
        if (same) continue;
        if (const auto off = different_bits(plain, ran); !off.empty())
            return std::string(name_of(way)) + ": other bits, " + off;
    }
    if (auto off = differences(program, evaluated, plain, counts); !off.empty()) return off;
    if (with_peer && peer_is_there()) {
        const Outcome peer = run_peer(program);
        if (!peer.error.empty()) {
            ++counts.rejected_by_peer;
            ++counts.errors_of_peer[peer.error.substr(0, peer.error.find('\n')).substr(0, 100)];
            return {};
        }
        ++counts.with_peer;
        Counts separate;
        if (auto off = Comparison(program, evaluated, separate, "LibTorch", 2).of(peer, false); !off.empty())
            return off;
    }
    return {};
}

namespace {

void drop_unread(Program& program) {
    for (bool more = true; more;) {
        more = false;
        const std::vector<int> last = last_uses(program);
        for (std::size_t i = program.steps.size(); i-- > 0;) {
            Step& step = program.steps[i];
            if (step.removed || is_act(step.op) || last[i] >= 0) continue;
            step.removed = more = true;
        }
    }
}

// Applies each possible simplification to `program`, and returns the simplified programs.
std::vector<Program> simpler(const Program& program) {
    std::vector<Program> all;
    const auto add = [&](auto change) {
        Program candidate = program;
        change(candidate);
        all.push_back(std::move(candidate));
    };
    add([](Program& p) { drop_unread(p); });
    const std::vector<int> last = last_uses(program);
    for (std::size_t i = program.steps.size(); i-- > 0;)
        if (last[i] < 0 && !program.steps[i].removed) add([&](Program& p) { p.steps[i].removed = true; });
    for (std::size_t b = 0; b < program.blocks.size(); ++b)
        add([&](Program& p) { p.blocks.erase(p.blocks.begin() + static_cast<std::ptrdiff_t>(b)); });
    Evaluator evaluated(program);
    evaluated.run();
    for (std::size_t i = program.steps.size(); i-- > 0;) {
        const Step& step = program.steps[i];
        if (step.removed || is_act(step.op) || is_leaf(step.op)) continue;
        const TapeArray& y = evaluated.value(static_cast<int>(i));
        add([&](Program& p) {  // replaces the step by a leaf with its value
            Step leaf;
            leaf.op = y.recorded ? Op::parameter : Op::constant;
            leaf.shape = y.shape;
            for (const int node : y.at)
                leaf.numbers.push_back(static_cast<double>(evaluated.number(node).value));
            p.steps[i] = leaf;
            drop_unread(p);
        });
        for (const int operand : step.in)
            if (evaluated.value(operand).shape == y.shape)
                add([&](Program& p) {  // replaces the step by its operand
                    for (Step& reader : p.steps)
                        std::replace(reader.in.begin(), reader.in.end(), static_cast<int>(i), operand);
                    p.steps[i].removed = true;
                    drop_unread(p);
                });
        if (step.no_grad) add([&](Program& p) { p.steps[i].no_grad = false; });
    }
    for (const std::int64_t extent : {20, 16, 12, 8, 6, 5, 4, 3, 2})
        for (const std::int64_t smaller : {std::int64_t{1}, extent - 1}) {
            bool changed = false;
            Program candidate = program;
            for (Step& step : candidate.steps) {
                if (step.removed) continue;
                if (is_leaf(step.op) && std::count(step.shape.begin(), step.shape.end(), extent)) {
                    std::replace(step.shape.begin(), step.shape.end(), extent, smaller);
                    step.numbers.resize(size_of(step.shape));
                    changed = true;
                }
                if (step.op == Op::reshape || step.op == Op::broadcast_to)
                    std::replace(step.whole.begin(), step.whole.end(), extent, smaller);
                if (!is_leaf(step.op) && !step.index.empty()) {
                    std::replace(step.shape.begin(), step.shape.end(), extent, smaller);
                    step.index.resize(size_of(step.shape));
                }
            }
            for (Step& step : candidate.steps)
                if (is_act(step.op) && changed) step.numbers.clear();
            if (changed) all.push_back(std::move(candidate));
        }
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
        const Step& step = program.steps[i];
        if (step.removed || !(is_leaf(step.op) || is_act(step.op)) || step.numbers.empty()) continue;
        std::vector<double> rounded = step.numbers, ones(step.numbers.size(), 1);
        for (double& n : rounded) n = std::round(n * 4) / 4;
        for (const auto& numbers : {ones, rounded})
            if (numbers != step.numbers && step.numbers != ones)
                add([&](Program& p) { p.steps[i].numbers = numbers; });
    }
    return all;
}

}  // namespace

Program shrunk(Program program, const std::string& difference) {
    const std::string check_name = difference.substr(0, difference.find(':'));
    const auto still = [&](const Program& candidate) {
        Counts unused;
        try {
            const std::string off = check(candidate, check_name == "LibTorch", unused);
            return off.substr(0, off.find(':')) == check_name;
        } catch (const Invalid&) {
            return false;
        }
    };
    // Replaces the program by a simpler candidate as long as a candidate fails the same check.
    int failed = 0, attempts = 0;
    std::vector<Program> candidates = simpler(program);
    for (std::size_t next = 0; failed < std::ssize(candidates) && attempts < 6000; ++attempts, ++next) {
        const Program& candidate = candidates[next % candidates.size()];
        if (still(candidate)) {
            program = candidate;
            candidates = simpler(program);
            failed = 0;
        } else {
            ++failed;
        }
    }
    return program;
}

std::string summary(const Counts& c) {
    std::ostringstream out;
    out.precision(3);
    out << "programs " << c.programs << ", differ " << c.failures << ", operations " << c.operations
        << ", requests for gradients " << c.requests << "\nin double " << c.wide << ", with special values "
        << c.special << ", with checkpoints " << c.checkpointed << ", with nested ones " << c.nested
        << ", with several backward passes " << c.several << "\nnumbers compared " << c.compared
        << ", numbers without a bound " << c.loose << ", the farthest in parts of its bound " << c.nearest
        << "\nby finite differences " << c.with_differences << ", inconclusive ones " << c.weak_differences;
    if (peer_is_there())
        out << ", with LibTorch " << c.with_peer << ", not done by LibTorch " << c.rejected_by_peer << '\n';
    else
        out << "; LibTorch was not used: it is not installed\n";
    for (int op = 0; op < op_count; ++op)
        out << (op % 10 ? ", "
                : op    ? "\n"
                        : "")
            << name_of(static_cast<Op>(op)) << ' ' << c.by_operation[static_cast<std::size_t>(op)];
    out << '\n';
    for (const auto& [error, times] : c.errors_of_peer)
        out << "LibTorch throws, " << times << " times: " << error << '\n';
    return out.str();
}

}  // namespace programs
