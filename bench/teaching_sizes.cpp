// Sizes at which one teaches: the toy, a chain of operations on three numbers, a network of scalars. Beside
// LibTorch where it is installed. What is timed is forward and backward together; the gradients are compared
// first.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/timing.hpp"
#include "tally.hpp"

#ifdef TALLY_WITH_TORCH
#include <torch/torch.h>
#endif

namespace {

using namespace tally;
using bench::Contestant;

const std::vector<float> toy_x = {0.375f, -1.25f, 0.5f,    -1.125f,  0.5f,     -0.875f,
                                  0.625f, 1.f,    -1.5f,   -0.25f,   -0.375f,  0.25f,
                                  -1.5f,  0.75f,  -0.625f, -0.2466f, -0.5010f, -1.4250f};
const std::vector<float> toy_w = {0.5f, -1.25f, 0.75f};

[[maybe_unused]] void agree(const char* what, double got, double expected, double bound = 1e-5) {
    if (std::abs(got - expected) <= bound * (1 + std::abs(expected))) return;
    std::printf("%s: tally says %.9g, the other %.9g\n", what, got, expected);
    std::exit(1);
}

// y = tanh layers of single numbers; every weight and every sum is a node of its own.
struct ScalarNetwork {
    std::vector<Scalar> weights;
    std::vector<int> sizes{2, 16, 16, 1};
    int operations = 0;
    ScalarNetwork() {
        for (std::size_t layer = 1; layer < sizes.size(); ++layer)
            for (int i = 0; i < (sizes[layer - 1] + 1) * sizes[layer]; ++i)
                weights.push_back(
                    parameter(random::uniform<double>(1, layer, static_cast<std::uint64_t>(i)) - 0.5));
        for (std::size_t layer = 1; layer < sizes.size(); ++layer)
            operations += (2 * sizes[layer - 1] + 1) * sizes[layer];
    }
    Scalar operator()(double a, double b) const {
        std::vector<Scalar> in{constant(a), constant(b)};
        std::size_t next = 0;
        for (std::size_t layer = 1; layer < sizes.size(); ++layer) {
            std::vector<Scalar> out;
            for (int j = 0; j < sizes[layer]; ++j) {
                Scalar sum = weights[next++];
                for (const Scalar& x : in) sum = std::move(sum) + weights[next++] * x;
                out.push_back(tanh(std::move(sum)));
            }
            in = std::move(out);
        }
        return in[0];
    }
};

}  // namespace

int main() {
    const Tensor x = constant(Array<float>({6, 3}, toy_x));
    const Tensor w = parameter(Array<float>({3}, toy_w));
    const auto full = [&] {
        w.zero_grad();
        mean(matmul(x, w)).backward();
    };
    const auto split_in_three = [&] {
        w.zero_grad();
        for (const Tensor& micro : split(x, 2)) (mean(matmul(micro, w)) / 3).backward();
    };
    const Tensor start = parameter({0.1f, 0.2f, 0.3f}), c = constant({0.9f, 1.1f, 1.0f});
    const auto chain = [&] {
        start.zero_grad();
        Tensor y = start;
        for (int i = 0; i < 50; ++i) y = std::move(y) * c + c;
        sum(std::move(y)).backward();
    };
    const ScalarNetwork network;
    const auto scalar_step = [&] {
        for (const Scalar& weight : network.weights) weight.zero_grad();
        network(0.3, -0.7).backward();
    };

    std::vector<Contestant> toy{{"tally", full, 10000}}, three{{"tally", split_in_three, 3000}},
        elementwise{{"tally", chain, 300, 100}},
        scalars{{"tally", scalar_step, 100, static_cast<double>(network.operations)}};

#ifdef TALLY_WITH_TORCH
    torch::set_num_threads(1);
    const auto tensor = [](std::vector<float> v, std::vector<std::int64_t> shape) {
        return torch::tensor(v).reshape(shape);
    };
    const torch::Tensor tx = tensor(toy_x, {6, 3}), tw = tensor(toy_w, {3}).set_requires_grad(true);
    const auto torch_full = [&] {
        tw.mutable_grad() = torch::Tensor();
        torch::matmul(tx, tw).mean().backward();
    };
    const auto torch_three = [&] {
        tw.mutable_grad() = torch::Tensor();
        for (const torch::Tensor& micro : tx.split(2)) (torch::matmul(micro, tw).mean() / 3).backward();
    };
    const torch::Tensor tstart = tensor({0.1f, 0.2f, 0.3f}, {3}).set_requires_grad(true),
                        tc = tensor({0.9f, 1.1f, 1.0f}, {3});
    const auto torch_chain = [&] {
        tstart.mutable_grad() = torch::Tensor();
        torch::Tensor y = tstart;
        for (int i = 0; i < 50; ++i) y = y * tc + tc;
        y.sum().backward();
    };
    std::vector<torch::Tensor> tweights;
    for (const Scalar& weight : network.weights)
        tweights.push_back(torch::tensor(weight.value(), torch::kFloat64).set_requires_grad(true));
    const auto torch_scalars = [&] {
        for (torch::Tensor& weight : tweights) weight.mutable_grad() = torch::Tensor();
        std::vector<torch::Tensor> in{torch::tensor(0.3, torch::kFloat64),
                                      torch::tensor(-0.7, torch::kFloat64)};
        std::size_t next = 0;
        for (std::size_t layer = 1; layer < network.sizes.size(); ++layer) {
            std::vector<torch::Tensor> out;
            for (int j = 0; j < network.sizes[layer]; ++j) {
                torch::Tensor sum = tweights[next++];
                for (const torch::Tensor& v : in) sum = sum + tweights[next++] * v;
                out.push_back(sum.tanh());
            }
            in = std::move(out);
        }
        in[0].backward();
    };
    toy.push_back({"LibTorch", torch_full, 50});
    three.push_back({"LibTorch", torch_three, 20});
    elementwise.push_back({"LibTorch", torch_chain, 5, 100});
    scalars.push_back({"LibTorch", torch_scalars, 1, static_cast<double>(network.operations)});

    full(), torch_full();
    for (int i = 0; i < 3; ++i)
        agree("toy", w.grad().span()[static_cast<std::size_t>(i)], tw.grad()[i].item<double>());
    split_in_three(), torch_three();
    for (int i = 0; i < 3; ++i)
        agree("toy in three", w.grad().span()[static_cast<std::size_t>(i)], tw.grad()[i].item<double>());
    chain(), torch_chain();
    for (int i = 0; i < 3; ++i)
        agree("chain", start.grad().span()[static_cast<std::size_t>(i)], tstart.grad()[i].item<double>());
    scalar_step(), torch_scalars();
    for (std::size_t i = 0; i < tweights.size(); ++i)
        agree("network", network.weights[i].grad(), tweights[i].grad().item<double>(), 1e-12);
#else
    std::printf("LibTorch is not here: tally alone. (apt-get install libtorch-dev)\n");
#endif

    bench::race("the toy: mean(X w), forward + backward", toy);
    bench::race("the toy in 3 micro-batches of 2, each / 3", three);
    bench::race("chain of 100 elementwise operations on 3 numbers, per operation", elementwise);
    bench::race("network of numbers 2-16-16-1, one sample, per operation", scalars);
}
