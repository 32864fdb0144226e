// Runs a program with LibTorch, if LibTorch is installed, as a third independent check.
#include <torch/torch.h>

#include <limits>
#include <optional>
#include <utility>

#include "programs/outcome.hpp"

namespace programs {

namespace {

using torch::Tensor;
using Env = std::vector<Tensor>;
namespace F = torch::nn::functional;

class Peer {
public:
    explicit Peer(const Program& program)
        : program_(program), type_(program.wide ? torch::kFloat64 : torch::kFloat32) {
        outcome_.values.resize(program.steps.size());
        outcome_.shapes.resize(program.steps.size());
    }

    Outcome run() {
        Env env(program_.steps.size());
        for (std::size_t i = 0; i < env.size(); ++i) {
            const Step& step = program_.steps[i];
            if (step.removed) continue;
            if (is_leaf(step.op)) {
                env[i] = tensor(step.shape, step.numbers).set_requires_grad(step.op == Op::parameter);
            } else if (is_act(step.op)) {
                act(static_cast<int>(i), step, env);
                continue;
            } else {
                Env x;
                for (const int place : step.in) x.push_back(env[static_cast<std::size_t>(place)]);
                if (step.no_grad) {
                    const torch::NoGradGuard off;
                    env[i] = compute(step, x);
                } else {
                    env[i] = compute(step, x);
                }
            }
            outcome_.values[i] = numbers(env[i]);
            outcome_.shapes[i] = env[i].sizes().vec();
        }
        return std::move(outcome_);
    }

private:
    Tensor tensor(const Extents& shape, const std::vector<double>& numbers) const {
        return torch::tensor(numbers, torch::kFloat64).reshape(shape).to(type_).clone();
    }
    static std::vector<double> numbers(const Tensor& t) {
        const Tensor wide = t.detach().to(torch::kFloat64).contiguous();
        return {wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel()};
    }
    static Tensor indices(const Step& step) {
        return torch::tensor(std::vector<std::int64_t>(step.index.begin(), step.index.end()), torch::kInt64)
            .reshape(step.shape);
    }

    void act(int i, const Step& step, Env& env) {
        const auto at = [&](int place) -> Tensor& { return env[static_cast<std::size_t>(place)]; };
        Tensor& first = at(step.in[0]);
        if (step.op == Op::zero_grad || step.op == Op::free_grad) {
            first.mutable_grad() = Tensor();
            return;
        }
        const Tensor seed =
            step.numbers.empty() ? torch::ones_like(first) : tensor(first.sizes().vec(), step.numbers);
        if (step.op == Op::grad) {
            Env xs;
            for (std::size_t k = 1; k < step.in.size(); ++k) xs.push_back(at(step.in[k]));
            const auto found = torch::autograd::grad({first}, xs, {seed}, true, false, true);
            for (std::size_t k = 0; k < found.size(); ++k)
                outcome_.gradients.push_back(
                    {i, step.in[k + 1], numbers(found[k].defined() ? found[k] : torch::zeros_like(xs[k]))});
            return;
        }
        first.backward(seed, true);
        for (int leaf = 0; leaf < i; ++leaf) {
            const Step& made = program_.steps[static_cast<std::size_t>(leaf)];
            if (made.removed || made.op != Op::parameter) continue;
            outcome_.gradients.push_back({i, leaf, {}});
            if (at(leaf).grad().defined()) outcome_.gradients.back().gradient = numbers(at(leaf).grad());
        }
    }

    static Tensor loss(const Step& step, const Tensor& sum, double count) {
        return step.first ? sum / count : sum;
    }

