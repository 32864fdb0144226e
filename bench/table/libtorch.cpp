// Adds LibTorch to the rows of the table. Each program is in the shortest style that is usual for LibTorch.
#include "bench/table/libtorch.hpp"

#include <torch/torch.h>

#include <memory>

namespace tally::bench {
namespace {

using torch::Tensor;
using Shape = std::vector<std::int64_t>;

Tensor tensor(const std::vector<float>& values, const Shape& shape) {
    return torch::tensor(values).reshape(shape).clone();
}
Tensor parameter(const std::vector<float>& values, const Shape& shape) {
    return tensor(values, shape).set_requires_grad(true);
}
void forget(Tensor& parameter) { parameter.mutable_grad() = Tensor(); }

std::vector<double> numbers_of(const Tensor& t) {
    const Tensor wide = t.detach().to(torch::kFloat64).contiguous();
    return {wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel()};
}

// Adds LibTorch to the row. race() compares LibTorch's gradients of `parameters` with tally's gradients.
void add(Row& row, std::vector<Tensor> parameters, std::function<void()> run) {
    row.sides.push_back({libtorch, Role::peer, run, [parameters, run] {
                             run();
                             Numbers all;
                             for (const Tensor& p : parameters) all.push_back(numbers_of(p.grad()));
                             return all;
                         }});
}

struct Network {
    Mlp mlp;
    std::vector<Tensor> parameters;
    Tensor pictures, labels;

    explicit Network(const Mlp& given) : mlp(given) {
        for (std::size_t i = 0; i < mlp.layers(); ++i) {
            parameters.push_back(parameter(mlp.weight(i), {mlp.sizes[i], mlp.sizes[i + 1]}));
            parameters.push_back(parameter(mlp.bias(i), {mlp.sizes[i + 1]}));
        }
        pictures = tensor(mlp.pictures(), {mlp.rows, mlp.sizes[0]});
        labels = torch::tensor(mlp.labels()).to(torch::kInt64);
    }
    void gradients() {
        for (Tensor& p : parameters) forget(p);
        for (std::int64_t from = 0; from < mlp.rows; from += mlp.micro) {
            Tensor x = pictures.narrow(0, from, mlp.micro);
            for (std::size_t i = 0; i < mlp.layers(); ++i) {
                x = torch::addmm(parameters[2 * i + 1], x, parameters[2 * i]);
                if (i + 1 < mlp.layers()) x = torch::relu(x);
            }
            const Tensor loss =
                torch::cross_entropy_loss(x, labels.narrow(0, from, mlp.micro), {}, at::Reduction::Sum);
            (loss / static_cast<double>(mlp.rows)).backward();
        }
    }
    void update() {
        gradients();
        const torch::NoGradGuard off;
        for (Tensor& p : parameters) p.add_(p.grad(), -mlp.rate);
    }
};

}  // namespace

std::string libtorch_version() { return TORCH_VERSION; }
void libtorch_threads(int threads) { torch::set_num_threads(threads); }

void add_libtorch(Row& row, const Toy& toy, std::int64_t micro) {
    const Tensor x = tensor(toy.x, {Toy::rows, Toy::columns});
    Tensor w = parameter(toy.w, {Toy::columns});
    if (micro == Toy::rows)
        add(row, {w}, [x, w]() mutable {
            forget(w);
            torch::matmul(x, w).mean().backward();
        });
    else
        add(row, {w}, [x, w, micro]() mutable {
            forget(w);
            for (const Tensor& part : x.split(micro))
                (torch::matmul(part, w).mean() / static_cast<double>(Toy::rows / micro)).backward();
        });
}

void add_libtorch(Row& row, const ElementwiseChain& chain) {
    const auto size = static_cast<std::int64_t>(chain.c.size());
    const Tensor c = tensor(chain.c, {size});
    Tensor start = parameter(chain.start, {size});
    add(row, {start}, [c, start, n = chain.operations / 2]() mutable {
        forget(start);
        Tensor y = start;
        for (int i = 0; i < n; ++i) y = y * c + c;
        y.sum().backward();
    });
}

void add_libtorch(Row& row, const ScalarNetwork& network) {
    std::vector<Tensor> weights;
    for (const double w : network.weights)
        weights.push_back(torch::tensor(w, torch::kFloat64).set_requires_grad(true));
    const std::function<void()> run = [weights, network]() mutable {
        for (Tensor& w : weights) forget(w);
        network(weights, torch::tensor(network.a, torch::kFloat64), torch::tensor(network.b, torch::kFloat64))
            .backward();
    };
    row.sides.push_back({libtorch, Role::peer, run, [weights, run] {
                             run();
                             std::vector<double> all;
                             for (const Tensor& w : weights) all.push_back(w.grad().item<double>());
                             return Numbers{all};
                         }});
}

void add_libtorch(Row& row, const Mlp& mlp) {
    const auto network = std::make_shared<Network>(mlp);
    row.sides.push_back({libtorch, Role::peer, [network] { network->update(); },
                         [network] {
                             network->gradients();
                             Numbers all;
                             for (const Tensor& p : network->parameters) all.push_back(numbers_of(p.grad()));
                             network->update();
                             for (const Tensor& p : network->parameters) all.push_back(numbers_of(p));
                             return all;
                         }});
}

void add_libtorch(Row& row, const Logits& logits) {
    Tensor x = parameter(logits.values(), {logits.rows, logits.classes});
    const Tensor labels = torch::tensor(logits.labels()).to(torch::kInt64);
    add(row, {x}, [x, labels]() mutable {
        forget(x);
        torch::cross_entropy_loss(x, labels).backward();
    });
}

void add_libtorch(Row& row, const Elementwise& work) {
    using Kind = Elementwise::Kind;
    const Shape shape{work.rows, work.columns};
    Tensor x = parameter(work.x(), shape);
    Tensor other = parameter(work.other(), work.kind == Kind::bias ? Shape{work.columns} : shape);
    const Tensor seed = tensor(work.seed(), work.kind == Kind::sum_down     ? Shape{work.columns}
                                            : work.kind == Kind::sum_across ? Shape{work.rows}
                                                                            : shape);
    const auto forward = [kind = work.kind](const Tensor& a, const Tensor& b) {
        switch (kind) {
            case Kind::relu:
                return torch::relu(a);
            case Kind::sum_down:
                return a.sum(0);
            case Kind::sum_across:
                return a.sum(1);
            default:
                return a + b;
        }
    };
    const bool two = work.kind == Kind::add || work.kind == Kind::bias;
    add(row, two ? std::vector<Tensor>{x, other} : std::vector<Tensor>{x},
        [x, other, seed, forward]() mutable {
            forget(x), forget(other);
            forward(x, other).backward(seed);
        });
}

}  // namespace tally::bench
