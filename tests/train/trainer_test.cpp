// Tests that a Trainer computes the same bits as a hand-written loop, also if the Trainer is resumed. Also
// tests the lines that the Trainer prints.
#include "tally/train/trainer.hpp"

#include <cmath>
#include <filesystem>
#include <regex>
#include <sstream>

#include "catch.hpp"
#include "folder.hpp"
#include "io/file_testing.hpp"
#include "tally/io/training_state.hpp"
#include "train/trained.hpp"

namespace tally::test {
namespace {

// The loss of an item x with the weight w is w * x, so the gradient of w is the mean of the items.
struct OneWeight {
    explicit OneWeight(std::vector<double> numbers) : x(Array<double>{0}) {
        const auto count = static_cast<std::int64_t>(numbers.size());
        x = Array<double>({count, 1}, numbers);
    }
    struct Model : Module<double> {
        Tensor64 w = parameter({0.0});
        void list(Members& members) override { members.parameter("w", w); }
    } model;
    Array<double> x;
    Sgd<double> sgd{{model.w}, {.learning_rate = 1}};
    Trainer<double>::LossFunction loss = [this](const Items& items, ForwardPass&) {
        return Loss(model.w * constant(rows(x, items)));
    };
    double w() const { return model.w.value().item(); }
};

std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
}

// Removes the last column from a line of metrics, because the last column depends on the machine's speed.
std::string untimed(const std::string& line) { return line.substr(0, line.rfind(',')); }

std::vector<std::string> untimed(const std::vector<std::string>& all) {
    std::vector<std::string> all_untimed;
    for (const std::string& line : all) all_untimed.push_back(untimed(line));
    return all_untimed;
}

Trainer<double>::Record record(std::int64_t update, double loss) {
    return {.update = update, .epoch = 0.5, .sum = loss * 4, .count = 4, .learning_rate = 0.1};
}

}  // namespace

TEST_CASE("Trainer: the windows are those of a hand-written loop") {
    SmallTraining by_trainer(SmallTraining::options()), by_hand(SmallTraining::options());
    by_trainer.trainer.train();
    CHECK(by_trainer.trainer.updates() == 2 + 2 + 3 + 3);

    // The training divides the 22 items into 6 micro-batches of at most 4 items.
    const auto loss = by_hand.loss_of();
    Window<double> window(by_hand.adam, {.max_norm = 0.5,
                                         .schedule = SmallTraining::options().schedule,
                                         .average = &by_hand.average,
                                         .seed = 5});
    for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
        window.plan_micro_batches(epoch < 2 ? 3 : 2);
        for (const Items& micro : split(Items::shuffled(small_items, 5, epoch), 4)) {
            window.add(loss(micro, window.begin_micro_batch(micro.count())));
            if (window.full()) window.finish();
        }
    }
    CHECK(by_trainer.numbers() == by_hand.numbers());
}

TEST_CASE("Law: micro-batch sizes and accumulation steps with the same windows yield the same training") {
    const std::uint64_t seed = GENERATE(range(1u, 31u));
    CAPTURE(seed);
    Random random(seed);
    const std::int64_t items = random.whole(3, 30), size = random.whole(1, 4), steps = random.whole(1, 4);
    const Array<double> x = random.array<double>({items, 3}), y = random.array<double>({items, 2});
    const auto trained = [&](std::int64_t batch_size, std::int64_t accumulation,
                             std::optional<Checkpointing> checkpointing = {}) {
        Sequential<double> model{Linear<double>(3, 5, {seed, 0}), Tanh<double>(), Dropout<double>(0.4, 2),
                                 Linear<double>(5, 2, {seed, 1})};
        Sgd<double> sgd(model.parameters(), {.learning_rate = 0.1, .momentum = 0.9});
        Trainer<double> trainer(model, sgd, items,
                                [&](const Items& some, ForwardPass& pass) {
                                    return mse(model(constant(rows(x, some)), pass), constant(rows(y, some)));
                                },
                                {.per_device_batch_size = batch_size,
                                 .gradient_accumulation_steps = accumulation,
                                 .num_train_epochs = 3,
                                 .seed = seed,
                                 .gradient_checkpointing = checkpointing,
                                 .max_grad_norm = 1.0});
        trainer.train();
        std::vector<double> all;
        for (const Tensor64& p : model.parameters())
            for (const double number : p.value().to_vector()) all.push_back(number);
        return all;
    };
    const auto whole = trained(size * steps, 1), split = trained(size, steps);
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(std::abs(whole[i] - split[i]) < 1e-12);
    CHECK(trained(size, steps, Checkpointing()) == split);
    CHECK(trained(size, steps, Checkpointing{.segments = 4}) == split);
    CHECK(trained(size, steps, Checkpointing{.bytes = 1 << 20}) == split);
}

