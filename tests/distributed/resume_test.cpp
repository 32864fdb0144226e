// Tests DataParallel::save() and load(). A training run must compute the same bits after resuming.
#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "distributed/common_folder.hpp"
#include "distributed/world.hpp"
#include "tally/core.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train.hpp"

namespace tally::test {

namespace {

const std::string no_error = "no error";

std::int64_t drawn_size(Random& r) {
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : {1, 2, 3, 5})
        if (size <= static_cast<std::int64_t>(ranks())) sizes.push_back(size);
    return sizes[static_cast<std::size_t>(r.whole(0, std::ssize(sizes) - 1))];
}

// Generates a random linear model, and micro-batches with random numbers of items and random weights.
template <class S> struct RandomWindow {
    struct Micro {
        std::vector<Array<S>> with;  // factor of each parameter, or empty if the loss ignores the parameter
        double count, weight;
    };
    std::vector<Array<S>> values;
    std::vector<Micro> micros;
    typename Window<S>::Options options{.sum = Sum::exact};
    bool adam, averages;

    explicit RandomWindow(Random& r) {
        for (std::int64_t n = r.whole(1, 3); n-- > 0;) values.push_back(r.array<S>(r.shape(2, 4)));
        double total = 0;
        for (std::int64_t m = r.whole(2, 9); m-- > 0;) {
            Micro micro{{}, static_cast<double>(r.whole(1, 5)), r.coin() ? 1 : r.between(0.1, 3)};
            for (const Array<S>& value : values)
                micro.with.push_back(r.whole(0, 3) == 0 ? Array<S>() : random_array(r, value.shape()));
            if (!micro.with[0].storage()) micro.with[0] = random_array(r, values[0].shape());
            total += micro.count * micro.weight;
            micros.push_back(std::move(micro));
        }
        if (r.whole(0, 3) == 0)
            options.reduction = Reduction::sum;
        else if (r.whole(0, 2) == 0)
            options.total = total;
        else if (r.whole(0, 2) == 0)
            options.weigh = Weigh::micro_batches;
        if (r.whole(0, 3) == 0) options.max_norm = r.between(0.01, 2);
        if (r.whole(0, 3) == 0) options.schedule = Schedule::cosine(0.1, 100);
        if (r.whole(0, 2) == 0) {
            options.non_finite = NonFinite::drop_micro;
            const auto which = static_cast<std::size_t>(r.whole(0, std::ssize(micros) - 1));
            micros[which].with[0] = Array<S>::full(values[0].shape(), std::numeric_limits<S>::infinity());
        }
        options.noise = r.whole(0, 3) == 0 && values[0].size() > 0;
        options.seed = static_cast<std::uint64_t>(r.whole(0, 99));
        adam = r.coin();
        averages = r.coin();
    }
    static Array<S> random_array(Random& r, const Shape& shape) {
        std::vector<S> numbers(shape.size());
        for (S& each : numbers)
            each = static_cast<S>(std::ldexp(r.between(-1, 1), static_cast<int>(r.whole(-20, 20))));
        return Array<S>(shape, numbers);
    }
};

// Trains the model on one process or on a group of processes.
template <class S> struct Training {
    const RandomWindow<S>& drawn;
    std::vector<Var<Array<S>>> leaves;
    std::unique_ptr<Optimizer<S>> optimizer;
    std::unique_ptr<MovingAverage<S>> average;
    std::unique_ptr<DataParallel<S>> across;
    std::unique_ptr<Window<S>> window;

    // If `other_weights` is true, all weights are 7 until the test loads a file.
    Training(const RandomWindow<S>& of, ProcessGroup* processes, bool other_weights = false) : drawn(of) {
        for (const Array<S>& value : drawn.values)
            leaves.push_back(parameter(other_weights ? Array<S>::full(value.shape(), 7) : value.clone()));
        if (drawn.adam)
            optimizer = std::make_unique<Adam<S>>(leaves);
        else
            optimizer = std::make_unique<Sgd<S>>(
                leaves, Sgd<double>::Options{.learning_rate = 0.25, .momentum = 0.5});
        if (drawn.averages)
            average =
                std::make_unique<MovingAverage<S>>(leaves, MovingAverage<double>::Options{.decay = 0.9});
        typename Window<S>::Options options = drawn.options;
        options.average = average.get();
        if (processes)
            across = std::make_unique<DataParallel<S>>(*processes,
                                                       typename DataParallel<S>::Options{.bucket = 50});
        window = std::make_unique<Window<S>>(*optimizer, options, across.get());
    }
    void add(std::int64_t number) {
        const auto& micro = drawn.micros[static_cast<std::size_t>(number)];
        Var<Array<S>> all = constant(Array<S>::full({}, S(0.1) * static_cast<S>(number)));
        for (std::size_t i = 0; i < leaves.size(); ++i)
            if (micro.with[i].storage()) all = all + sum(leaves[i] * constant(micro.with[i]));
        window->add({all, constant(Array<S>::full({}, static_cast<S>(micro.count)))},
                    {.weight = micro.weight});
    }
    // Finishes the update. Returns all bits of the results, and of the state on which later updates depend.
    std::string finished() {
        const auto done = window->finish();
        std::string shown = std::to_string(done.stepped) + " " + std::to_string(done.micro_batches) + " " +
                            std::to_string(done.dropped) + " " + bits(done.count) + " " +
                            bits(done.norm.value_or(-1)) + " " + bits(done.loss_sum.item());
        TrainingState state;
        window->save(state, "window");
        for (const auto& [name, entry] : state.entries())
            if (!name.starts_with("window/noise/")) shown += "\n" + name + " " + entry_text(entry);
        return shown;
    }

private:
    static std::string bits(double number) { return std::to_string(std::bit_cast<std::uint64_t>(number)); }
    static std::string entry_text(const TrainingState::Entry& entry) {
        return std::visit(
            []<class T>(const T& value) -> std::string {
                if constexpr (std::is_same_v<T, std::string>)
                    return value;
                else if constexpr (std::is_arithmetic_v<T>)
                    return bits(static_cast<double>(value));
                else
                    return to_string(value.shape()) + std::to_string(detail::checksum(value));
            },
            entry);
    }
};

std::vector<std::int64_t> numbers_below(std::int64_t count) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(i);
    return all;
}

