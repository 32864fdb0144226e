// Tests that a training run which is killed and resumed several times ends with the right result. The result
// has the same bits as the result of an undisturbed run, and the state file is always complete.
#include <chrono>
#include <filesystem>
#include <random>

#include "catch.hpp"
#include "folder.hpp"
#include "io/file_faults.hpp"
#include "io/killed.hpp"
#include "tally/io/training_state.hpp"
#include "train/trained.hpp"

namespace tally::test {
namespace {

Trainer<double>::Options saving(const std::string& checkpoint, std::int64_t save_micro_batches) {
    Trainer<double>::Options options = SmallTraining::options();
    options.checkpoint = checkpoint;
    options.save_micro_batches = save_micro_batches;
    return options;
}

// Trains in a child process. The child process first calls `before`, which can arrange that the child process
// is killed. Returns true if the training reached its end.
template <class BeforeHand> bool train_in_child(const Trainer<double>::Options& options, BeforeHand before) {
    const int status = in_child([&] {
        before();
        SmallTraining(options).trainer.train();
    });
    if (status != 0) REQUIRE(was_killed(status));
    return status == 0;
}

std::vector<double> uninterrupted() {
    SmallTraining training(SmallTraining::options());
    training.trainer.train();
    return training.numbers();
}

// Resumes the training from the file, trains until the last update, and returns the numbers of the model.
std::vector<double> end_of(const Trainer<double>::Options& options) {
    SmallTraining training(options);
    training.trainer.train();
    return training.numbers();
}

void check_whole(const std::string& checkpoint) {
    if (std::filesystem::exists(checkpoint)) REQUIRE_NOTHROW(TrainingState::load(checkpoint));
}

}  // namespace

TEST_CASE("Trainer: a training killed at 50 random times ends with the bits of an uninterrupted training") {
    const std::uint64_t seed = std::random_device()();
    CAPTURE(seed);
    Random random(seed);
    const std::vector<double> wanted = uninterrupted();
    int killed = 0, resumed = 0;
    while (killed < 50) {
        const Folder folder;
        const Trainer<double>::Options options = saving(folder / "run.state", random.whole(1, 3));
        const auto start_time = std::chrono::steady_clock::now();
        REQUIRE(train_in_child(saving(folder / "timed.state", options.save_micro_batches), [] {}));
        const std::chrono::duration<double, std::micro> once = std::chrono::steady_clock::now() - start_time;
        const auto longest = static_cast<std::int64_t>(once.count() / 2);
        bool ended = false;
        while (!ended && killed < 50) {
            resumed += std::filesystem::exists(options.checkpoint);
            const auto instant = random.whole(1, longest);
            ended = train_in_child(options, [&] { die_in(instant); });
            killed += !ended;
            check_whole(options.checkpoint);
        }
        CHECK(end_of(options) == wanted);
    }
    CHECK(resumed > 10);
}

TEST_CASE("Trainer: a training killed at any file system call ends with the same bits") {
    const std::vector<double> wanted = uninterrupted();
    Trainer<double>::Options options = saving("", 3);
    const auto files = [&](const Folder& folder) {
        options.checkpoint = folder / "run.state";
        options.metrics_csv = folder / "run.csv";
        options.loss_curve = folder / "run.svg";
    };
    int killed = 0;
    for (std::int64_t n = 1;; n += 7) {  // kills at every seventh file system call
        CAPTURE(n);
        const Folder folder;
        files(folder);
        bool ended = false;
        // Each process may run longer than the previous process, so that the training makes progress.
        for (std::int64_t at = n; !ended; at += 7) {
            ended = train_in_child(options, [&] { static const FileFault fault(Fault::kill, at); });
            killed += !ended;
            check_whole(options.checkpoint);
        }
        CHECK(end_of(options) == wanted);
        for (const std::string& file : {options.checkpoint, options.metrics_csv, options.loss_curve})
            CHECK(std::filesystem::exists(file));
        CHECK(folder.files(".tmp-") == 3);
        if (n > 20) break;
    }
    CHECK(killed > 30);
}

TEST_CASE("Trainer: after a failing file system call, the resumed training ends with the same bits") {
    const Fault kind = GENERATE(Fault::once, Fault::from_then_on);
    const std::vector<double> wanted = uninterrupted();
    int failed = 0;
    for (std::int64_t n = 1;; n += n < 40 ? 1 : 17) {
        CAPTURE(n, static_cast<int>(kind));
        const Folder folder;
        Trainer<double>::Options options = saving(folder / "run.state", 4);
        bool reached = false, ended = false;
        {
            const FileFault fault(kind, n);
            try {
                SmallTraining training(options);
                training.trainer.train();
                ended = true;
                CHECK(training.numbers() == wanted);
            } catch (const Error& error) {
                CHECK_THAT(std::string(error.what()), contains("Input/output error"));
            }
            reached = FileFault::reached();
        }
        failed += !ended;
        check_whole(options.checkpoint);
        CHECK(end_of(options) == wanted);
        CHECK(folder.files() <= 2);  // the temporary file remains if unlink fails
        if (!reached) break;
    }
    CHECK(failed > 20);
}

}  // namespace tally::test