TEST_CASE("Tail: an incomplete window at the end of an epoch is scaled, dropped or carried into the next") {
    const auto trained = [](Tail tail, std::int64_t epochs) {
        OneWeight one({1, 2, 3, 4, 6});
        Trainer<double> trainer(one.model, one.sgd, 5, one.loss,
                                {.per_device_batch_size = 1,
                                 .gradient_accumulation_steps = 2,
                                 .num_train_epochs = epochs,
                                 .shuffle = false,
                                 .tail = tail});
        trainer.train();
        return std::tuple(-one.w(), trainer.updates(), trainer.summary().dropped_micro_batches);
    };
    CHECK(trained(Tail::scale, 2) == std::tuple(2 * (1.5 + 3.5 + 6), 6, 0));
    CHECK(trained(Tail::drop, 2) == std::tuple(2 * (1.5 + 3.5), 4, 2));
    CHECK(trained(Tail::carry, 2) == std::tuple(1.5 + 3.5 + 3.5 + 2.5 + 5, 5, 0));
}

TEST_CASE("NonFinite: a loss that is not finite throws an Error or is dropped and counted") {
    const auto options = [](NonFinite policy) {
        return Trainer<double>::Options{.per_device_batch_size = 1,
                                        .gradient_accumulation_steps = 2,
                                        .shuffle = false,
                                        .non_finite = policy};
    };
    const double inf = std::numeric_limits<double>::infinity();
    for (const NonFinite policy : {NonFinite::drop_micro, NonFinite::drop_window}) {
        OneWeight one({1, inf, 3, 5});
        Trainer<double> trainer(one.model, one.sgd, 4, one.loss, options(policy));
        trainer.train();
        CHECK(-one.w() == (policy == NonFinite::drop_micro ? 1 + 4 : 4));
        CHECK(trainer.summary().dropped_micro_batches == (policy == NonFinite::drop_micro ? 1 : 2));
    }
    OneWeight one({1, inf, 3, 5});
    Trainer<double> trainer(one.model, one.sgd, 4, one.loss, options(NonFinite::raise));
    CHECK_THROWS_WITH(trainer.train(), contains("infinite or NaN; nothing was updated"));
    trainer.window().discard();
    trainer.train();  // continues with the next micro-batch
    CHECK(-one.w() == 4);
}

TEST_CASE("Trainer: a parameter that was replaced in the model throws an Error in the next epoch") {
    OneWeight one({1, 2});
    Trainer<double> trainer(one.model, one.sgd, 2, one.loss, {.num_train_epochs = 3});
    CHECK(trainer.train_epoch());
    const Tensor64 old = one.model.w;
    one.model.w = parameter({0.0});
    CHECK_THROWS_WITH(trainer.train_epoch(),
                      contains("the model's parameter 'w' was replaced by a new parameter"));
    one.model.w = old;
    CHECK(trainer.train_epoch());
}