template <class S> void check_resumed_window(std::uint64_t seed, const CommonFolder& folder) {
    Random r(seed);
    const RandomWindow<S> drawn(r);
    const auto all = numbers_below(std::ssize(drawn.micros));
    Training<S> alone(drawn, nullptr);
    for (const std::int64_t number : all) alone.add(number);
    alone.finished();
    for (const std::int64_t number : all) alone.add(number);
    const std::string expected = alone.finished();
    alone.add(0);
    alone.window->flush();

    // `first` processes make an update. `second` processes begin the next update and save a file.
    const std::string between = folder / "between.state", middle = folder / "middle.state";
    const auto random_owners = [&](std::int64_t size) {  // the process of each micro-batch
        std::vector<std::int64_t> to;
        while (to.size() < all.size()) to.push_back(r.whole(0, size - 1));
        return to;
    };
    const std::int64_t first = drawn_size(r), second = drawn_size(r);
    const auto to_first = random_owners(first), to_second = random_owners(second);
    std::vector<std::int64_t> parts;  // each micro-batch is added in this part of the window
    const std::int64_t hops = r.whole(1, 3);
    while (parts.size() < all.size()) parts.push_back(r.whole(0, hops));
    const auto add = [&](Training<S>& training, const std::vector<std::int64_t>& to, int me,
                         std::int64_t part) {
        for (const std::int64_t number : all) {
            const auto at = static_cast<std::size_t>(number);
            if (to[at] == me && (part < 0 || parts[at] == part)) training.add(number);
        }
    };
    const auto loop = [](std::int64_t value) {
        TrainingState state;
        state.put("loop", std::to_string(value));
        return state;
    };
    CAPTURE(seed, first, second, hops);
    if (const auto group = first_processes(static_cast<int>(first), r.coin())) {
        Training<S> training(drawn, group.get());
        add(training, to_first, group->rank(), -1);
        training.window->finish();
        training.across->save(between, *training.window, loop(7));
        if (group->rank() == 0) {  // a Window of one process can load the file too
            Training<S> other(drawn, nullptr, true);
            other.window->load(TrainingState::load(between), "window");
            CHECK(other.window->updates() == 1);
        }
    }
    world().all_gather("the next processes");
    for (std::int64_t hop = 0; hop <= hops; ++hop) {
        if (const auto group = first_processes(static_cast<int>(second), false)) {
            Training<S> training(drawn, group.get(), true);
            const TrainingState saved = training.across->load(hop == 0 ? between : middle, *training.window);
            CHECK(saved.template get<std::string>("loop") == std::to_string(hop == 0 ? 7 : hop - 1));
            CHECK(training.window->updates() == 1);
            std::int64_t had = 0;
            for (std::size_t at = 0; at < all.size(); ++at)
                had += to_second[at] == group->rank() && parts[at] < hop ? 1 : 0;
            CHECK(training.window->micro_batches() == had);
            add(training, to_second, group->rank(), hop);
            if (hop < hops) {
                training.across->save(middle, *training.window, loop(hop));
                training.window->discard();
            } else {
                CHECK(training.finished() == expected);
                training.across->require_same_weights();
            }
        }
        world().all_gather("the next processes");
    }
}

