// Measures LibTorch's memory for rows of the table, with an allocator that counts bytes.
#include <c10/core/CPUAllocator.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "bench/table/libtorch.hpp"

namespace tally::bench {
namespace {

class CountingAllocator final : public c10::Allocator {
public:
    static CountingAllocator& instance() {
        static CountingAllocator one;
        return one;
    }
    c10::DataPtr allocate(std::size_t bytes) const override {
        const std::size_t rounded = (bytes + 63) / 64 * 64;
        auto* const block = static_cast<std::byte*>(std::aligned_alloc(64, rounded + 64));
        *reinterpret_cast<std::size_t*>(block) = rounded;
        in_use += rounded;
        most = std::max(most, in_use);
        return {block + 64, block, &give_back, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &give_back; }

    static inline std::size_t in_use = 0, most = 0;

private:
    static void give_back(void* block) {
        in_use -= *static_cast<std::size_t*>(block);
        std::free(block);
    }
};

class DeepModel {
public:
    explicit DeepModel(const Deep& deep) : deep_(deep) {
        c10::SetCPUAllocator(&CountingAllocator::instance(), 1);
        for (std::size_t i = 0; i < deep.layers; ++i) {
            parameters_.push_back(parameter(deep.weight(i), {deep.width, deep.width}));
            parameters_.push_back(parameter(deep.bias(i), {deep.width}));
        }
        data_ = torch::tensor(deep.data()).reshape({deep.batch, deep.width}).clone();
        if (deep_.segments.empty()) deep_.segments = {deep.layers};
    }
    void run() {
        for (torch::Tensor& p : parameters_)
            if (p.grad().defined()) p.grad().zero_();
        for (std::int64_t from = 0; from < deep_.batch; from += deep_.rows) {
            torch::Tensor x = data_.narrow(0, from, deep_.rows);
            std::size_t layer = 0;
            for (std::size_t i = 0; i < deep_.segments.size(); layer += deep_.segments[i++]) {
                const std::size_t end = layer + deep_.segments[i];
                x = i + 1 < deep_.segments.size()
                        ? Checkpoint::apply(x, this, static_cast<std::int64_t>(layer),
                                            static_cast<std::int64_t>(end), parameters_[0])
                        : layers(x, layer, end);
            }
            (x.sum() / static_cast<double>(deep_.batch)).backward();
        }
    }
    double mebibytes() {
        run();
        const std::size_t before = CountingAllocator::in_use;
        CountingAllocator::most = before;
        run();
        return static_cast<double>(CountingAllocator::most - before) / (1 << 20);
    }
    Numbers numbers() {
        run();
        Numbers all;
        for (const torch::Tensor& p : parameters_)
            all.emplace_back(p.grad().data_ptr<float>(), p.grad().data_ptr<float>() + p.grad().numel());
        return all;
    }

private:
    static torch::Tensor parameter(const std::vector<float>& values, std::vector<std::int64_t> shape) {
        return torch::tensor(values).reshape(shape).clone().set_requires_grad(true);
    }
    torch::Tensor layers(torch::Tensor x, std::size_t from, std::size_t to) const {
        for (; from < to; ++from)
            x = torch::relu(torch::addmm(parameters_[2 * from + 1], x, parameters_[2 * from]));
        return x;
    }

    // Works like torch.utils.checkpoint with use_reentrant=True. The last argument of forward() is a
    // parameter, because LibTorch records a function only if an argument requires a gradient.
    struct Checkpoint : torch::autograd::Function<Checkpoint> {
        static torch::Tensor forward(torch::autograd::AutogradContext* context, torch::Tensor x,
                                     DeepModel* model, std::int64_t from, std::int64_t to, torch::Tensor) {
            context->save_for_backward({x});
            context->saved_data["model"] = reinterpret_cast<std::int64_t>(model);
            context->saved_data["from"] = from;
            context->saved_data["to"] = to;
            const torch::NoGradGuard off;
            return model->layers(x, static_cast<std::size_t>(from), static_cast<std::size_t>(to));
        }
        static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                       const torch::autograd::variable_list& gradients) {
            const auto* model = reinterpret_cast<DeepModel*>(context->saved_data["model"].toInt());
            torch::Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
            {
                const torch::AutoGradMode on(true);
                const torch::Tensor y =
                    model->layers(x, static_cast<std::size_t>(context->saved_data["from"].toInt()),
                                  static_cast<std::size_t>(context->saved_data["to"].toInt()));
                torch::autograd::backward({y}, {gradients[0]});
            }
            return {x.grad(), {}, {}, {}, {}};
        }
    };

    Deep deep_;
    std::vector<torch::Tensor> parameters_;
    torch::Tensor data_;
};

}  // namespace

void add_libtorch(Row& row, const Deep& deep) {
    const auto model = std::make_shared<DeepModel>(deep);
    const double mebibytes = model->mebibytes();
    const std::string segments =
        deep.segments.size() > 1 ? " in " + std::to_string(deep.segments.size()) + " segments" : "";
    row.sides.push_back({libtorch + segments, Role::peer, [model] { model->run(); },
                         [model] { return model->numbers(); }, mebibytes});
}

}  // namespace tally::bench