TEST_CASE("Trainer: a training resumed anywhere continues with the same bits and the same lines") {
    const std::uint64_t seed = GENERATE(range(1u, 9u));
    CAPTURE(seed);
    Random random(seed);
    const Folder folder;
    Trainer<double>::Options options = SmallTraining::options();
    options.metrics_csv = folder / "plain.csv";
    options.logging_steps = random.whole(1, 3);
    SmallTraining plain(options);
    plain.trainer.train();

    options.metrics_csv = folder / "resumed.csv";
    options.metrics_jsonl = folder / "resumed.jsonl";
    options.checkpoint = folder / "run.state";
    options.save_micro_batches = random.whole(1, 4);
    int interrupted = 0;
    for (bool ended = false; !ended;) {
        SmallTraining training(options);
        training.left = random.whole(options.save_micro_batches, options.save_micro_batches + 5);
        try {
            training.trainer.train();
            ended = true;
            CHECK(training.numbers() == plain.numbers());
        } catch (const SmallTraining::Interrupted&) {
            ++interrupted;
        }
    }
    CHECK(interrupted > 2);
    CHECK(untimed(lines(read_bytes(folder / "resumed.csv"))) ==
          untimed(lines(read_bytes(folder / "plain.csv"))));
    CHECK(lines(read_bytes(folder / "resumed.jsonl")).size() + 1 ==
          lines(read_bytes(folder / "plain.csv")).size());
}

TEST_CASE("Trainer: a checkpoint of another training throws an Error with its name") {
    const Folder folder;
    const std::string path = folder / "run.state";
    const auto make = [&](std::int64_t items, Trainer<double>::Options options) {
        OneWeight one(std::vector<double>(9, 1.0));
        options.checkpoint = path;
        Trainer<double>(one.model, one.sgd, items, one.loss, options).train();
    };
    make(8, {});
    const std::string start = "[trainer] '" + path + "' was saved with ";
    CHECK_THROWS_WITH(make(9, {}), start + "items 8, here it is 9");
}

TEST_CASE("save_steps: the state is saved after the given number of updates and at the end of an epoch") {
    const Folder folder;
    std::vector<std::int64_t> saved_updates;
    OneWeight one(std::vector<double>(7, 1.0));
    const std::string path = folder / "run.state";
    Trainer<double> trainer(
        one.model, one.sgd, 7,
        [&](const Items& items, ForwardPass& pass) {
            const bool there = std::filesystem::exists(path);
            saved_updates.push_back(there ? TrainingState::load(path).get<std::int64_t>("window/updates")
                                          : -1);
            return one.loss(items, pass);
        },
        {.per_device_batch_size = 1, .num_train_epochs = 2, .checkpoint = path, .save_steps = 3});
    trainer.train();
    CHECK(saved_updates == std::vector<std::int64_t>{-1, -1, -1, 3, 3, 3, 6, 7, 7, 9, 9, 9, 12, 12});
    CHECK(TrainingState::load(path).get<std::int64_t>("window/updates") == 14);
}

TEST_CASE("logging_steps: metrics have a line for the given number of updates") {
    const Folder folder;
    OneWeight one({1, 2, 3, 4, 5, 6, 7, 8});
    Trainer<double> trainer(one.model, one.sgd, 8, one.loss,
                            {.per_device_batch_size = 1,
                             .gradient_accumulation_steps = 2,
                             .shuffle = false,
                             .max_grad_norm = 100,
                             .schedule = Schedule::step(1, 1, 0.5),
                             .logging_steps = 2,
                             .metrics_csv = folder / "m.csv",
                             .metrics_jsonl = folder / "m.jsonl",
                             .loss_curve = folder / "m.svg"});
    trainer.train();
    // w is 0, -1.5, -3.25, -4.625, ... The losses are 0, -1.5 * (3 + 4), -3.25 * (5 + 6), -4.625 * (7 + 8).
    CHECK(untimed(lines(read_bytes(folder / "m.csv"))) ==
          std::vector<std::string>{"update,epoch,loss,count,norm,learning_rate", "2,0.5,-2.625,4,3.5,0.5",
                                   "4,1,-26.28125,4,7.5,0.125"});
    CHECK(untimed(lines(read_bytes(folder / "m.jsonl"))) ==
          std::vector<std::string>{"{\"update\": 2, \"epoch\": 0.5, \"loss\": -2.625, \"count\": 4, "
                                   "\"norm\": 3.5, \"learning_rate\": 0.5",
                                   "{\"update\": 4, \"epoch\": 1, \"loss\": -26.28125, \"count\": 4, "
                                   "\"norm\": 7.5, \"learning_rate\": 0.125"});
    CHECK(read_bytes(folder / "m.svg") == detail::loss_curve_svg(trainer.records()));
}

