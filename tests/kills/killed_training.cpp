// kill.py runs this program. killed_training FOLDER VARIANT resumes from FOLDER/run.state and writes its
// weights.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "tally/core.hpp"
#include "tally/train.hpp"

using namespace tally;

namespace {

// Trains with batch norm, dropout, a moving average, a schedule and windows that continue in the next epoch.
void train(const std::string& folder, int variant) {
    using S = float;
    constexpr std::int64_t items = 203, features = 10, width = 48;
    const bool adam = variant % 2 == 0, checkpointed = variant % 3 == 2;
    const std::array tails{Tail::carry, Tail::scale, Tail::drop};

    const Array<S> x = randn<S>({items, features}, {.seed = 1, .stream = 1}).value();
    std::vector<std::int32_t> wanted;
    for (std::size_t i = 0; i < items; ++i) {
        const S* const row = x.span().data() + i * features;
        wanted.push_back(row[0] + row[1] > 0 ? 1 : row[2] > 0 ? 2 : 0);
    }
    const Array<std::int32_t> labels({items}, wanted);

    Sequential<S> model(Linear<S>(features, width, {1, 1}), BatchNorm<S>(width), ReLU<S>(),
                        Dropout<S>(0.3, 7), Linear<S>(width, width, {1, 2}), Tanh<S>(),
                        Linear<S>(width, 3, {1, 3}));
    std::unique_ptr<Optimizer<S>> optimizer;
    if (adam)
        optimizer = std::make_unique<AdamW<S>>(
            model.parameters(), AdamW<double>::Options{.learning_rate = 0.01, .weight_decay = 0.01});
    else
        optimizer = std::make_unique<Sgd<S>>(model.parameters(),
                                             Sgd<double>::Options{.learning_rate = 0.01, .momentum = 0.9});
    MovingAverage<S> average(model.parameters(), {.decay = 0.9, .bias_correction = adam});

    typename Trainer<S>::Options options{.per_device_batch_size = 9,
                                         .gradient_accumulation_steps = {{0, 4}, {3, 2}},
                                         .num_train_epochs = 8,
                                         .seed = 11,
                                         .max_grad_norm = 0.5,
                                         .schedule = Schedule::warm_up(5, Schedule::cosine(0.02, 60)),
                                         .average = &average,
                                         .tail = tails[static_cast<std::size_t>(variant) % tails.size()],
                                         .checkpoint = folder + "/run.state",
                                         .save_steps = 3,
                                         .save_micro_batches = variant % 4 == 3 ? 1 : 5,
                                         .metrics_csv = folder + "/run.csv",
                                         .metrics_jsonl = folder + "/run.jsonl",
                                         .loss_curve = folder + "/run.svg"};
    if (checkpointed) options.gradient_checkpointing = Checkpointing{};
    const auto loss = [&](const Items& some, ForwardPass& pass) {
        return cross_entropy(model(constant(rows(x, some)), pass), rows(labels, some));
    };
    Trainer<S>(model, *optimizer, items, loss, options).train();
    model.save_weights(folder + "/weights.safetensors");
    average.swap();
    model.save_weights(folder + "/average.safetensors");
}

}  // namespace

int main(int count, char** words) try {
    if (count != 3) throw Error("killed_training FOLDER VARIANT");
    train(words[1], std::atoi(words[2]));
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
