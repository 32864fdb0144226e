// Lesson 24: a schedule changes the number of micro-batches per update from epoch to epoch.
#include <unistd.h>
#include <filesystem>
#include <map>

#include "accumulate.hpp"
#include "course/kit/window_gradient.hpp"

using Steps = Trainer<real>::AccumulationSteps;

// Eight items x = 1 to 8 have the targets y = 2 x, so the correct value of the only weight w is 2.
static Tensor items() { return Array<real>({8}, {1, 2, 3, 4, 5, 6, 7, 8}, options().device); }
static Tensor loss_of(const Tensor& w, const Tensor& x) { return mse(w * x, 2 * x).mean(); }

// One training: every micro-batch has one item, so that an epoch has eight micro-batches.
struct Training {
    Tensor w = zeros({});
    Sgd<real> sgd;
    Accumulate<real> wrapped;

    Training(const Steps& steps, double momentum)
        : sgd({w}, {.learning_rate = 0.002, .momentum = momentum}), wrapped(sgd, steps, Reduction::mean) {}

    // Trains with the micro-batches [first, last), counted over all epochs. Returns the number of updates.
    int train(int first, int last) {
        int updates = 0;
        for (int micro = first; micro < last; ++micro) {
            if (micro % 8 == 0) wrapped.begin_epoch(micro / 8);
            loss_of(w, slice(items(), 0, micro % 8, micro % 8 + 1)).backward();
            updates += wrapped.step(1);
        }
        return updates;
    }
};

static std::string error_of(const std::map<std::int64_t, std::int64_t>& entries) {
    try {
        Steps{entries};
        return "no error";
    } catch (const Error& error) {
        return error.what();
    }
}

LESSON() {
    step("We have eight items: x = 1 to 8, targets y = 2 x. An epoch has eight micro-batches of one item.");
    note("A schedule sets N, the number of micro-batches per update, for each epoch:");
    code(1);
    const Steps schedule{{0, 8}, {4, 2}};
    note("N is 8 from epoch 0 on, and 2 from epoch 4 on. Epochs are counted from 0.");

    ask("epoch-three");
    Training training(schedule, 0);
    std::vector<double> losses{loss_of(training.w, items()).item()};
    std::vector<std::int64_t> steps, updates;
    for (const int epoch : {0, 1, 2, 3, 4}) {
        updates.push_back(training.train(8 * epoch, 8 * epoch + 8));
        steps.push_back(training.wrapped.window().planned_micro_batches());
        losses.push_back(loss_of(training.w, items()).item());
    }
    auto first = table({"epoch", "N", "updates", "loss before", "loss afterwards"});
    for (const std::size_t i : {0, 1, 2, 3}) first.row(i, steps[i], updates[i], losses[i], losses[i + 1]);

    ask("epoch-four");
    auto last = table({"epoch", "N", "updates", "loss before", "loss afterwards"});
    for (const std::size_t i : {3, 4}) last.row(i, steps[i], updates[i], losses[i], losses[i + 1]);
    check_equal("N in each epoch", steps, {8, 8, 8, 8, 2});
    check_equal("updates in each epoch", updates, {1, 1, 1, 1, 4});
    note("Epoch 3 multiplies the loss by {}, and epoch 4 by {}.", short_number(losses[4] / losses[3]),
         short_number(losses[5] / losses[4]));

    ask("before-the-first");
    const Steps late{{4, 2}};
    auto looked_up = table({"epoch", "N"});
    for (const int epoch : {0, 3, 4, 5}) looked_up.row(epoch, late.at(epoch));
    check_equal("N before and from epoch 4 on", {late.at(3), late.at(4)}, {1, 2});

    step("Here are four wrong schedules. tally rejects each of them before any training begins.");
    const std::vector<std::pair<std::string, std::string>> errors{{"{}", error_of({})},
                                                                  {"{{0, 0}}", error_of({{0, 0}})},
                                                                  {"{{0, -4}}", error_of({{0, -4}})},
                                                                  {"{{-1, 8}}", error_of({{-1, 8}})}};
    for (const auto& [entries, error] : errors) show(entries, error);
    for (const auto& [entries, error] : errors)
        check(say("{} is an error", entries), error.starts_with("[accumulate]"));

    step("Now train with momentum 0.9. The training stops in epoch 2, after 5 of 8 micro-batches.");
    note("A file stores w, the momentum, w.grad and how many micro-batches this update (the window) has:");
    Training whole(schedule, 0.9), stopped(schedule, 0.9), resumed(schedule, 0.9);
    whole.train(0, 40);
    stopped.train(0, 21);
    const auto file = std::filesystem::temp_directory_path() / say("tally-lesson-{}.state", ::getpid());
    TrainingState state;
    code(2);
    stopped.wrapped.window().save(state, "training");
    state.save(file.string());
    show("micro-batches in the window", stopped.wrapped.window().micro_batches(), "w.grad", stopped.w.grad());
    show("w", stopped.w);
    note("In PyTorch, neither the model's nor the optimizer's state_dict() contains w.grad.");

    ask("without-the-gradient");
    code(1);
    resumed.wrapped.window().load(TrainingState::load(file.string()), "training");
    std::filesystem::remove(file);
    resumed.train(21, 40);
    stopped.wrapped.window().discard();  // forgets w.grad and the count, as a file without both does
    stopped.train(21, 40);
    auto ends = table({"after epoch 4", "updates", "w"});
    ends.row("never stopped", whole.wrapped.window().updates(), whole.w);
    ends.row("resumed from the file", resumed.wrapped.window().updates(), resumed.w);
    ends.row("resumed without w.grad", stopped.wrapped.window().updates(), stopped.w);
    check_equal("resumed from the file: the same bits", resumed.w, whole.w);
    check("resumed without w.grad: another w", !same_bits(stopped.w, whole.w));
}