TEST_CASE("csv_line, json_line: NaN is nan in CSV and null in JSON, and a missing norm is empty or null") {
    Trainer<double>::Record odd = record(3, std::nan(""));
    CHECK(detail::csv_line(odd) == "3,0.5,nan,4,,0.1,0\n");
    CHECK(detail::json_line(odd) ==
          "{\"update\": 3, \"epoch\": 0.5, \"loss\": null, \"count\": 4, \"norm\": null, \"learning_rate\": "
          "0.1, \"samples_per_second\": 0}\n");
    odd.norm = 2;
    CHECK(detail::csv_line(odd) == "3,0.5,nan,4,2,0.1,0\n");
}

TEST_CASE("progress_line: the line shows the rate, the time left, and the loss as sum over count") {
    detail::Progress progress{.epoch = 2,
                              .epochs = 3,
                              .done = 0.45,
                              .last = {.update = 40, .sum = 27.5, .count = 64},
                              .samples_per_second = 1234,
                              .seconds_left = 72};
    CHECK(detail::progress_line(progress) ==
          "epoch 2/3 [####......] update 40, loss 0.4297 = 27.5/64, 1234/s, 1:12 left");
    progress.done = 1;
    progress.seconds_left = 3661;
    progress.samples_per_second = 0.5;
    CHECK_THAT(detail::progress_line(progress), contains("[##########] update"));
    CHECK_THAT(detail::progress_line(progress), contains(", 0.5/s, 1:01:01 left"));
}

TEST_CASE("progress: lines go to the given stream, and are overwritten only at a terminal") {
    const auto shown = [](bool terminal) {
        std::ostringstream out;
        OneWeight one({1, 2, 3, 4});
        Trainer<double> trainer(one.model, one.sgd, 4, one.loss,
                                {.per_device_batch_size = 1,
                                 .gradient_accumulation_steps = 2,
                                 .num_train_epochs = 2,
                                 .progress = &out,
                                 .terminal = terminal});
        trainer.train();
        return out.str();
    };
    const std::string plain = shown(false), over = shown(true);
    CHECK(plain.find('\r') == std::string::npos);
    CHECK(lines(plain).size() == 4);
    CHECK(lines(plain)[2].rfind("epoch 2/2 [#######...] update 3, loss ", 0) == 0);
    CHECK(std::count(over.begin(), over.end(), '\r') == 4);
    CHECK(lines(over).size() == 2);  // one line for each epoch
}

TEST_CASE("Trainer<double>::Summary: it has the numbers of the training and of the memory report") {
    SmallTraining training(SmallTraining::options());
    const std::size_t before = memory::report().in_use;
    training.trainer.train();
    const Trainer<double>::Summary summary = training.trainer.summary();
    CHECK(summary.epochs == 4);
    CHECK(summary.updates == 10);
    CHECK(summary.samples == 4 * small_items);
    CHECK(summary.seconds > 0);
    CHECK(summary.samples_per_second() == 4 * small_items / summary.seconds);
    CHECK(summary.peak > before);
    CHECK(summary.peak_without_model < summary.peak);
    CHECK(summary.saved > 0);
    std::ostringstream out;
    training.trainer.print_summary(out);
    CHECK_THAT(out.str(), contains("epochs 4, updates 10; 88 samples in "));
    CHECK_THAT(out.str(), contains("of it beyond parameters and gradients"));
    CHECK(to_string(Trainer<double>::Summary{.seconds = 2,
                                             .epochs = 1,
                                             .updates = 3,
                                             .samples = 8,
                                             .dropped_micro_batches = 2,
                                             .peak = 2048,
                                             .peak_without_model = 1024,
                                             .saved = 512}) ==
          "epochs 1, updates 3; 8 samples in 2 s: 4 samples/s\n2 micro-batches were dropped\nmemory: 2.0 KiB "
          "at most, 1.0 KiB of it beyond parameters and gradients; saved for backward 512 B at most\n");
}

