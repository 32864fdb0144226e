// Makes the rows that train a multilayer perceptron for one update, and a row that trains the epoch of lesson
// 16. The update uses the whole batch, micro-batches or single rows, on one thread or on two threads.
#include <memory>
#include <string>

#include "bench/table/frameworks.hpp"
#include "bench/table/libtorch.hpp"
#include "bench/table/network_floor.hpp"
#include "bench/table/rows.hpp"
#include "bench/table/vectors.hpp"
#include "course/data/fashion.hpp"
#include "tally/tally.hpp"
#include "tally/train.hpp"

namespace tally::bench {
namespace {

constexpr const char* floor_name = "GEMMs and loops";
constexpr const char* by_blas = "tally, OpenBLAS";  // with Products::blas

// Holds the network, the network's optimizer and a Window.
class Network {
public:
    explicit Network(const Mlp& mlp)
        : parameters_(made(mlp)),
          sgd_(parameters_, {.learning_rate = mlp.rate}),
          window_(sgd_, {.total = static_cast<double>(mlp.rows)}) {}

    void add(const Array<float>& pictures, const Array<std::int32_t>& labels) {
        Tensor x = constant(pictures);
        for (std::size_t i = 0; i < parameters_.size(); i += 2)
            x = i + 2 < parameters_.size() ? linear_relu(std::move(x), parameters_[i], parameters_[i + 1])
                                           : linear(std::move(x), parameters_[i], parameters_[i + 1]);
        window_.add(cross_entropy(std::move(x), labels));
    }
    Window<float>& window() { return window_; }
    Numbers gradients() const {
        Numbers all;
        for (const Tensor& p : parameters_)  // without grad(), after which the window would not defer rows
            if (p.has_grad()) all.push_back(doubles(p.node()->gradient.span()));
        return all;
    }
    Numbers weights() const {
        Numbers all;
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

    std::vector<Tensor> parameters_;
    Sgd<float> sgd_;
    Window<float> window_;
};

// Repeats the update with the same pictures.
class Update {
public:
    explicit Update(const Mlp& mlp)
        : mlp_(mlp),
          network_(mlp),
          pictures_({mlp.rows, mlp.sizes[0]}, mlp.pictures()),
          labels_({mlp.rows}, mlp.labels()) {}

    void run() {
        gradients();
        network_.window().finish();
    }
    Numbers numbers() {  // gradients, and weights after an update
        gradients();
        Numbers all = network_.gradients();
        network_.window().discard();
        run();
        for (const std::vector<double>& weights : network_.weights()) all.push_back(weights);
        return all;
    }

private:
    void gradients() {
        for (std::int64_t from = 0; from < mlp_.rows; from += mlp_.micro)
            network_.add(pictures_.slice_rows(from, from + mlp_.micro),
                         labels_.slice_rows(from, from + mlp_.micro));
    }

