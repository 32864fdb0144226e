// Changes each option between saving and loading a training run. Loading must either throw an Error with both
// values, or continue with the same bits as an uninterrupted run. docs/options.md shows the table.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <sstream>

#include "../lessons/adam_a.hpp"
#include "autograd/support.hpp"
#include "catch.hpp"
#include "folder.hpp"
#include "io/file_testing.hpp"
#include "tally/base/write_file.hpp"
#include "tally/io/training_state.hpp"
#include "train/trained.hpp"

namespace tally::test {
namespace {

using lesson::AdamA;

// Returns the names of all fields of a struct. The macro does not compile if the names are incomplete.
#define TALLY_NAMES(object, ...)                                                                  \
    [] {                                                                                          \
        [[maybe_unused]] const auto& [__VA_ARGS__] = object;                                      \
        std::vector<std::string> names;                                                           \
        std::istringstream words(#__VA_ARGS__);                                                   \
        for (std::string word; std::getline(words >> std::ws, word, ',');) names.push_back(word); \
        return names;                                                                             \
    }()

const Trainer<double>::Options trainer_options;
const Window<double>::Options window_options;
const Sgd<double>::Options sgd_options;
const Adam<double>::Options adam_options;
const MovingAverage<double>::Options average_options;

const std::vector<std::string> trainer_names = TALLY_NAMES(
    trainer_options, per_device_batch_size, auto_find_batch_size, gradient_accumulation_steps,
    num_train_epochs, seed, shuffle, gradient_checkpointing, max_grad_norm, max_grad_value, schedule, average,
    weigh, sum, tail, non_finite, noise, checkpoint, save_steps, save_micro_batches, resume_from_checkpoint,
    logging_steps, metrics_csv, metrics_jsonl, loss_curve, progress, terminal, frozen);
const std::vector<std::string> window_names =
    TALLY_NAMES(window_options, micro_batches, total, reduction, weigh, sum, tail, non_finite, max_norm,
                max_value, schedule, average, seed, noise);
const std::vector<std::string> sgd_names =
    TALLY_NAMES(sgd_options, learning_rate, momentum, dampening, nesterov, weight_decay);
const std::vector<std::string> adam_names =
    TALLY_NAMES(adam_options, learning_rate, beta1, beta2, eps, weight_decay);
const std::vector<std::string> average_names = TALLY_NAMES(average_options, decay, bias_correction);

// Stores a changed option and the expected error message, which is empty if the change is allowed.
template <class Options> struct Row {
    std::string option;
    std::function<void(Options&)> change;
    std::string words;  // the error message after "was saved with"
    std::string note = "the same bits";
};

template <class Options>
void expect_every_option(const std::vector<Row<Options>>& rows, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        CAPTURE(name);
        CHECK(std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.option == name; }));
    }
}

// Returns one line for each outcome, with a list of all options that have this outcome.
template <class Options>
std::string table_of(const std::string& kind, const std::vector<Row<Options>>& rows) {
    struct Line {
        std::string outcome, options;
    };
    std::vector<Line> lines;
    for (const auto& row : rows) {
        const std::string outcome = row.words.empty() ? "allowed: " + row.note : "rejected";
        const std::string option = "`" + row.option + "`";
        const auto line = std::ranges::find(lines, outcome, &Line::outcome);
        if (line == lines.end())
            lines.push_back({outcome, option});
        else if (line->options.find(option) == std::string::npos)
            line->options += ", " + option;
    }
    std::string table;
    for (const Line& line : lines)
        table += "| " + kind + " | " + line.options + " | " + line.outcome + " |\n";
    return table;
}

// ---- the Trainer ----

std::string bits(SmallTraining& training) {
    TrainingState state;
    training.trainer.window().save(state, "w", &training.model);
    std::string all;  // leaves out the saved options, because they may differ
    for (const auto& [name, entry] : state.entries())
        if (const auto* array = std::get_if<Array<double>>(&entry); array && name != "w/schedule")
            for (const double number : array->to_vector()) all += as_text(number);
    return all;
}

Trainer<double>::Options base() {
    Trainer<double>::Options options = SmallTraining::options();
    options.max_grad_value = 0.2;
    options.num_train_epochs = 3;
    return options;
}

std::string uninterrupted(Trainer<double>::Options options) {
    SmallTraining training(options);
    training.trainer.train();
    return bits(training);
}

