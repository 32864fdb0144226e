// Defines the published program of lesson 10, and a plan that fits data.
#pragma once

#include <functional>

#include "course/kit/window_gradient.hpp"

static constexpr int n = 4;  // micro-batches in a full window

struct Plan {
    std::int64_t items, each, weights;  // `each` items in a micro-batch
    int epochs;
    double rate;
    std::function<Loss<Array<real>>(const Items&, const Tensor&)> loss_of;  // of a micro-batch
};
struct Trained {
    std::vector<std::vector<double>> after = {};  // the weights at the end of each epoch
    std::int64_t updates = 0;
};

// The published program divides each loss by N, and makes an update at the end of an epoch, too.
static Trained by_listing(const Plan& plan) {
    const std::vector<Items> micros = split(Items::in_order(plan.items), plan.each);
    const Tensor w = zeros({plan.weights});
    Sgd sgd({w}, {.learning_rate = plan.rate});
    Trained trained;
    for (int epoch = 0; epoch < plan.epochs; ++epoch) {
        for (std::size_t batch = 0; batch < micros.size(); ++batch) {
            (plan.loss_of(micros[batch], w).mean() / n).backward();
            if ((batch + 1) % n != 0 && batch + 1 != micros.size()) continue;
            sgd.step();
            sgd.zero_grad();
            ++trained.updates;
        }
        trained.after.push_back(values(w));
    }
    return trained;
}

// Item i has three numbers between -2 and 2. Its target is their product with (1, -2, 3), plus an error.
static Plan plan_of_items(std::int64_t count) {
    std::vector<real> numbers, targets;
    for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t j = 0; j < 3; ++j) numbers.push_back(real((i * i * (j + 3) + 5 * i) % 17 - 8) / 4);
        const real* item = &numbers[numbers.size() - 3];
        targets.push_back(item[0] - 2 * item[1] + 3 * item[2] + real(5 * i % 7 - 3) / 4);
    }
    const Tensor x = Array<real>({count, 3}, numbers, options().device);
    const Tensor y = Array<real>({count}, targets, options().device);
    return {count, 2, 3, 5, 0.1, [x, y](const Items& micro, const Tensor& w) {
                const std::int64_t from = micro[0], to = from + micro.count();
                return mse(matmul(slice(x, 0, from, to), w), slice(y, 0, from, to));
            }};
}
