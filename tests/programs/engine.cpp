// Runs a program with tally. Operands may be moved at their last use, and blocks may be checkpointed.
#include <utility>

#include "programs/outcome.hpp"
#include "tally/tally.hpp"

namespace programs {

namespace {

using namespace tally;

template <class S> class Engine {
    using V = Var<Array<S>>;
    using Env = std::vector<V>;

public:
    Engine(const Program& program, Way way)
        : program_(program),
          moves_(way == Way::moved || way == Way::moved_blocks),
          blocks_(way == Way::blocks || way == Way::moved_blocks),
          last_(last_uses(program)) {
        outcome_.values.resize(program.steps.size());
        outcome_.shapes.resize(program.steps.size());
    }

    Outcome run() {
        Env env(program_.steps.size());
        for (std::size_t i = 0; i < env.size(); ++i)
            if (const Step& step = program_.steps[i]; !step.removed && is_leaf(step.op)) {
                const Array<S> numbers = array(step.shape, step.numbers);
                env[i] = step.op == Op::parameter ? parameter(numbers) : constant(numbers);
                look(i, env[i]);
            }
        run(0, static_cast<int>(env.size()), -1, env);
        return std::move(outcome_);
    }

    double objective() {
        const NoGrad off;
        Env env(program_.steps.size());
        double total = 0;
        for (std::size_t i = 0; i < env.size(); ++i) {
            const Step& step = program_.steps[i];
            if (step.removed) continue;
            if (is_leaf(step.op)) env[i] = constant(array(step.shape, step.numbers));
            if (!is_leaf(step.op) && !is_act(step.op)) env[i] = compute(step, operands(step, env));
            if (step.op != Op::backward) continue;
            const std::vector<S> y = env[static_cast<std::size_t>(step.in[0])].value().to_vector();
            for (std::size_t k = 0; k < y.size(); ++k)
                total += static_cast<double>(y[k]) * (step.numbers.empty() ? 1 : step.numbers[k]);
        }
        return total;
    }

private:
    static Array<S> array(const Extents& shape, const std::vector<double>& numbers) {
        return Array<S>(Shape(shape), std::vector<S>(numbers.begin(), numbers.end()));
    }
    static std::vector<double> numbers(const Array<S>& array) {
        const std::vector<S> all = array.to_vector();
        return {all.begin(), all.end()};
    }
    void look(std::size_t place, const V& y) {
        outcome_.values[place] = numbers(y.value());
        outcome_.shapes[place] = Extents(y.shape().begin(), y.shape().end());
    }

    // Returns true if no later step reads the value. Returns false for leaves, which need their gradients.
    bool ends_at(int place, int step) const {
        return moves_ && last_[static_cast<std::size_t>(place)] <= step &&
               !is_leaf(program_.steps[static_cast<std::size_t>(place)].op);
    }
    Env operands(const Step& step, const Env& env) const {
        Env x;
        for (const int place : step.in) x.push_back(env[static_cast<std::size_t>(place)]);
        return x;
    }

    void run(int from, int to, int around, Env& env) {
        for (int i = from; i < to; ++i) {
            const Step& step = program_.steps[static_cast<std::size_t>(i)];
            const int block = blocks_ ? block_at(program_, i, around) : -1;
            if (block >= 0) {
                run_block(block, env, around < 0);
                i = program_.blocks[static_cast<std::size_t>(block)].to - 1;
                continue;
            }
            if (step.removed || is_leaf(step.op)) continue;
            Env x = operands(step, env);
            for (const int place : step.in)
                if (ends_at(place, i)) env[static_cast<std::size_t>(place)] = {};
            if (is_act(step.op)) {
                act(i, step, x, env);
                continue;
            }
            V y;
            if (step.no_grad) {
                const NoGrad off;
                y = compute(step, std::move(x));
            } else {
                y = compute(step, std::move(x));
            }
            if (around < 0) look(static_cast<std::size_t>(i), y);
            if (!moves_ || last_[static_cast<std::size_t>(i)] >= 0)
                env[static_cast<std::size_t>(i)] = std::move(y);
        }
    }

    void run_block(int number, Env& env, bool outermost) {
        const Block& block = program_.blocks[static_cast<std::size_t>(number)];
        const Boundary boundary = boundary_of(program_, block);
        if (boundary.outputs.empty()) return run(block.from, block.to, number, env);
        std::vector<int> passed;
        Env arguments, captured(env.size());
        for (std::size_t k = 0; k < boundary.inputs.size(); ++k) {
            const auto place = static_cast<std::size_t>(boundary.inputs[k]);
            if (block.capture >> (k % 64) & 1) {
                captured[place] = env[place];
            } else {
                passed.push_back(boundary.inputs[k]);
                arguments.push_back(env[place]);
            }
            if (ends_at(boundary.inputs[k], block.to - 1)) env[place] = {};
        }
        const auto f = [this, number, block, passed, captured, outputs = boundary.outputs](const Env& given) {
            Env inner = captured;
            for (std::size_t k = 0; k < given.size(); ++k)
                inner[static_cast<std::size_t>(passed[k])] = given[k];
            run(block.from, block.to, number, inner);
            Env results;
            for (const int place : outputs) results.push_back(inner[static_cast<std::size_t>(place)]);
            return results;
        };
        Env results;
        if (arguments.size() == 1 && boundary.outputs.size() == 1)
            results.push_back(checkpoint([f](const V& x) { return f({x})[0]; }, std::move(arguments[0])));
        else
            results = checkpoint(f, std::move(arguments));
        for (std::size_t k = 0; k < results.size(); ++k) {
            const auto place = static_cast<std::size_t>(boundary.outputs[k]);
            if (outermost) look(place, results[k]);
            env[place] = std::move(results[k]);
        }
    }

    void act(int i, const Step& step, Env& x, const Env& env) {
        if (step.op == Op::zero_grad) return x[0].zero_grad();
        if (step.op == Op::free_grad) return x[0].free_grad();
        const Array<S> seed = step.numbers.empty()
                                  ? Array<S>()
                                  : array(Extents(x[0].shape().begin(), x[0].shape().end()), step.numbers);
        if (step.op == Op::grad) {
            const V y = std::move(x[0]);
            x.erase(x.begin());
            const std::vector<Array<S>> found = step.numbers.empty() ? grad(y, x) : grad(y, seed, x);
            for (std::size_t k = 0; k < found.size(); ++k)
                outcome_.gradients.push_back({i, step.in[k + 1], numbers(found[k])});
            return;
        }
        step.numbers.empty() ? x[0].backward() : x[0].backward(seed);
        for (int leaf = 0; leaf < i; ++leaf) {
            const Step& made = program_.steps[static_cast<std::size_t>(leaf)];
            if (made.removed || made.op != Op::parameter) continue;
            const V& p = env[static_cast<std::size_t>(leaf)];
            outcome_.gradients.push_back({i, leaf, {}});
            if (p.has_grad()) outcome_.gradients.back().gradient = numbers(p.grad());
        }
    }

    static V result(const Step& step, Loss<Array<S>> loss) {
        return step.first ? loss.mean() : std::move(loss.sum);
    }

    static V custom_of(const Step& step, Env& x) {
        if (step.op == Op::custom_give)
            return custom(
                "cube",
                [](const Array<S>& a) {
                    std::vector<S> y = a.to_vector();
                    for (S& v : y) v = v * v * v;
                    return Array<S>(a.shape(), y);
                },
                [](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>&, const Array<S>& a) {
                    std::vector<S> da = dy.to_vector();
                    for (std::size_t i = 0; i < da.size(); ++i) da[i] *= 3 * a.span()[i] * a.span()[i];
                    if (to.needs_grad(0)) to.add(0, Array<S>(a.shape(), da));
                },
                std::move(x[0]));
        return custom(
            "times_and_plus",
            [](const Array<S>& a, const Array<S>& b) {
                std::vector<S> y = a.to_vector();
                for (std::size_t i = 0; i < y.size(); ++i) y[i] = y[i] * b.span()[i] + y[i];
                return Array<S>(a.shape(), y);
            },
            [](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>&, const Array<S>& a,
               const Array<S>& b) {
                for (const std::size_t operand : {std::size_t{0}, std::size_t{1}}) {
                    if (!to.needs_grad(operand)) continue;
                    const Into<S[]> into = detail::grad_buffer(to.into(operand));
                    for (std::size_t i = 0; i < dy.size(); ++i) {
                        const S part = dy.span()[i] * (operand == 0 ? b.span()[i] + 1 : a.span()[i]);
                        into.dst[i] = into.how == Write::add ? into.dst[i] + part : part;
                    }
                }
            },
            std::move(x[0]), std::move(x[1]));
    }

    static V compute(const Step& step, Env x) {
        const double n = step.numbers.empty() ? 0 : step.numbers[0];
        const auto a = [&]() -> V { return std::move(x[0]); };
        const auto b = [&]() -> V { return std::move(x[1]); };
        const auto c = [&]() -> V { return std::move(x[2]); };
        const auto indices = [&] { return Array<std::int32_t>(Shape(step.shape), step.index); };
        const auto whole = [&](std::size_t i) { return step.whole[i]; };
        switch (step.op) {
            case Op::neg:
                return -a();
            case Op::exp:
                return exp(a());
            case Op::log:
                return log(a());
            case Op::sqrt:
                return sqrt(a());
            case Op::tanh:
                return tanh(a());
            case Op::sigmoid:
                return sigmoid(a());
            case Op::relu:
                return relu(a());
            case Op::gelu:
                return gelu(a());
            case Op::abs:
                return abs(a());
            case Op::sin:
                return sin(a());
            case Op::cos:
                return cos(a());
            case Op::add_number:
                return a() + n;
            case Op::number_add:
                return n + a();
            case Op::sub_number:
                return a() - n;
            case Op::number_sub:
                return n - a();
            case Op::mul_number:
                return a() * n;
            case Op::number_mul:
                return n * a();
            case Op::div_number:
                return a() / n;
            case Op::number_div:
                return n / a();
            case Op::pow_number:
                return pow(a(), n);
            case Op::clamp:
                return clamp(a(), n, step.numbers[1]);
            case Op::clamp_below:
                return clamp(a(), n);
            case Op::add:
                return a() + b();
            case Op::sub:
                return a() - b();
            case Op::mul:
                return a() * b();
            case Op::div:
                return a() / b();
            case Op::pow:
                return pow(a(), b());
            case Op::maximum:
                return maximum(a(), b());
            case Op::minimum:
                return minimum(a(), b());
            case Op::squared_difference:
                return detail::squared_difference(a(), b());
            case Op::where:
                return where(indices(), a(), b());
            case Op::sum:
                return sum(a(), step.whole, {.keepdims = step.first});
            case Op::mean:
                return mean(a(), step.whole, {.keepdims = step.first});
            case Op::max:
                return max(a(), step.whole, {.keepdims = step.first});
            case Op::logsumexp:
                return logsumexp(a(), step.whole, {.keepdims = step.first});
            case Op::softmax:
                return softmax(a(), whole(0));
            case Op::log_softmax:
                return log_softmax(a(), whole(0));
            case Op::reshape:
                return reshape(a(), step.whole);
            case Op::permute:
                return permute(a(), step.whole);
            case Op::transpose:
                return transpose(a(), whole(0), whole(1));
            case Op::broadcast_to:
                return broadcast_to(a(), Shape(step.whole));
            case Op::slice:
                return slice(a(), whole(0), whole(1), whole(2));
            case Op::concat:
                return concat<S>(std::move(x), whole(0));
            case Op::split:
                return split(x[0], whole(0))[static_cast<std::size_t>(whole(1))];
            case Op::rows:
                return rows(a(), indices());
            case Op::embedding:
                return step.first ? embedding(a(), indices(), whole(0)) : embedding(a(), indices());
            case Op::matmul:
                return matmul(a(), b(), {.transpose_a = step.first, .transpose_b = step.second});
            case Op::linear:
                return x.size() > 2 ? linear(a(), b(), c()) : linear(a(), b());
            case Op::linear_relu:
                return linear_relu(a(), b(), c());
            case Op::conv2d:
                return x.size() > 2 ? conv2d(a(), b(), c(), whole(0), whole(1))
                                    : conv2d(a(), b(), whole(0), whole(1));
            case Op::max_pool2d:
                return max_pool2d(a(), whole(0), whole(1));
            case Op::layer_norm:
                return layer_norm(a(), b(), c());
            case Op::batch_norm:
                return batch_norm(a(), b(), c()).y;
            case Op::batch_norm_running: {
                const auto half = static_cast<std::ptrdiff_t>(step.numbers.size() / 2);
                RunningStatistics<S> running(half);
                running.mean = array({half}, {step.numbers.begin(), step.numbers.begin() + half});
                running.variance = array({half}, {step.numbers.begin() + half, step.numbers.end()});
                return batch_norm(a(), b(), c(), running);
            }
            case Op::mse:
                return result(step, mse(a(), b()));
            case Op::binary_cross_entropy:
                return result(step, binary_cross_entropy(a(), b()));
            case Op::cross_entropy:
                return result(step,
                              cross_entropy(a(), indices(),
                                            {.ignore = static_cast<std::int32_t>(whole(0)), .smoothing = n}));
            case Op::info_nce:
                return result(step, info_nce(a(), b(), n));
            case Op::dropout:
                return dropout(a(), n,
                               detail::DropoutKey{static_cast<std::uint64_t>(whole(0)),
                                                  static_cast<std::uint64_t>(whole(1)),
                                                  static_cast<std::uint64_t>(whole(2))});
            case Op::detach:
                return x[0].detach();
            default:
                return custom_of(step, x);
        }
    }

    const Program& program_;
    bool moves_, blocks_;
    std::vector<int> last_;
    Outcome outcome_;
};

template <class S> Outcome run_as(const Program& program, Way way) {
    const std::int64_t nodes = Node::live_count();
    const auto bytes = static_cast<std::int64_t>(memory::in_use());
    Outcome outcome;
    try {
        outcome = Engine<S>(program, way).run();
    } catch (const Error& error) {
        outcome.error = error.what();
    }
    outcome.nodes_left = Node::live_count() - nodes;
    outcome.bytes_left = static_cast<std::int64_t>(memory::in_use()) - bytes;
    return outcome;
}

}  // namespace

Outcome run_engine(const Program& program, Way way) {
    return program.wide ? run_as<double>(program, way) : run_as<float>(program, way);
}

double objective(const Program& program) {
    Program wide = program;
    wide.wide = true;
    return Engine<double>(wide, Way::plain).objective();
}

}  // namespace programs
