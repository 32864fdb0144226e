// One update of a multilayer perceptron: whole, in micro-batches, row by row; on one thread and on two.
#include <memory>
#include <string>

#include "bench/table/libtorch.hpp"
#include "bench/table/network_floor.hpp"
#include "bench/table/rows.hpp"
#include "tally.hpp"
#include "train.hpp"

namespace tally::bench {
namespace {

constexpr const char* floor_name = "GEMMs and loops";

class Network {
public:
    explicit Network(const Mlp& mlp)
        : mlp_(mlp),
          parameters_(made(mlp)),
          sgd_(parameters_, {.learning_rate = mlp.rate}),
          window_(sgd_, {.total = static_cast<double>(mlp.rows)}),
          pictures_({mlp.rows, mlp.sizes[0]}, mlp.pictures()),
          labels_({mlp.rows}, mlp.labels()) {}

    void update() {
        gradients();
        window_.finish();
    }
    Numbers numbers() {  // gradients, and weights after an update
        Numbers all;
        gradients();
        for (const Tensor& p : parameters_) all.push_back(doubles(p.grad().span()));
        window_.discard();
        update();
        for (const Tensor& p : parameters_) all.push_back(doubles(p.value().span()));
        return all;
    }

private:
    static std::vector<Tensor> made(const Mlp& mlp) {
        std::vector<Tensor> all;
        for (std::size_t i = 0; i < mlp.layers(); ++i) {
            all.push_back(parameter(Array<float>({mlp.sizes[i], mlp.sizes[i + 1]}, mlp.weight(i))));
            all.push_back(parameter(Array<float>({mlp.sizes[i + 1]}, mlp.bias(i))));
        }
        return all;
    }
    void gradients() {
        for (std::int64_t from = 0; from < mlp_.rows; from += mlp_.micro) {
            Tensor x = constant(pictures_.leading(from, from + mlp_.micro));
            for (std::size_t i = 0; i < mlp_.layers(); ++i)
                x = i + 1 < mlp_.layers()
                        ? linear_relu(std::move(x), parameters_[2 * i], parameters_[2 * i + 1])
                        : linear(std::move(x), parameters_[2 * i], parameters_[2 * i + 1]);
            window_.add(cross_entropy(std::move(x), labels_.leading(from, from + mlp_.micro)));
        }
    }

    Mlp mlp_;
    std::vector<Tensor> parameters_;
    Sgd<float> sgd_;
    Window<float> window_;
    Array<float> pictures_;
    Array<std::int32_t> labels_;
};

Planned planned(std::int64_t micro, int threads, std::vector<Goal> must, std::vector<Goal> aims) {
    const std::string cut = std::to_string(64 / micro) + "x" + std::to_string(micro);
    const std::string name = "mlp-" + cut + (threads > 1 ? "-threads-" + std::to_string(threads) : "");
    return {name, [=] {
                Row row = mlp_row({.micro = micro}, threads);
                row.name = name;
                row.title = "MLP 784-512-512-10, one update of 64 as " + cut +
                            (threads > 1 ? ", " + std::to_string(threads) + " threads" : "");
                row.must = must;
                row.aims = aims;
                return row;
            }};
}

}  // namespace

Row mlp_row(const Mlp& mlp, int threads) {
    const auto network = std::make_shared<Network>(mlp);
    const auto floor = std::make_shared<FloorNetwork>(mlp);
    Row row{
        "mlp",
        "",
        {{"tally", Role::tally, [network] { network->update(); }, [network] { return network->numbers(); }},
         {floor_name, Role::floor, [floor] { floor->update(); }, [floor] { return floor->numbers(); }}}};
    row.threads = threads;
    add_libtorch(row, mlp);
    return row;
}

std::vector<Planned> network_rows() {
    const auto floor = [](double times) { return Goal{Goal::at_most, times, floor_name}; };
    const auto faster = [](double times) { return Goal{Goal::faster, times, libtorch}; };
    return {
        planned(64, 1, {floor(1.04)}, {floor(1.01)}), planned(16, 1, {floor(1.06)}, {floor(1), faster(1.3)}),
        planned(1, 1, {faster(2.4)}, {faster(3.5)}),  planned(64, 2, {floor(1.1)}, {floor(1)}),
        planned(16, 2, {floor(1.1)}, {floor(1)}),     planned(1, 2, {floor(1.1)}, {floor(1)})};
}

}  // namespace tally::bench