struct One {
    Tensor weight = parameter(Array<float>({1}));
    Sgd<float> sgd{{weight}, {.learning_rate = 1}};
    DataParallel<float> across;
    Window<float> window;

    One(ProcessGroup& processes, Window<float>::Options options)
        : across(processes), window(sgd, options, &across) {}
    void add(float gradient) { window.add({sum(weight) * gradient, constant(Array<float>::full({}, 1))}); }
    std::string message(const std::string& path) {
        const std::string error = message_of([&] { across.load(path, window); });
        CHECK(weight.value().item() == 1);
        CHECK(window.empty());
        return error;
    }
};

}  // namespace

TEST_CASE("DataParallel::load: a resumed window has the bits of one process without interruption") {
    const std::uint64_t seed = common_seed("resumed windows");
    const CommonFolder folder;
    const std::uint64_t cases = ranks() == 5 ? 60 : 20;  // each case runs with float and with double
    for (std::uint64_t i = 0; i < cases; ++i) {
        check_resumed_window<float>(seed + 2 * i, folder);
        check_resumed_window<double>(seed + 2 * i + 1, folder);
    }
}

TEST_CASE("DataParallel::load: only an incomplete window requires the same number of processes") {
    const CommonFolder folder;
    for (const Sum sum : {Sum::running, Sum::exact}) {
        const std::string middle = folder / "middle.state", between = folder / "between.state";
        const auto gradient = [](int number) { return 0.1F * static_cast<float>(number + 1); };
        One undisturbed(world(), {.sum = sum});
        for (int i = 0; i < 4; ++i) undisturbed.add(gradient(i) * static_cast<float>(me() + 1));
        undisturbed.window.finish();
        {
            One saved(world(), {.sum = sum});
            for (int i = 0; i < 2; ++i) saved.add(gradient(i) * static_cast<float>(me() + 1));
            saved.across.save(middle, saved.window);
            for (int i = 2; i < 4; ++i) saved.add(gradient(i) * static_cast<float>(me() + 1));
            saved.window.finish();
            saved.across.save(between, saved.window);
        }
        One resumed(world(), {.sum = sum});
        resumed.across.load(middle, resumed.window);
        CHECK(resumed.window.micro_batches() == 2);
        for (int i = 2; i < 4; ++i) resumed.add(gradient(i) * static_cast<float>(me() + 1));
        resumed.window.finish();
        CHECK(same_bits(resumed.weight.value(), undisturbed.weight.value()));
        if (ranks() == 1) continue;
        if (const auto fewer = first_processes(static_cast<int>(ranks()) - 1, false)) {
            One other(*fewer, {.sum = sum});
            CHECK_THAT(other.message(middle),
                       contains("was saved in the middle of a window by " + std::to_string(ranks()) +
                                " processes, but this run has " + std::to_string(ranks() - 1) + "; resume"));
            other.across.load(between, other.window);
            CHECK(other.window.updates() == 1);
            CHECK(same_bits(other.weight.value(), undisturbed.weight.value()));
        }
        world().all_gather("the end of fewer");
    }
}