bool without_average = false;  // true if the loading training has no average, which is not an option
std::ostringstream progress;

std::vector<Row<Trainer<double>::Options>> trainer_rows(const Folder& folder) {
    using O = Trainer<double>::Options;
    return {
        {"per_device_batch_size", [](O& o) { o.per_device_batch_size = 2; },
         "per_device_batch_size 4, here it is 2"},
        {"auto_find_batch_size", [](O& o) { o.auto_find_batch_size = true; }, "",
         "an update has the same items, in smaller micro-batches if memory runs out. Rejected in the middle "
         "of a window"},
        {"gradient_accumulation_steps",
         [](O& o) {
             o.gradient_accumulation_steps = {{0, 3}, {2, 4}};
         },
         "gradient_accumulation_steps {{0, 3}, {2, 2}}, here it is {{0, 3}, {2, 4}}"},
        {"num_train_epochs", [](O& o) { o.num_train_epochs = 4; }, "",
         "the same bits as a run with the new number of epochs"},
        {"seed", [](O& o) { o.seed = 6; }, "seed 5, here it is 6"},
        {"shuffle", [](O& o) { o.shuffle = false; }, "shuffle yes, here it is no"},
        {"gradient_checkpointing", [](O& o) { o.gradient_checkpointing = Checkpointing{.segments = 2}; }, ""},
        {"max_grad_norm", [](O& o) { o.max_grad_norm = 0.01; }, "max_grad_norm 0.5, here it is 0.01"},
        {"max_grad_norm", [](O& o) { o.max_grad_norm = {}; }, "max_grad_norm 0.5, here it is none"},
        {"max_grad_value", [](O& o) { o.max_grad_value = {}; }, "max_grad_value 0.2, here it is none"},
        {"schedule", [](O& o) { o.schedule = {}; }, "schedule given, here it is none"},
        {"schedule", [](O& o) { o.schedule = Schedule::constant(0.01); },
         "schedule(0) 0.006666666666666666, here it is 0.01"},
        {"average", [](O&) { without_average = true; }, "average given, here it is none"},
        {"weigh", [](O& o) { o.weigh = Weigh::micro_batches; }, "weigh counted, here it is micro_batches"},
        {"sum", [](O& o) { o.sum = Sum::exact; }, "sum running, here it is exact"},
        {"tail", [](O& o) { o.tail = Tail::carry; }, "tail scale, here it is carry"},
        {"non_finite", [](O& o) { o.non_finite = NonFinite::drop_micro; },
         "non_finite raise, here it is drop_micro"},
        {"noise", [](O& o) { o.noise = true; }, ""},
        {"checkpoint",
         [&](O& o) {
             std::filesystem::copy_file(o.checkpoint, folder / "moved.state");
             o.checkpoint = folder / "moved.state";
         },
         "", "a copy of the file gives the same bits"},
        {"save_steps", [](O& o) { o.save_steps = 2; }, ""},
        {"save_micro_batches", [](O& o) { o.save_micro_batches = 3; }, ""},
        {"resume_from_checkpoint", [](O& o) { o.resume_from_checkpoint = false; }, "",
         "training starts again from the beginning, and ends with the same bits"},
        {"logging_steps", [](O& o) { o.logging_steps = 2; }, ""},
        {"metrics_csv", [&](O& o) { o.metrics_csv = folder / "m.csv"; }, ""},
        {"metrics_jsonl", [&](O& o) { o.metrics_jsonl = folder / "m.jsonl"; }, ""},
        {"loss_curve", [&](O& o) { o.loss_curve = folder / "m.svg"; }, ""},
        {"progress", [](O& o) { o.progress = &progress; }, ""},
        {"terminal", [](O& o) { o.terminal = true; }, ""},
        {"frozen", [](O& o) { o.frozen = true; }, ""},
    };
}

}  // namespace

