// SmallTraining always computes the same bits, so that tests of Trainer can interrupt and resume it.
#pragma once

#include <memory>
#include <vector>

#include "autograd/support.hpp"
#include "tally/train/image_layers.hpp"
#include "tally/train/trainer.hpp"

namespace tally::test {

inline constexpr std::int64_t small_items = 22;

// A SmallTraining has dropout, batch norm, Adam, a schedule, a moving average and gradient clipping.
class SmallTraining {
public:
    struct Interrupted {};

    explicit SmallTraining(Trainer<double>::Options options, bool averages = true)
        : model(Linear<double>(4, 6, {1, 0}), BatchNorm<double>(6), Tanh<double>(), Dropout<double>(0.3, 7),
                Linear<double>(6, 3, {1, 1})),
          adam(model.parameters(), Adam<double>::Options{.learning_rate = 0.01}),
          average(model.parameters(), {.decay = 0.9}),
          trainer(model, adam, small_items, loss_of(), with_average(options, averages)) {}

    static Trainer<double>::Options options() {
        return {.per_device_batch_size = 4,
                .gradient_accumulation_steps = {{0, 3}, {2, 2}},
                .num_train_epochs = 4,
                .seed = 5,
                .max_grad_norm = 0.5,
                .schedule = Schedule::warm_up(3, Schedule::cosine(0.02, 20))};
    }

    Trainer<double>::LossFunction loss_of() {
        Random random(3);
        const Array<double> x = random.array<double>({small_items, 4});
        const Array<std::int32_t> labels = random.integers({small_items}, 0, 2);
        return [this, x, labels](const Items& items, ForwardPass& pass) {
            if (left-- == 0) throw Interrupted();
            return cross_entropy(model(constant(rows(x, items)), pass), rows(labels, items));
        };
    }

    // Returns the numbers in all parameters, buffers and averages.
    std::vector<double> numbers() {
        std::vector<double> all;
        const auto append = [&](const Array<double>& array) {
            for (const double number : array.to_vector()) all.push_back(number);
        };
        for (const detail::Member<double>& member : detail::members(model)) {
            if (member.parameter) append(member.parameter.value());
            if (member.buffer) append(*member.buffer);
            if (member.counter) all.push_back(member.counter->item());
        }
        for (std::size_t i = 0; i < model.parameters().size(); ++i) append(average.value(i));
        return all;
    }

    std::int64_t left = -1;  // after this many micro-batches the loss throws Interrupted; -1: never
    Sequential<double> model;
    Adam<double> adam;
    MovingAverage<double> average;
    Trainer<double> trainer;

private:
    Trainer<double>::Options with_average(Trainer<double>::Options options, bool averages) {
        if (averages) options.average = &average;
        return options;
    }
};

}  // namespace tally::test