TEST_CASE("loss_curve_svg: the picture is complete and its text is readable") {
    const std::uint64_t seed = GENERATE(range(1u, 41u));
    CAPTURE(seed);
    Random random(seed);
    std::vector<Trainer<double>::Record> records;
    const std::int64_t count = random.coin() ? random.whole(1, 5) : random.whole(1, 5000);
    const double scale = std::pow(10, random.between(-8, 8)), level = random.coin() ? scale * 10 : 0;
    for (std::int64_t i = 1; i <= count; ++i)
        records.push_back(record(i * 3, level + scale * random.between(0, 1)));
    if (count > 2) records[1].sum = std::nan("");
    const std::string svg = detail::loss_curve_svg(records, "A <loss> & more");
    CHECK(svg.rfind("<svg xmlns=\"http://www.w3.org/2000/svg\"", 0) == 0);
    CHECK_THAT(svg, contains("<title id=\"t-title\">A &lt;loss&gt; &amp; more</title>"));
    CHECK_THAT(svg, contains("<desc id=\"t-desc\">Loss by update: from "));
    CHECK_THAT(svg, contains("at update 3 to"));
    CHECK(svg.find("nan") == std::string::npos);
    CHECK(svg.find("inf") == std::string::npos);
    std::smatch found;
    for (std::string rest = svg; std::regex_search(rest, found, std::regex("font-size:(\\d+)px"));
         rest = found.suffix())
        CHECK(std::stoi(found[1]) >= 18);
    REQUIRE(std::regex_search(svg, found, std::regex("<polyline points=\"([^\"]*)\"")));
    std::istringstream points(found[1]);
    int x = 0, y = 0, before = 0, points_seen = 0;
    for (char comma; points >> x >> comma >> y; before = x, ++points_seen) {
        CHECK(x > before);
        CHECK((x >= 112 && x <= 928 && y >= 76 && y <= 452));
    }
    CHECK(points_seen >= std::min<std::int64_t>(count - 1, 100));
    const std::regex tick("t-end\">[^<]+<");
    const auto ticks =
        std::distance(std::sregex_iterator(svg.begin(), svg.end(), tick), std::sregex_iterator());
    CHECK((ticks >= 2 && ticks <= 10));
}

TEST_CASE("loss_curve_svg: records without a loss throw an Error") {
    CHECK_THROWS_WITH(detail::loss_curve_svg({}), "[loss_curve] no record has a finite loss to draw");
    CHECK_THROWS_WITH(detail::loss_curve_svg(std::vector{record(1, std::nan(""))}),
                      "[loss_curve] no record has a finite loss to draw");
}