TEST_CASE("Trainer::load: each changed option is rejected by its name or keeps the bits") {
    const std::string wanted = uninterrupted(base());
    const Folder unused;
    expect_every_option(trainer_rows(unused), trainer_names);
    const std::size_t many = trainer_rows(unused).size();
    for (std::size_t i = 0; i < many; ++i)
        for (const bool in_mid_window : {true, false}) {
            const Folder folder;
            const std::string path = folder / "run.state";
            const auto row = trainer_rows(folder)[i];
            CAPTURE(row.option, row.words, in_mid_window);
            Trainer<double>::Options options = base();
            options.checkpoint = path;
            options.save_micro_batches = 1;
            {
                SmallTraining saved(options);
                saved.left = in_mid_window ? 10 : 12;  // an epoch has 6 micro-batches, and a window has 3
                CHECK_THROWS_AS(saved.trainer.train(), SmallTraining::Interrupted);
            }
            REQUIRE((TrainingState::load(path).get<std::int64_t>("window/micro_batches") > 0) ==
                    in_mid_window);
            options.save_micro_batches = 0;
            without_average = false;
            row.change(options);
            if (row.option == "auto_find_batch_size" && in_mid_window) {
                CHECK_THROWS_WITH(SmallTraining(options), contains("in the middle of a window"));
            } else if (!row.words.empty()) {
                const std::string words =
                    message_of([&] { SmallTraining training(options, !without_average); });
                CHECK_THAT(words, contains(" was saved with " + row.words));
                CHECK_THAT(words, contains("[trainer] '" + path) || contains("[window] 'window'"));
            } else {
                SmallTraining training(options);
                training.trainer.train();
                options.checkpoint = "";
                const std::string here = row.option == "num_train_epochs" ? uninterrupted(options) : wanted;
                CHECK((bits(training) == here));
            }
        }
    without_average = false;
    CHECK_THROWS_WITH(
        [&] {
            const Folder folder;
            Trainer<double>::Options options = base();
            options.checkpoint = folder / "run.state";
            SmallTraining(options, false).trainer.train();
            SmallTraining again(options);
        }(),
        contains(" was saved with average none, here it is given"));
}

// ---- windows, optimizers, averages ----

namespace {

const std::string advice =
    "; make it with what was saved, and after load() set_learning_rate(0.2) if that is what you want";

std::vector<Row<Window<double>::Options>> window_rows(MovingAverage<double>* average) {
    using W = Window<double>::Options;
    return {
        {"micro_batches", [](W& o) { o.micro_batches = 3; }, "micro_batches 2, here it is 3"},
        {"total", [](W& o) { o.total = 4; }, "total 0, here it is 4"},
        {"reduction", [](W& o) { o.reduction = Reduction::sum; }, "reduction mean, here it is sum"},
        {"weigh", [](W& o) { o.weigh = Weigh::micro_batches; }, "weigh counted, here it is micro_batches"},
        {"sum", [](W& o) { o.sum = Sum::exact; }, "sum running, here it is exact"},
        {"tail", [](W& o) { o.tail = Tail::drop; }, "tail scale, here it is drop"},
        {"non_finite", [](W& o) { o.non_finite = NonFinite::drop_window; },
         "non_finite raise, here it is drop_window"},
        {"max_norm", [](W& o) { o.max_norm = 1; }, "max_norm 0.5, here it is 1"},
        {"max_value", [](W& o) { o.max_value = 0.25; }, "max_value none, here it is 0.25"},
        {"schedule", [](W& o) { o.schedule = {}; }, "schedule given, here it is none"},
        {"schedule", [](W& o) { o.schedule = Schedule::constant(0.2); }, "schedule(0) 0.1, here it is 0.2"},
        {"average", [=](W& o) { o.average = average; }, "average none, here it is given"},
        {"seed", [](W& o) { o.seed = 1; }, "seed 0, here it is 1"},
        {"noise", [](W& o) { o.noise = true; }, "",
         "the same bits. The window in which the option changes gives no estimate"}};
}

std::vector<Row<Sgd<double>::Options>> sgd_rows() {
    return {{"learning_rate", [](Sgd<double>::Options& o) { o.learning_rate = 0.2; },
             "learning_rate 0.1, here it is 0.2" + advice},
            {"momentum", [](Sgd<double>::Options& o) { o.momentum = 0.8; }, "momentum 0.9, here it is 0.8"},
            {"dampening", [](Sgd<double>::Options& o) { o.dampening = 0.5; }, "dampening 0, here it is 0.5"},
            {"nesterov", [](Sgd<double>::Options& o) { o.nesterov = true; }, "nesterov 0, here it is 1"},
            {"weight_decay", [](Sgd<double>::Options& o) { o.weight_decay = 0.1; },
             "weight_decay 0, here it is 0.1"}};
}

std::vector<Row<Adam<double>::Options>> adam_rows() {
    return {{"learning_rate", [](Adam<double>::Options& o) { o.learning_rate = 0.2; },
             "learning_rate 0.1, here it is 0.2" + advice},
            {"beta1", [](Adam<double>::Options& o) { o.beta1 = 0.8; }, "beta1 0.9, here it is 0.8"},
            {"beta2", [](Adam<double>::Options& o) { o.beta2 = 0.99; }, "beta2 0.999, here it is 0.99"},
            {"eps", [](Adam<double>::Options& o) { o.eps = 1e-6; }, "eps 1e-08, here it is 1e-06"},
            {"weight_decay", [](Adam<double>::Options& o) { o.weight_decay = 0.1; },
             "weight_decay 0, here it is 0.1"}};
}

std::vector<Row<MovingAverage<double>::Options>> average_rows() {
    return {
        {"decay", [](MovingAverage<double>::Options& o) { o.decay = 0.99; }, "decay 0.9, here it is 0.99"},
        {"bias_correction", [](MovingAverage<double>::Options& o) { o.bias_correction = true; },
         "bias_correction 0, here it is 1"}};
}

// Calls make() with `options` to construct a window, and saves this window after one update. Loads the state
// into a window that make() constructs from the changed options.
template <class Options, class Make> void require_valid_rows(const std::string& kind, const Options& options,
                                                             const std::vector<Row<Options>>& rows,
                                                             const std::vector<std::string>& names,
                                                             Make make) {
    expect_every_option(rows, names);
    for (const auto& row : rows) {
        CAPTURE(kind, row.option);
        TrainingState state;
        make(options, [&](auto& window) {
            window.finish();
            window.save(state, "w");
        });
        Options changed = options;
        row.change(changed);
        const std::string words = message_of([&] {
            make(changed, [&](auto& window) {
                window.discard();
                window.load(state, "w");
            });
        });
        CHECK_THAT(words,
                   row.words.empty() ? contains("no error") : contains(" was saved with " + row.words));
        make(options, [&](auto& window) {
            window.discard();
            CHECK_NOTHROW(window.load(state, "w"));
            CHECK(window.updates() == 1);
        });
    }
}

template <class O, class Use> void with_optimizer(O& optimizer, Use use) {
    Window<double> window(optimizer, {});
    window.add(Loss(optimizer.parameters()[0] * 2.0));
    use(window);
}

}  // namespace