TEST_CASE("DataParallel::load: an incomplete window of one process or of an earlier version is rejected") {
    const CommonFolder folder;
    const std::string path = folder / "window.state", joined = folder / "joined.state";
    if (const auto alone = first_processes(1, false)) {
        One one(*alone, {.sum = Sum::exact});
        one.add(1);
        one.across.save(path, one.window);
        TrainingState plain;
        one.window.save(plain, "window");
        plain.save(joined);  // a file of one process, written by Window::save()
        One other(*alone, {.sum = Sum::exact});
        other.across.load(joined, other.window);
        CHECK(other.window.micro_batches() == 1);
        plain.put("processes/count", static_cast<std::int64_t>(ranks()));
        plain.save(joined);
    }
    world().all_gather("the files");
    if (ranks() == 1) return;
    One all(world(), {.sum = Sum::exact});
    CHECK_THAT(all.message(path), contains("in the middle of a window by 1 process, but this run has " +
                                           std::to_string(ranks())));
    CHECK_THAT(all.message(joined), contains("by " + std::to_string(ranks()) +
                                             " processes with joined exact sums, by an earlier version"));
}

TEST_CASE("DataParallel::load: a file that does not fit is rejected on all processes without a change") {
    const CommonFolder folder;
    const std::string path = folder / "window.state", exact = folder / "exact.state";
    {
        One saved(world(), {.total = 4, .sum = Sum::exact});
        saved.add(1);
        saved.across.save(exact, saved.window);
    }
    const auto check_on_all = [](const std::string& error, const std::string& what) {
        for (const std::string& one : world().all_gather("the errors", error))
            CHECK_THAT(one, contains(what));
    };
    One one(world(), {.total = 4, .sum = Sum::exact});
    check_on_all(one.message(folder / "none.state"), "none.state");
    One other(world(), {.total = 5, .sum = Sum::exact});
    check_on_all(other.message(exact), "was saved with total 4, here it is 5");
    One running(world(), {.total = 4});
    check_on_all(running.message(exact), "was saved with sum exact, here it is running");
    if (me() == 0) {
        const auto size = std::filesystem::file_size(exact);
        std::filesystem::copy_file(exact, path);
        std::filesystem::resize_file(path, size - 1);
    }
    check_on_all(one.message(path), "truncated");
    // save() must not write a file if the processes save different states.
    const std::string never = folder / "never.state";
    const bool last = me() + 1 == ranks();
    const auto save = [&](TrainingState state) {
        return message_of([&] { one.across.save(never, one.window, std::move(state)); });
    };
    one.add(1);
    TrainingState state;
    state.put("window/x", std::int64_t{1});
    check_on_all(save(state), "the name 'window/x' is reserved");
    if (ranks() > 1) {
        TrainingState epoch;
        epoch.put("epoch", std::int64_t{last});
        const std::string start = "rank " + std::to_string(ranks() - 1) + " has ";
        check_on_all(save(epoch), start + "epoch 1, rank 0 has 0");
        TrainingState none, one_more;
        one_more.put("zest", std::int64_t{7});  // the last name in alphabetical order
        check_on_all(save(last ? one_more : none), start + "zest 7, rank 0 has none");
        check_on_all(save(last ? none : one_more), start + "no zest, rank 0 has 7");
    }
    check_on_all(message_of([&] { one.across.save(folder / "no/folder.state", one.window); }),
                 "no/folder.state");
    CHECK(!std::filesystem::exists(never));
    one.window.discard();
    one.across.load(exact, one.window);  // all processes continue
    CHECK(one.window.micro_batches() == 1);
    one.window.discard();
}

