// Training that is killed again and again, and resumed each time, ends with the same bits; the state file is
// never anything but whole.
#include <chrono>
#include <filesystem>
#include <random>

#include "autograd/folder.hpp"
#include "autograd/write_file.hpp"
#include "catch.hpp"
#include "train/killed.hpp"
#include "train/state_file.hpp"
#include "train/trained.hpp"

namespace tally::test {
namespace {

TrainerOptions<double> saving(const std::string& checkpoint, std::int64_t save_micro_batches) {
    TrainerOptions<double> options = SmallTraining::options();
    options.checkpoint = checkpoint;
    options.save_micro_batches = save_micro_batches;
    return options;
}

// In a child, as if the machine lost power: true when it went through to the end.
template <class BeforeHand>
bool train_in_child(const TrainerOptions<double>& options, BeforeHand before) {
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

// What a training that goes on from the file ends with; from its end it does nothing.
std::vector<double> end_of(const TrainerOptions<double>& options) {
    SmallTraining training(options);
    training.trainer.train();
    return training.numbers();
}

void check_whole(const std::string& checkpoint) {
    if (std::filesystem::exists(checkpoint)) REQUIRE_NOTHROW(load_state(checkpoint));
}

WriteStage deadly;
std::int64_t writes_before;

}  // namespace

TEST_CASE("Training killed at 50 random instants ends with the bits of the uninterrupted one") {
    const std::uint64_t seed = std::random_device()();
    CAPTURE(seed);
    Random random(seed);
    const std::vector<double> wanted = uninterrupted();
    int killed = 0, resumed = 0;
    while (killed < 50) {
        const Folder folder;
        const TrainerOptions<double> options = saving(folder / "run.state", random.whole(1, 3));
        const auto begun = std::chrono::steady_clock::now();
        REQUIRE(train_in_child(saving(folder / "timed.state", options.save_micro_batches), [] {}));
        const std::chrono::duration<double, std::micro> once = std::chrono::steady_clock::now() - begun;
        const auto a_while = static_cast<std::int64_t>(once.count() / 2);
        bool ended = false;
        while (!ended && killed < 50) {
            resumed += std::filesystem::exists(options.checkpoint);
            const auto instant = random.whole(1, a_while);
            ended = train_in_child(options, [&] { die_in(instant); });
            killed += !ended;
            check_whole(options.checkpoint);
        }
        CHECK(end_of(options) == wanted);
    }
    CHECK(resumed > 10);
}

TEST_CASE("Training killed at a fault point of the state file ends with the same bits") {
    const WriteStage stage = GENERATE(WriteStage::writing, WriteStage::before_sync, WriteStage::before_rename,
                                      WriteStage::after_rename);
    const std::uint64_t seed = std::random_device()();
    CAPTURE(seed, static_cast<int>(stage));
    Random random(seed);
    const std::vector<double> wanted = uninterrupted();
    const Folder folder;
    const TrainerOptions<double> options = saving(folder / "run.state", 1);
    int killed = 0;
    for (bool ended = false; !ended;) {
        const std::int64_t writes = random.whole(1, 6);
        ended = train_in_child(options, [&] {
            deadly = stage;
            writes_before = writes;
            at_write_stage = [](WriteStage reached) {
                if (reached == deadly && writes_before-- == 0) die();
            };
        });
        killed += !ended;
        check_whole(options.checkpoint);
    }
    CHECK(killed >= 3);
    CHECK(end_of(options) == wanted);
}

}  // namespace tally::test