    Mlp mlp_;
    Network network_;
    Array<float> pictures_;
    Array<std::int32_t> labels_;
};

auto with_blas(Update& update, auto(Update::*what)()) {
    struct Back {
        Products before = products();
        ~Back() { set_products(before); }
    } const back;
    set_products(Products::blas);
    return (update.*what)();
}

// Returns by how much an epoch changes the weights.
Numbers moved(const Numbers& from, Numbers to) {
    for (std::size_t i = 0; i < to.size(); ++i)
        for (std::size_t j = 0; j < to[i].size(); ++j) to[i][j] -= from[i][j];
    return to;
}

// Runs an epoch as in lesson 22, without shuffling. Makes one update for each 64 pictures, and one update for
// the last 32 pictures. The next epoch continues from the state after this epoch.
Row epoch_row(std::int64_t count) {
    const Mlp mlp{.micro = 16};
    const Pictures<float> data = generated_pictures<float>(count, 1);
    const auto network = std::make_shared<Network>(mlp);
    const auto by_tally = [=, parts = split(Items::in_order(count), mlp.micro)] {
        Window<float>& window = network->window();
        for (const Items& part : parts) {
            network->add(rows(data.images, part), rows(data.labels, part));
            if (window.micro_batches() * mlp.micro == mlp.rows) window.finish();
        }
        if (window.micro_batches() > 0) window.flush();
    };
    const auto floor = std::make_shared<FloorNetwork>(mlp);
    const auto by_floor = [=] { floor->epoch(data.images.data(), data.labels.data(), count); };

    Row row{"epoch",
            "an epoch of lesson 22: " + std::to_string(count) + " pictures, updates of 64 as 4x16",
            {{"tally", Role::tally, by_tally,
              [=] {
                  const Numbers start = network->weights();
                  by_tally();
                  return moved(start, network->weights());
              }},
             {floor_name, Role::floor, by_floor, [=] {
                  const Numbers start = floor->weights();
                  by_floor();
                  return moved(start, floor->weights());
              }}}};
    Description epoch_work = description(mlp);
    epoch_work.kind = "epoch";
    epoch_work.arrays.back() = {{count, mlp.sizes[0]}, data.images.to_vector()};
    epoch_work.labels = data.labels.to_vector();
    epoch_work.answers.resize(epoch_work.answers.size() / 2);  // only the change of the weights
    add_framework(row, jax, epoch_work);
    row.tolerance = 1e-3;  // because rounding errors of 938 updates change the sign of some inputs of a ReLU
    row.rounds = 11;       // each round takes seconds
    return row;
}

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
    const auto update = std::make_shared<Update>(mlp);
    const auto floor = std::make_shared<FloorNetwork>(mlp);
    Row row{"mlp",
            "",
            {{"tally", Role::tally, [update] { update->run(); }, [update] { return update->numbers(); }},
             {floor_name, Role::floor, [floor] { floor->update(); }, [floor] { return floor->numbers(); }}}};
    row.threads = threads;
    const auto theirs = std::make_shared<Update>(mlp);
    row.sides.push_back({by_blas, Role::floor, [=] { with_blas(*theirs, &Update::run); },
                         [=] { return with_blas(*theirs, &Update::numbers); }});
    add_libtorch(row, mlp);
    add_frameworks(row, description(mlp));
    return row;
}

std::vector<Planned> network_rows() {
    const auto floor = [](double times) { return Goal{Goal::at_most, times, floor_name}; };
    const auto faster = [](double times, const char* peer = libtorch) {
        return Goal{Goal::faster, times, peer};
    };
    const Goal promise{Goal::at_most, 1.05, by_blas}, free_promise{Goal::at_most, 1, by_blas};
    const Planned epoch{"epoch",
                        [=] {
                            Row row = epoch_row(60000);
                            row.must = {floor(1.06), faster(1.1, jax)};
                            row.aims = {floor(1), faster(1.3, jax)};
                            return row;
                        },
                        true};
    return {planned(64, 1, {floor(by_vectors(1.04, 1.02)), promise, faster(1, jax)},
                    {floor(1.01), free_promise, faster(1.15, jax)}),
            planned(16, 1, {floor(by_vectors(1.06, 1.02)), promise, faster(1.1, jax)},
                    {floor(1), free_promise, faster(1.3), faster(1.3, jax)}),
            planned(4, 1, {}, {}),
            planned(1, 1, {faster(2.4), faster(1.5, jax)}, {faster(3.5), faster(2, jax)}),
            planned(64, 2, {floor(by_vectors(1.1, 1.05)), faster(1, jax)}, {floor(1), faster(1.2, jax)}),
            planned(16, 2, {floor(by_vectors(1.1, 1.05)), faster(1, jax)}, {floor(1), faster(1.2, jax)}),
            planned(1, 2, {floor(1.1)}, {floor(1)}),
            epoch};
}

}  // namespace tally::bench