TEST_CASE("Window::load: each changed option of a window, optimizer or average is rejected") {
    using W = Window<double>::Options;
    const Tensor64 w = parameter({1.0, 2.0});
    MovingAverage<double> average({w});
    const W options{.micro_batches = 2, .max_norm = 0.5, .schedule = Schedule::constant(0.1)};
    require_valid_rows("Window::Options", options, window_rows(&average), window_names,
                       [&](const W& o, auto use) {
                           w.zero_grad();
                           Sgd<double> sgd({w}, {.learning_rate = 0.1});
                           Window<double> window(sgd, o);
                           for (int i = 0; i < 2; ++i) window.add(Loss(w * 2.0));
                           use(window);
                       });

    require_valid_rows("Sgd::Options", Sgd<double>::Options{.learning_rate = 0.1, .momentum = 0.9},
                       sgd_rows(), sgd_names, [&](const Sgd<double>::Options& o, auto use) {
                           w.zero_grad();
                           Sgd<double> sgd({w}, o);
                           with_optimizer(sgd, use);
                       });

    const auto adam = [&]<class O, class Options = Adam<double>::Options>(const Adam<double>::Options& o,
                                                                          auto use) {
        w.zero_grad();
        O optimizer({w}, Options{o.learning_rate, o.beta1, o.beta2, o.eps, o.weight_decay});
        with_optimizer(optimizer, use);
    };
    const Adam<double>::Options tenth{.learning_rate = 0.1};
    require_valid_rows(
        "Adam::Options", tenth, adam_rows(), adam_names,
        [&](const Adam<double>::Options& o, auto use) { adam.template operator()<Adam<double>>(o, use); });
    require_valid_rows("Adam::Options of AdamW", tenth, adam_rows(), adam_names,
                       [&](const Adam<double>::Options& o, auto use) {
                           adam.template operator()<AdamW<double>, AdamW<double>::Options>(o, use);
                       });

    require_valid_rows("MovingAverage::Options", MovingAverage<double>::Options{.decay = 0.9}, average_rows(),
                       average_names, [&](const MovingAverage<double>::Options& o, auto use) {
                           w.zero_grad();
                           Sgd<double> sgd({w}, {.learning_rate = 0.1});
                           MovingAverage<double> mean({w}, o);
                           Window<double> window(sgd, {.average = &mean});
                           window.add(Loss(w * 2.0));
                           use(window);
                       });
}