TEST_CASE("DataParallel::save: messages of a failed save have no effect on later sums and files") {
    if (ranks() == 1) return;
    const CommonFolder folder;
    const Tensor weight = parameter(Array<float>::zeros({3000}));
    Sgd<float> sgd({weight}, {.learning_rate = 1});
    DataParallel<float> across(world(), {.reduce = ProcessGroup::AllReduce::rank_order});
    Window<float> window(sgd, {.reduction = Reduction::sum}, &across);
    const auto add = [&] { window.add({sum(weight), constant(Array<float>::full({}, 1))}); };
    int failures = 0, updates = 0;
    for (std::uint64_t nth = 1; nth < 16; ++nth) {
        for (std::uint64_t i = 0; i < nth; ++i) add();
        if (me() == 0) memory::detail::fail_allocation(nth);  // also while this process receives data
        failures += message_of([&] { across.save(folder / "window.state", window); }) == no_error ? 0 : 1;
        memory::detail::fail_allocation(0);
        window.discard();
        add();
        updates += window.finish().stepped ? 1 : 0;
        CHECK(std::ranges::count(weight.value().span(),
                                 -static_cast<float>(updates) * static_cast<float>(ranks())) == 3000);
    }
    CHECK(updates == 15);
    CHECK(failures > 2);
    CHECK(failures < 15);
    add();
    across.save(folder / "window.state", window);
    window.discard();
    across.load(folder / "window.state", window);
    CHECK(window.micro_batches() == 1);
    window.discard();
}

TEST_CASE("DataParallel::load: if an allocation fails on one process, none resumes") {
    const CommonFolder folder;
    const std::string path = folder / "window.state";
    {
        One saved(world(), {.sum = Sum::exact});
        saved.add(1);
        saved.across.save(path, saved.window);
        saved.window.discard();
    }
    int failures = 0;
    for (std::uint64_t nth = 1; nth < 20; ++nth) {
        One one(world(), {.sum = Sum::exact});
        if (me() + 1 == ranks()) memory::detail::fail_allocation(nth);
        const std::string error = message_of([&] { one.across.load(path, one.window); });
        memory::detail::fail_allocation(0);
        const bool resumed = error == no_error;
        const auto all = world().all_gather("whether it resumed", resumed ? "yes" : "no");
        CHECK(std::count(all.begin(), all.end(), all[0]) == static_cast<std::ptrdiff_t>(ranks()));
        CHECK(one.window.micro_batches() == (resumed ? 1 : 0));
        failures += resumed ? 0 : 1;
        one.window.discard();
    }
    CHECK(failures > 0);
    CHECK(failures < 19);
}

TEST_CASE("DataParallel::save: pending running statistics are saved, and each process gets its own back") {
    const CommonFolder folder;
    const std::string path = folder / "window.state";
    const auto make = [] { return Sequential<double>(BatchNorm<double>(3), Linear<double>(3, 2, {1, 1})); };
    Random r(common_seed("statistics"));
    std::vector<Array<double>> x;
    for (std::size_t i = 0; i < 2 * ranks(); ++i) x.push_back(r.array<double>({r.whole(2, 5), 3}));
    const auto add = [](Window<double>& window, Sequential<double>& model, const Array<double>& of) {
        ForwardPass& pass = window.begin_micro_batch(of.shape()[0]);
        window.add(mse(model(constant(of), pass), constant(Array<double>::zeros({of.shape()[0], 2}))));
    };
    Sequential<double> alone = make();
    Sgd<double> sgd_alone(alone.parameters(), {.learning_rate = 0.1});
    Window<double> window_alone(sgd_alone, {.sum = Sum::exact});
    for (const auto& of : x) add(window_alone, alone, of);
    window_alone.finish();
    for (const bool resumes : {false, true}) {
        Sequential<double> model = make();
        Sgd<double> sgd(model.parameters(), {.learning_rate = 0.1});
        DataParallel<double> across(world(), {.model = &model});
        Window<double> window(sgd, {.sum = Sum::exact}, &across);
        if (resumes)
            across.load(path, window);
        else
            add(window, model, x[me()]);
        if (!resumes) across.save(path, window);
        add(window, model, x[ranks() + me()]);
        window.finish();
        auto &norm = static_cast<BatchNorm<double>&>(model.layer(0)),
             &norm_alone = static_cast<BatchNorm<double>&>(alone.layer(0));
        CHECK(norm.updates.item() == 1);
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(std::abs(norm.running.mean.data()[i] - norm_alone.running.mean.data()[i]) < 1e-14);
            CHECK(std::abs(norm.running.variance.data()[i] - norm_alone.running.variance.data()[i]) < 1e-14);
        }
        CHECK(same_everywhere(norm.running.mean));
        for (std::size_t i = 0; i < model.parameters().size(); ++i)
            CHECK(same_bits(model.parameters()[i].value(), alone.parameters()[i].value()));
    }
}

}  // namespace tally::test