TEST_CASE("Law: evaluate() weighs items equally for every batch size") {
    const std::uint64_t seed = GENERATE(range(1u, 31u));
    CAPTURE(seed);
    Random random(seed);
    const std::int64_t items = random.whole(1, 20), classes = random.whole(2, 4);
    const std::int32_t ignored = random.coin() ? -100 : 0;  // the ignored label may be a class
    Sequential<double> model{Linear<double>(3, classes, {seed, 0}), Dropout<double>(0.5)};
    const Array<double> x = random.array<double>({items, 3});
    std::vector<std::int32_t> wanted;
    for (std::int64_t i = 0; i < items; ++i)
        wanted.push_back(i > 0 && random.whole(0, 3) == 0
                             ? ignored
                             : static_cast<std::int32_t>(random.whole(ignored == 0 ? 1 : 0, classes - 1)));
    const Array<std::int32_t> labels({items}, wanted);
    const Array<double> logits = model(constant(x)).value();
    const auto whole = cross_entropy(constant(logits), labels, {.ignore = ignored});
    double right = 0, count = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i] == ignored) continue;
        const auto row =
            logits.span().subspan(i * static_cast<std::size_t>(classes), static_cast<std::size_t>(classes));
        right += std::max_element(row.begin(), row.end()) - row.begin() == wanted[i];
        ++count;
    }
    const auto found = Trainer<double>::evaluate(
        labels, random.whole(1, items), [&](const Items& some) { return model(constant(rows(x, some))); },
        {.ignore = ignored});
    CHECK(std::abs(found.loss - whole.mean().item()) < 1e-13);
    CHECK(found.accuracy == right / count);
    CHECK(found.count == static_cast<std::int64_t>(count));
    const double loss =
        Trainer<double>::evaluate(items, random.whole(1, items), [&](const Items& some, ForwardPass& pass) {
            CHECK_FALSE(pass.training);
            return cross_entropy(model(constant(rows(x, some)), pass), rows(labels, some),
                                 {.ignore = ignored});
        });
    CHECK(std::abs(loss - found.loss) < 1e-13);
}

TEST_CASE("Trainer: invalid options throw an Error") {
    OneWeight one({1, 2});
    const auto message = [&](std::int64_t items, Trainer<double>::Options options) {
        return message_of([&] { Trainer<double>(one.model, one.sgd, items, one.loss, options); });
    };
    CHECK(message(0, {}) == "[trainer] the number of items must be at least 1; 0 is not");
    CHECK(message(2, {.per_device_batch_size = 0}) ==
          "[trainer] per_device_batch_size must be at least 1; 0 is not");
    CHECK(message(2, {.num_train_epochs = -1}) == "[trainer] num_train_epochs must be at least 0; -1 is not");
    CHECK(message(2, {.save_steps = -1}) == "[trainer] save_steps must be at least 0; -1 is not");
    CHECK(message(2, {.save_micro_batches = -1}) ==
          "[trainer] save_micro_batches must be at least 0; -1 is not");
    CHECK(message(2, {.logging_steps = 0}) == "[trainer] logging_steps must be at least 1; 0 is not");
    CHECK_THROWS_WITH(Trainer<double>(one.model, one.sgd, 2, {}),
                      "[trainer] the loss function is empty; pass a function that returns a Loss");
    Linear<double> no_chain(1, 1, {1, 1});
    CHECK_THROWS_WITH(
        Trainer<double>(no_chain, one.sgd, 2, one.loss, {.gradient_checkpointing = Checkpointing()}),
        "[trainer] gradient_checkpointing: the model has no Sequential that could be cut into segments");
    CHECK_THROWS_WITH(Trainer<double>::evaluate(0, 2, one.loss),
                      "[Trainer::evaluate] the data set has no items; give at least one");
}

TEST_CASE("Trainer: a file that cannot be written throws an Error in the constructor") {
    OneWeight one({1, 2});
    const Folder folder;
    std::filesystem::create_symlink(folder / "loop", folder / "loop");
    std::filesystem::create_directory(folder / "taken");
    using Options = Trainer<double>::Options;
    for (std::string Options::*file :
         {&Options::checkpoint, &Options::metrics_csv, &Options::metrics_jsonl, &Options::loss_curve})
        for (const auto& [name, reason] :
             {std::pair("no/such", "No such file or directory"), std::pair("taken", "Is a directory"),
              std::pair("loop", "Too many levels of symbolic links")}) {
            Options options;
            options.*file = folder / name;
            CHECK_THROWS_WITH(Trainer<double>(one.model, one.sgd, 2, one.loss, options),
                              "[write_file] cannot write '" + folder / name + "': " + reason);
        }
    CHECK(folder.files() == 2);
    Options options;
    options.checkpoint = folder / "run.state";
    Trainer<double>(one.model, one.sgd, 2, one.loss, options);
    CHECK(folder.files() == 2);
}

}  // namespace tally::test