// AdamA needs no Window, because AdamA itself accumulates the gradients of the micro-batches.
TEST_CASE("AdamA::load: each changed option is rejected by its name") {
    const Tensor64 w = parameter({1.0, 2.0});
    TrainingState state;
    AdamA<double>({w}, {.learning_rate = 0.1}).save(state, "o");
    const auto words = [&](const Adam<double>::Options& options) {
        return message_of([&] { AdamA<double>({w}, options).load(state, "o"); });
    };
    CHECK(words({.learning_rate = 0.1}) == "no error");
    CHECK_THAT(words({.learning_rate = 0.2}), contains("learning_rate 0.1, here it is 0.2"));
    CHECK_THAT(words({.learning_rate = 0.1, .beta1 = 0.8}), contains("beta1 0.9, here it is 0.8"));
    CHECK_THAT(words({.learning_rate = 0.1, .beta2 = 0.8}), contains("beta2 0.999, here it is 0.8"));
    CHECK_THAT(words({.learning_rate = 0.1, .eps = 1}), contains("eps 1e-08, here it is 1"));
    CHECK_THAT(words({.learning_rate = 0.1, .weight_decay = 1}), contains("weight_decay 0, here it is 1"));
}

// To write docs/options.md again, set TALLY_UPDATE_GOLDEN=1. Review the difference before you commit.
TEST_CASE("docs/options.md: the file is the table of these tests") {
    const std::string path = TALLY_SOURCE_DIR "/docs/options.md";
    const Folder unused;
    const std::string table =
        "<!-- The options that may change when a training run is resumed. Written by "
        "tests/train/options_test.cpp. -->\n"
        "# Options of a resumed training run\n"
        "\n"
        "This page is for you if you resume a training run. After this page you know which options you may "
        "change, and how to change\n"
        "all other options.\n"
        "\n"
        "A resumed training run gives the same bits as an uninterrupted run, or loading throws Error. If an "
        "option affects the\n"
        "weights, the option must have the same value as at the time of saving. If the value differs, the "
        "message of the Error\n"
        "names the option and both values, and loading changes nothing:\n"
        "\n"
        "```text\n"
        "[trainer] 'run.state' was saved with per_device_batch_size 4, here it is 2\n"
        "```\n"
        "\n"
        "| options of | options | changed on resume |\n"
        "|---|---|---|\n" +
        table_of("Trainer", trainer_rows(unused)) + table_of("Window", window_rows(nullptr)) +
        table_of("Sgd", sgd_rows()) + table_of("Adam, AdamW", adam_rows()) +
        table_of("MovingAverage", average_rows()) +
        "\n"
        "The number of items, the type of the optimizer, and the number and shapes of the parameters must "
        "not change. If you\n"
        "pass the model, the names of the parameters must also be equal. Loading ignores the "
        "numbers of the data set\nand layers without a state.\n"
        "\n"
        "## Change a rejected option\n"
        "\n"
        "- **The learning rate:** create the optimizer with the old learning rate, and load the state. A "
        "Trainer loads the state\n"
        "  in its constructor. Then call `set_learning_rate()`. With a `schedule`, `set_learning_rate()` has "
        "no effect.\n"
        "- **A schedule:** you may change the schedule for later updates, but not for past updates. A "
        "schedule is a function, so\n"
        "  loading compares only the values at the updates 0, 1, 2, 4, 8, ... and at the last update.\n"
        "- **Any other option:** start a new training run with the trained weights. Call `save_weights()`, "
        "then `load_weights()`\n"
        "  into a model with a new optimizer and a new Trainer.\n";
    const char* update = std::getenv("TALLY_UPDATE_GOLDEN");
    if (update != nullptr && std::string(update) == "1") write_file_atomically(path, table);
    CHECK((read_bytes(path) == table));
}

}  // namespace tally::test
