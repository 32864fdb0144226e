// Tests a Trainer on several processes. The weights must have the same bits as after training on one process.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "distributed/world.hpp"
#include "folder.hpp"
#include "tally/core.hpp"
#include "tally/train.hpp"

namespace tally::test {

namespace {

// Generates a random training run. The model has dropout, because the masks depend on the indices of items.
struct Training {
    explicit Training(Random& r)
        : items(r.whole(5, 25)),
          seed(static_cast<std::uint64_t>(r.whole(0, 1000))),
          x(r.array<float>({items, 4})),
          y(r.array<float>({items, 2})),
          options{.per_device_batch_size = r.whole(1, 5),
                  .gradient_accumulation_steps = r.whole(1, 7),
                  .num_train_epochs = 2,
                  .seed = seed,
                  .max_grad_norm = r.coin() ? std::optional(0.5) : std::nullopt,
                  .weigh = r.coin() ? Weigh::counted : Weigh::micro_batches,
                  .sum = Sum::exact,
                  .tail = r.coin() ? Tail::scale : Tail::drop,
                  .noise = r.coin()} {}
    std::int64_t items;
    std::uint64_t seed;
    Array<float> x, y;
    Trainer<float>::Options options;
};

struct Trained {
    std::vector<Array<float>> weights;
    std::vector<double> losses;
    std::int64_t updates, dropped;

    bool operator==(const Trained& other) const {
        for (std::size_t i = 0; i < weights.size(); ++i)
            if (weights[i].to_vector() != other.weights[i].to_vector()) return false;
        return losses == other.losses && updates == other.updates && dropped == other.dropped;
    }
};

// Trains the remaining epochs on all processes together, or on each process separately if `ranks` is nullptr.
Trained trained(const Training& t, const Trainer<float>::Options& options, DataParallel<float>* ranks) {
    Sequential<float> model(Linear<float>(4, 6, {t.seed, 0}), Tanh<float>(), Dropout<float>(0.3, 7),
                            Linear<float>(6, 2, {t.seed, 1}));
    AdamW<float> adam(model.parameters(), {.learning_rate = 0.01});
    Trainer<float> trainer(
        model, adam, t.items,
        [&](const Items& items, ForwardPass& pass) {
            return mse(model(constant(rows(t.x, items)), pass), constant(rows(t.y, items)));
        },
        options, ranks);
    trainer.train();
    if (options.noise) {
        const auto& noise = trainer.window().noise();
        CHECK(noise.windows + noise.without == trainer.updates());
    }
    Trained done{{}, {}, trainer.updates(), trainer.summary().dropped_micro_batches};
    for (const Tensor& weight : model.parameters()) done.weights.push_back(weight.value().clone());
    for (const Trainer<double>::Record& record : trainer.records()) done.losses.push_back(record.loss());
    return done;
}

}  // namespace

TEST_CASE("Trainer: over processes the weights and losses are bit by bit those of one process") {
    const std::uint64_t seed = common_seed("trainers");
    INFO("TALLY_TEST_SEED=" << seed);
    Random r(seed);
    std::int64_t updates = 0;
    for (int i = 0; i < 6; ++i) {
        const Training t(r);
        DataParallel<float> ranks(world());
        const Trained together = trained(t, t.options, &ranks), alone = trained(t, t.options, nullptr);
        INFO("training " << i << ": " << t.items << " items, " << t.options.per_device_batch_size
                         << " at a time");
        CHECK(together == alone);
        updates += alone.updates;
    }
    CHECK(updates > 0);
}

TEST_CASE("Trainer: one process writes the checkpoint, and all processes or one process can resume") {
    const std::uint64_t seed = common_seed("checkpoints of trainers");
    INFO("TALLY_TEST_SEED=" << seed);
    Random r(seed);
    for (int i = 0; i < 3; ++i) {
        Training t(r);
        t.options.noise = false;
        const auto last = [&](const Trainer<float>::Options& options, DataParallel<float>* ranks) {
            return trained(t, options, ranks).weights.back().to_vector();
        };
        const std::vector<float> whole = last(t.options, nullptr);

        std::optional<Folder> folder;
        if (me() == 0) folder.emplace();
        const std::string path = world().all_gather("the folder", folder ? *folder / "run.state" : "")[0];
        Trainer<float>::Options half = t.options, rest = t.options, alone = t.options;
        half.num_train_epochs = 1;
        half.checkpoint = me() == 0 ? path : path + " of another";
        rest.checkpoint = path;
        alone.checkpoint = path + std::to_string(me());
        DataParallel<float> ranks(world());
        trained(t, half, &ranks);
        world().all_gather("it is saved");
        if (me() == 0) CHECK(folder->files() == 1);
        world().all_gather("it is looked at");
        std::filesystem::copy_file(path, alone.checkpoint);
        world().all_gather("it is copied");
        CHECK(last(rest, &ranks) == whole);
        CHECK(last(alone, nullptr) == whole);
        world().all_gather("it is resumed");
    }
}

TEST_CASE("Trainer: options that need a window per process throw an Error in the constructor") {
    Random r(1);
    Training t(r);
    const auto error = [&](auto change) {
        Trainer<float>::Options options = t.options;
        change(options);
        DataParallel<float> ranks(world());
        return message_of([&] { trained(t, options, &ranks); });
    };
    CHECK_THAT(error([](auto& o) { o.tail = Tail::carry; }),
               contains("several processes cannot divide a window: Tail::carry"));
    CHECK_THAT(error([](auto& o) { o.save_micro_batches = 1; }), contains("save_micro_batches does not"));
    CHECK_THAT(error([](auto& o) {
                   o.auto_find_batch_size = true;
                   o.weigh = Weigh::counted;
                   o.tail = Tail::scale;
               }),
               contains("would repeat the window in one process only"));
}

}  // namespace tally::test