    // Flattens images to (items, features, space) in contiguous memory, because LibTorch 1.13 computes wrong
    // gradients for transposed views. LibTorch's gelu also fails.
    static Tensor normalised(const Tensor& x, const Tensor& gain, const Tensor& bias) {
        TORCH_CHECK(x.numel(), "batch_norm of an empty tensor");
        const Tensor flat = x.reshape({x.size(0), x.size(1), -1}).contiguous();
        return torch::batch_norm(flat, gain.contiguous(), bias.contiguous(), {}, {}, true, 0.1, 1e-5, false)
            .reshape(x.sizes());
    }

    Tensor compute(const Step& step, const Env& x) const {
        const double n = step.numbers.empty() ? 0 : step.numbers[0];
        const Tensor& a = x[0];
        const Tensor b = x.size() > 1 ? x[1] : Tensor(), c = x.size() > 2 ? x[2] : Tensor();
        const auto transposed = [](const Tensor& t, bool yes) { return yes ? t.transpose(-1, -2) : t; };
        const auto axes = [&] {
            if (!step.whole.empty()) return step.whole;
            std::vector<std::int64_t> all;
            for (std::int64_t axis = 0; axis < a.dim(); ++axis) all.push_back(axis);
            return all;
        };
        switch (step.op) {
            case Op::neg:
                return -a;
            case Op::exp:
                return a.exp();
            case Op::log:
                return a.log();
            case Op::sqrt:
                return a.sqrt();
            case Op::tanh:
                return a.tanh();
            case Op::sigmoid:
                return a.sigmoid();
            case Op::relu:
                return a.relu();
            case Op::gelu:
                return a * 0.5 * (1 + torch::erf(a * 0.70710678118654752440));  // see normalised()
            case Op::abs:
                return a.abs();
            case Op::sin:
                return a.sin();
            case Op::cos:
                return a.cos();
            case Op::add_number:
            case Op::number_add:
                return a + n;
            case Op::sub_number:
                return a - n;
            case Op::number_sub:
                return n - a;
            case Op::mul_number:
            case Op::number_mul:
                return a * n;
            case Op::div_number:
                return a / n;
            case Op::number_div:
                return n / a;
            case Op::pow_number:
                return a.pow(n);
            case Op::clamp:
                return a.clamp(n, step.numbers[1]);
            case Op::clamp_below:
                return a.clamp_min(n);
            case Op::add:
                return a + b;
            case Op::sub:
                return a - b;
            case Op::mul:
                return a * b;
            case Op::div:
                return a / b;
            case Op::pow:
                return a.pow(b);
            case Op::maximum:
                return torch::maximum(a, b);
            case Op::minimum:
                return torch::minimum(a, b);
            case Op::squared_difference:
                return (a - b).square();
            case Op::where:
                return torch::where(indices(step) != 0, a, b);
            case Op::sum:
                return a.dim() ? a.sum(axes(), step.first) : a.clone();
            case Op::mean:
                return a.dim() ? a.mean(axes(), step.first) : a.clone();
            case Op::max:
                return a.dim() ? a.amax(axes(), step.first) : a.clone();
            case Op::logsumexp:
                return a.dim() ? a.logsumexp(axes(), step.first) : a.clone();
            case Op::softmax:
                return a.softmax(step.whole[0]);
            case Op::log_softmax:
                return a.log_softmax(step.whole[0]);
            case Op::reshape:
                return a.reshape(step.whole);
            case Op::permute:
                return a.permute(step.whole);
            case Op::transpose:
                return a.transpose(step.whole[0], step.whole[1]);
            case Op::broadcast_to:
                return a.broadcast_to(step.whole);
            case Op::slice:
                return a.narrow(step.whole[0], step.whole[1], step.whole[2] - step.whole[1]);
            case Op::concat:
                return torch::cat(x, step.whole[0]);
            case Op::split:
                return a.split(step.whole[0])[static_cast<std::size_t>(step.whole[1])];
            case Op::rows:
                return a.index_select(0, indices(step));
            case Op::embedding: {  // by index_select, because torch's embedding requires two axes
                const Tensor index = indices(step).reshape({-1});
                Tensor y = a.index_select(0, index);
                if (step.first) {
                    const std::int64_t padding = (step.whole[0] + a.size(0)) % a.size(0);
                    std::vector<std::int64_t> extents(static_cast<std::size_t>(y.dim()), 1);
                    extents[0] = -1;
                    if (index.numel()) y = torch::where((index == padding).reshape(extents), y.detach(), y);
                }
                std::vector<std::int64_t> extents = step.shape;
                extents.insert(extents.end(), a.sizes().begin() + 1, a.sizes().end());
                return y.reshape(extents);
            }
            case Op::matmul:
                return torch::matmul(transposed(a, step.first), transposed(b, step.second));
            case Op::linear:
                return x.size() > 2 ? torch::matmul(a, b) + c : torch::matmul(a, b);
            case Op::linear_relu:
                return (torch::matmul(a, b) + c).relu();
            case Op::conv2d:
                TORCH_CHECK(a.numel() && b.numel(), "conv2d of an empty tensor");
                return torch::conv2d(a, b, c, step.whole[0], step.whole[1]);
            case Op::max_pool2d:
                TORCH_CHECK(a.numel(), "max_pool2d of an empty tensor");
                return torch::max_pool2d(a, step.whole[0], step.whole[1] ? step.whole[1] : step.whole[0]);
            case Op::layer_norm:
                return torch::layer_norm(a, {a.size(-1)}, b, c, 1e-5);
            case Op::batch_norm:
                return normalised(a, b, c);
            case Op::batch_norm_running: {
                const auto half = static_cast<std::ptrdiff_t>(step.numbers.size() / 2);
                Extents features(static_cast<std::size_t>(a.dim()), 1);
                features[1] = half;
                const auto broadcast = [&](const Tensor& t) { return t.reshape(features); };
                const Tensor mean = tensor({half}, {step.numbers.begin(), step.numbers.begin() + half});
                const Tensor variance = tensor({half}, {step.numbers.begin() + half, step.numbers.end()});
                // torch::batch_norm computes x * scale + shift, which loses digits by cancellation.
                return (a - broadcast(mean)) / broadcast((variance + 1e-5).sqrt()) * broadcast(b) +
                       broadcast(c);
            }
            case Op::mse:
                return torch::mse_loss(a, b, step.first ? at::Reduction::Mean : at::Reduction::Sum);
            case Op::binary_cross_entropy:
                return torch::binary_cross_entropy(a, b, {},
                                                   step.first ? at::Reduction::Mean : at::Reduction::Sum);
            case Op::cross_entropy: {
                double count = 0;
                for (const std::int32_t label : step.index) count += label != step.whole[0];
                return loss(
                    step,
                    torch::cross_entropy_loss(a, indices(step), {}, at::Reduction::Sum, step.whole[0], n),
                    count);
            }
            case Op::info_nce:
                return loss(step,
                            torch::cross_entropy_loss(torch::matmul(a, b.t()) / n,
                                                      torch::arange(a.size(0), torch::kInt64), {},
                                                      at::Reduction::Sum),
                            static_cast<double>(a.size(0)));
            case Op::dropout:
                return a * tensor(a.sizes().vec(), dropout_factors(step, a.sizes().vec()));
            case Op::detach:
                return a.detach();
            case Op::custom_give:
                return a * a * a;
            case Op::custom_into:
                return a * b + a;
            default:
                throw Invalid("no such operation");
        }
    }

    const Program& program_;
    torch::ScalarType type_;
    Outcome outcome_;
};

}  // namespace

bool peer_is_there() { return true; }

Outcome run_peer(const Program& program) {
    static const bool one_thread = (torch::set_num_threads(1), true);
    static_cast<void>(one_thread);
    try {
        return Peer(program).run();
    } catch (const c10::Error& error) {
        Outcome outcome;
        outcome.error = error.what_without_backtrace();
        return outcome;
    }
}

}  // namespace programs
