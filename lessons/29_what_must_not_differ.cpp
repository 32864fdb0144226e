// Lesson 29: a checkpoint runs a function twice, so both runs must compute the same values.
#include "tower.hpp"

LESSON() {
    const Tensor ones = parameter(Array<real>::full({8}, 1, options().device));
    const auto whole = [](const Numbers& numbers) {  // these numbers are whole
        return std::vector<int>(numbers.values.begin(), numbers.values.end());
    };

    step("Dropout sets values to 0 at random, here with probability 1/2, and doubles the others.");
    note("A mask says which values stay. The mask depends on a number.");
    note("This number is either the number of a layer, which is 7, or the value of a counter.");
    std::uint64_t counter = 6;
    const auto square_of_dropout = [](const Tensor& x, std::uint64_t number) {
        const Tensor h = dropout(x, 0.5, {.seed = 1, .stream = number});
        return h * h;  // backward needs h
    };
    code(2);
    const auto by_layer = [&](const Tensor& x) { return square_of_dropout(x, 7); };
    const auto by_counter = [&](const Tensor& x) { return square_of_dropout(x, ++counter); };
    show("x", whole(ones), "y without a checkpoint, and its gradient / 2", whole(by_layer(ones)));

    ask("other-masks");
    auto masks = table({"number of the mask", "y", "gradient / 2"});
    const auto train = [&](const auto& function) {
        ones.zero_grad();
        const Tensor y = checkpoint(function, ones);
        sum(y).backward();
        return std::pair(whole(y), whole(scaled(ones.grad(), 0.5)));
    };
    const auto compare = [&](const char* name, const auto& function) {
        const NoCheckpointVerification off;  // no error is reported
        const auto [y, half] = train(function);
        masks.row(name, y, half);
        return furthest(y, half);
    };
    const double counter_wrong_by = compare("by a counter", by_counter);
    const double layer_wrong_by = compare("by layer", by_layer);
    check("by a counter: the gradient belongs to another y", counter_wrong_by > 0.1);
    // y = (2m)^2 for a mask m of 0 and 1. Its derivative is 8m, which is twice y without any rounding.
    check_equal("by layer: the gradient has the same bits as without a checkpoint", layer_wrong_by, 0);

    step("tally stores a checksum of each value of the first run, and compares it with the second run.");
    note("PyTorch compares the shapes, types and devices of the saved tensors, but not their values.");

    ask("which-one-notices");
    const std::string dropout_error = error_of([&] { void(train(by_counter)); });
    note(dropout_error);
    check("the error names the operation", dropout_error.find("'dropout'") != std::string::npos);

    step("In a checkpoint, every function that depends on more than its arguments can cause an error.");
    int calls = 0;
    code(1);
    const auto unsteady = [&](const Tensor& x) { return tanh(tanh(x * double(++calls))); };
    const std::string unsteady_error = error_of([&] { train(unsteady); });
    note(unsteady_error);
    check("the error says what differs", unsteady_error.find("other values") != std::string::npos);

    step("Batch norm keeps running statistics: a mean and a variance of the batches so far.");
    note("Each update moves both statistics 1/10 of the way to the batch's mean and variance.");
    note("The update is a side effect: no value of the forward pass depends on the update.");
    struct Trained {
        int runs, updates;
        std::vector<real> mean, variance;
    };
    const Tensor x = toy::rows();
    const auto trained = [&](bool checkpointed, int times) {
        BatchNorm<real> norm(3);
        norm.to(options().device);
        int runs = 0;
        for (int i = 0; i < times; ++i) {
            ForwardPass pass{.training = true};
            const auto layer = [&](const Tensor& h) {
                ++runs;
                return tanh(norm(h, pass));
            };
            const Tensor y = checkpointed ? checkpoint(layer, x) : layer(x);
            sum(y).backward();
            pass.effects.commit();  // updates the running statistics
        }
        const auto& [mean, variance] = norm.running;
        return Trained{runs, norm.updates.item(), mean.to_vector(), variance.to_vector()};
    };
    const Trained plain = trained(false, 1), in_checkpoint = trained(true, 1), twice = trained(false, 2);

    ask("how-many-updates");
    auto moved = table({"", "runs", "updates", "running mean"});
    moved.row("plain", plain.runs, plain.updates, plain.mean);
    moved.row("checkpoint", in_checkpoint.runs, in_checkpoint.updates, in_checkpoint.mean);
    show("running variance of both", in_checkpoint.variance);
    check_equal("two runs, and one update", {in_checkpoint.runs, in_checkpoint.updates}, {2, 1});
    check_equal("the mean has the same bits", in_checkpoint.mean, plain.mean);
    check_equal("the variance has the same bits", in_checkpoint.variance, plain.variance);

    ask("in-pytorch");
    show("mean of the batch", scaled(plain.mean, 10), "running mean after two updates", twice.mean);
    show("the ratio", mean_of(ratios(twice.mean, scaled(plain.mean, 10))));

    step("A function of your own can ask whether it runs again.");
    int all_runs = 0, batches = 0;
    code(3);
    const auto counting = [&](const Tensor& h) {
        ++all_runs;
        if (!is_recomputing()) ++batches;
        return tanh(tanh(h));
    };
    void(train(counting));
    show("runs, and counted batches", {all_runs, batches});
}
