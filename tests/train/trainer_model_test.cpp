// Tests that the constructor of Trainer rejects models, optimizers and files that do not fit together.
#include <string>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "folder.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/trainer.hpp"

namespace tally::test {
namespace {

Sequential<double> chain() { return Sequential<double>{Linear<double>(1, 1, {.seed = 1})}; }

void make(Module<double>& model, Optimizer<double>& optimizer, Trainer<double>::Options options) {
    Trainer<double>(
        model, optimizer, 2,
        [](const Items&, ForwardPass&) -> Loss<Array<double>> {
            throw Error("[test] no loss is computed here");
        },
        std::move(options));
}

}  // namespace

TEST_CASE("Trainer: saving without a checkpoint file throws an Error") {
    auto model = chain();
    Sgd<double> sgd(model.parameters(), {.learning_rate = 0.1});
    CHECK_THROWS_WITH(make(model, sgd, {.save_steps = 3}),
                      "[trainer] save_steps = 3 saves nothing without a checkpoint; name the file: "
                      ".checkpoint = \"run.state\"");
    CHECK_THROWS_WITH(make(model, sgd, {.save_micro_batches = 2}),
                      "[trainer] save_micro_batches = 2 saves nothing without a checkpoint; name the file: "
                      ".checkpoint = \"run.state\"");
}

TEST_CASE("Trainer: two files of the same name throw an Error") {
    auto model = chain();
    Sgd<double> sgd(model.parameters(), {.learning_rate = 0.1});
    const Folder folder;
    using Options = Trainer<double>::Options;
    const std::vector<std::pair<const char*, std::string Options::*>> files{
        {"checkpoint", &Options::checkpoint},
        {"metrics_csv", &Options::metrics_csv},
        {"metrics_jsonl", &Options::metrics_jsonl},
        {"loss_curve", &Options::loss_curve}};
    for (std::size_t i = 0; i < files.size(); ++i)
        for (std::size_t k = i + 1; k < files.size(); ++k) {
            Options options;
            options.*files[i].second = folder / "run";
            options.*files[k].second = folder / "./run";
            CHECK_THROWS_WITH(make(model, sgd, options),
                              std::string("[trainer] ") + files[i].first + " and " + files[k].first +
                                  " name the same file, '" + (folder / "./run") + "'; name different files");
        }
    CHECK(folder.files() == 0);
    CHECK_NOTHROW(make(model, sgd, {.checkpoint = folder / "a", .metrics_csv = folder / "b"}));
}

TEST_CASE("Trainer: an optimizer that omits parameters of the model throws an Error unless they are frozen") {
    auto model = chain(), other = chain();
    Sgd<double> sgd(model.parameters(), {.learning_rate = 0.1});
    for (const bool frozen : {false, true})
        CHECK_THROWS_WITH(make(other, sgd, {.frozen = frozen}),
                          "[trainer] the optimizer has no parameter of this model; make the optimizer from "
                          "model.parameters() of the same model");
    CHECK_NOTHROW(make(model, sgd, {}));
    model.add(Linear<double>(1, 1, {.seed = 2}));
    CHECK_THROWS_WITH(
        make(model, sgd, {}),
        "[trainer] the optimizer does not update the model's '1.weight', '1.bias'; make the "
        "optimizer from model.parameters() when the model is complete, or set .frozen = true to "
        "train without these parameters");
    CHECK_NOTHROW(make(model, sgd, {.frozen = true}));
}

}  // namespace tally::test
