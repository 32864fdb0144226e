// Lesson 34: processes share the micro-batches of one update. Shows what processes add, divide and send.
#include <numeric>
#include <set>

#include "course/kit/on_ranks.hpp"
#include "course/kit/toy.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct AcrossProcesses : Toy {                             // six rows x, three weights w
    const int P = setting("ranks"), b = 6 / P, B = P * b;  // b rows for each rank, B for all
    const std::vector<std::int64_t> unequal = unequal_sizes();
    const int last = P - 1;

    void talk() {
        step(P == 1 ? "One rank: this program once, with w and all six rows."
                    : say("{}: copies of one program, each with its own w and {} of six.",
                          capital(many_in_words(P, "ranks")), many(b, "rows")));
        note("Each sees its own memory only. Each runs this, and all results are shown:");
        code(3);
        const auto means = on_ranks([&](ProcessGroup& here) {
            const Tensor rows = part(here.rank());
            return grad(mean(matmul(rows, w)), {w}).front().to_vector();
        });
        auto own = table({"rank", "rows", "gradient of their mean"});
        for (int rank = 0; rank < P; ++rank) own.row(rank, rows_of(rank), means[at(rank)]);
        check_means(means);

        predict(say("An all-reduce adds the gradients up, and each rank gets the sum. It is the gradient of "
                    "all {} rows times",
                    B),
                {right(P), wrong(1, "A sum of several means is larger than their mean."),
                 wrong(b, say("Its {} each rank has divided by already, in mean().", many(b, "rows"))),
                 wrong(1.0 / P, "The other way round: which is the larger?")},
                hint("Where were micro-batches summed that each had taken its mean?",
                     "It is lesson 6 once more, with ranks for micro-batches."),
                say("Each mean counts fully: {} where one is wanted.", many(P, "means")));
        code(3);
        const auto sums = on_ranks([&](ProcessGroup& here) {
            const Array<real> mine({3}, means[at(here.rank())]);
            return here.all_reduce(mine).to_vector();
        });
        const auto full = values(grad(mean(matmul(split(x, {B, 6 - B})[0], w)), {w}).front());
        show(say("one process, {}", many(B, "rows")), full);
        show("sum over the ranks", sums[0]);
        show("sum / one process", sums[0][2] / full[2]);
        check_sums(sums, full);

        const std::vector<double> once = divided(sums[0], P), twice = divided(sums[0], P * P);
        if (P == 1)
            step("A mean over ranks and a loss divided by their number: alone it is the same.");
        else
            predict(say("A mean over the ranks, and the loss divided by {}, too: g is {} times too small. "
                        "Which training shows it?",
                        P, P),
                    {right(say("SGD: {} times slower", P)),
                     wrong(say("Adam: {} times slower", P), "Its step is m / root(v). What becomes of both?"),
                     wrong("both of them alike", "One of them divides by the gradient's own size."),
                     wrong("neither of them", "One of them steps by the rate times g.")},
                    hint("What does each of them do with a gradient's size?",
                         "Lesson 14: of two optimizers one cancels it."),
                    "SGD steps by rate times g. In Adam's quotient the factor cancels.");
        auto steps = table({"divided by", "SGD moves w by", "Adam moves w by"});
        for (const auto& [by, g] : {std::pair(P, once), {P * P, twice}})
            steps.row(by, moved<Sgd<real>>(g, Sgd<real>::Options{.learning_rate = 1}),
                      moved<Adam<real>>(g, Adam<real>::Options{.learning_rate = 0.1}));
        check_steps(steps);

        predict(say("Now {}. Each rank adds up its own; the sum of all is divided by",
                    P == 1 ? "one rank has all six rows" : say("the ranks have {} rows", sum_of(unequal))),
                {right(6), wrong(P, "A mean over ranks: many rows then count as little as few."),
                 wrong(many_with_rows(), "A mean of means, as in lesson 8. Who is counted?"),
                 wrong(double(unequal[0]), "So many has rank 0. And the others?")},
                hint("Which number does a rank alone not know?", "Each rank also hands in its own count."),
                "Sums need one denominator: the counts are summed, too.");
        code(3);
        const auto found = on_ranks([&](ProcessGroup& here) {
            Shared mine(here);  // with Window<real> window(sgd, {}, &ranks)
            for (const Tensor& rows : dealt(here)) mine.add(rows);
            return mine.finish();
        });
        auto ways = table({"", "w.grad", "divided by"});
        ways.row("mean of the ranks' means", mean_of_means(), many_with_rows());
        ways.row("window over ranks", first_three(found[0]), int(found[0][3]));
        ways.row("one process", exact_means(), 6);
        if (P > 1) note(say("Rank {} has nothing. It comes to finish() all the same, and steps.", last));
        check_window(found);

        const auto first = firsts(), second = seconds();
        predict(say("Gradients of two micro-batches: {}. The mean over ranks is taken too early, after the "
                    "first. Rank 0 ends with",
                    each_has(first, second)),
                {right(P == 1 ? 3 : mean_of(first) + second[0]),
                 wrong(mean_of(first) + mean_of(second), "That would be the mean of both, taken at the end."),
                 wrong(first[0] + second[0], "Its own two. What has the mean put in the place of the first?"),
                 wrong(mean_of(first), "The second micro-batch is still to come, and it adds.")},
                hint("What is in w.grad when the second backward adds to it?",
                     "All ranks share one number then, and each goes on alone."),
                "The mean of the first ones, and its own second.");
        if (P < 4) code(3);
        const auto ends = on_ranks([&](ProcessGroup& here) {
            const double early = mean_over(here, first[at(here.rank())]);  // too early
            return early + second[at(here.rank())];
        });
        auto early = table({"rank", "first", "second", "too early", "at the end"});
        for (int rank = 0; rank < P; ++rank)
            early.row(rank, first[at(rank)], second[at(rank)], ends[at(rank)],
                      mean_of(first) + mean_of(second));
        check_ends(ends);

        step("Who notices? Thirty such updates, with the loss that rank 0 prints:");
        const auto courses = on_ranks([&](ProcessGroup& here) { return train_too_early(here); });
        const auto true_course = train_together();
        auto training =
            table({"update", "rank 0's loss", "done right", "rank 0's w", say("rank {}'s w", last)});
        for (const int update : {0, 1, 10, 30})
            training.row(update, loss_of_rank_0(courses[0][at(update)]),
                         loss_of_rank_0(true_course[at(update)]), courses[0][at(update)],
                         courses[at(last)][at(update)]);
        note(P == 1 ? "Alone there is nobody to part from."
                    : "It looks better than it is. A window compares the copies when it opens:");
        const auto refusals = on_ranks([&](ProcessGroup& here) { return refusal(here, courses); });
        if (P > 1) show("error", refusals[0]);
        check_parting(courses, true_course, refusals);

        const int S = 3 * int(sizeof(real)), a_window = 2 * (P - 1) * S, N = 8;
        if (P == 1)
            step("Alone nothing is sent, after a window or after each micro-batch.");
        else
            predict(say("A sum of {} bytes sends 2(P - 1) times as many, {} together. A window of {} sums "
                        "once; who sums after each micro-batch sends",
                        S, a_window, N),
                    {right(N * a_window), wrong(a_window, "So much sends the window, after all of them."),
                     wrong(N * S, "All ranks together: each number goes out and comes back."),
                     wrong(N * a_window * P, "In 2(P - 1) all ranks are counted already.")},
                    hint("How often is summed then?", "Multiply what one sum sends."),
                    say("{} sums instead of one, and the same gradient in the end.", N));
        auto bytes = table({"micro-batches", "window, bytes", "a sum each, bytes"});
        for (const int n : {1, 2, N, 2 * N}) {
            const auto window = on_ranks([&](ProcessGroup& here) { return sent_by_window(here, n); });
            const auto each = on_ranks([&](ProcessGroup& here) { return sent_by_sums(here, n); });
            bytes.row(n, int(total(window)), int(total(each)));
        }
        note("Of the gradients; counts and agreements are some words more, not counted here.");
        check_bytes(bytes, a_window);

        const auto neighbours = on_ranks([&](ProcessGroup& here) {
            return three_sums(here, [&](int k) { return k * P / 24 == here.rank(); });
        });
        const auto cards = on_ranks([&](ProcessGroup& here) {
            return three_sums(here, [&](int k) { return k % P == here.rank(); });
        });
        const auto everything = [](int) { return true; };
        const auto running = window_of(everything, Sum::running), exact = window_of(everything, Sum::exact);
        if (P == 1)
            step("24 micro-batches, w of 1000 numbers: one rank adds as one process does.");
        else
            predict(
                say("24 micro-batches, w of 1000 numbers. Rank 0's sums plus rank 1's{}: how many of the "
                    "1000 "
                    "have other bits than in one process?",
                    P == 2 ? "" : ", and so on"),
                {right("many of them"), wrong("none of them", "The order is fixed, but it is another one."),
                 wrong("all of them", "By luck two orders often round alike.")},
                hint("In which order did lesson 13 add, and in which are these added?",
                     "(a + b) + (c + d) is not ((a + b) + c) + d."),
                "Sums made apart round elsewhere than one running sum does.");
        auto bits = table({"other bits, of 1000", "on another rank", "one process", "other dealing"});
        for (int way = 0; way < 3; ++way) {
            const auto& one = way == 2 ? exact : running;
            const auto on_0 = of_way(neighbours[0], way);
            bits.row(std::vector<const char*>{"fast", "rank_order", "Sum::exact"}[at(way)],
                     differ(on_0, of_way(neighbours[at(last)], way)), differ(on_0, one),
                     differ(on_0, of_way(cards[0], way)));
        }
        note("fast: MPI's order. rank_order: the same with any MPI. exact: for any P.");
        check_bits(neighbours, cards, running, exact);

        step(P == 1 ? "Exact sums round once. Whoever computes what, the bits are the same."
                    : say("With exact sums a lost rank costs time, not bits: rank {} gets nothing, {} "
                          "its work.",
                          last, P == 2 ? "the other does" : "the others do"));
        code(3);
        const auto without = on_ranks([&](ProcessGroup& here) {
            const int others = std::max(1, P - 1);
            return three_sums(here, [&](int k) { return k % others == here.rank(); });
        });
        show("exact, numbers that differ", differ(of_way(without[0], 2), exact));
        show("rank_order, numbers that differ", differ(of_way(without[0], 1), of_way(neighbours[0], 1)));
        check_equal("exact: without the last rank", of_way(without[0], 2), exact);

        if (P == 1)
            step("A file is missing: alone the error is one's own.");
        else
            predict(say("Rank {} cannot read its third micro-batch, and throws. {} in finish():", last,
                        P == 2 ? "The other is" : "The others are"),
                    {right("an error there, and no step"),
                     wrong("they step without it", "With whose count? The sum would be another window's."),
                     wrong("they wait for ever", "So MPI alone would. But who leaves says so before."),
                     wrong("they step, it does not", "From then on w would not be one any more.")},
                    hint("What must the copies of w stay?", "Either all of them step, or none."),
                    "Who leaves tells the others, and finish() steps only with the word of everybody.");
        const auto words = on_ranks([&](ProcessGroup& here) { return told_of_failure(here.rank()); });
        for (int rank = 0; rank < std::min(P, 2); ++rank) show(say("rank {}", rank), words[at(rank)]);
        if (P > 2) show(say("rank {}", last), words[at(last)]);
        check_failure(words);
    }

    // A rank's copy of the weights, with a Window that all ranks share.
    struct Shared {
        Tensor v = zeros();
        Sgd<real> sgd{{v}, {.learning_rate = 1}};  // one step from 0 ends at minus the gradient
        DataParallel<real> ranks;
        Window<real> window{sgd, {}, &ranks};
        explicit Shared(ProcessGroup& here) : ranks(here) {}
        void add(const Tensor& rows) { window.add(Loss(matmul(rows, v))); }
        std::vector<double> finish() {  // returns the gradient and the count
            const double count = window.finish().count;
            const std::vector<double> stepped = values(v);
            return {-stepped[0], -stepped[1], -stepped[2], count};
        }
    };

    // Returns the change of the weights by an optimizer step with the gradient g.
    template <class Optimizer, class Options>
    std::vector<double> moved(const std::vector<double>& g, Options options) const {
        const Tensor v = weights();
        Optimizer optimizer({v}, options);
        sum(v * constant(g)).backward();
        optimizer.step();
        const auto before = values(w), after = values(v);
        return {after[0] - before[0], after[1] - before[1], after[2] - before[2]};
    }

    static double mean_over(ProcessGroup& here, double mine) {
        return double(here.all_reduce(Array<real>::full({}, real(mine))).item()) / here.size();
    }

    // Returns w after each of 30 updates in which the ranks average only the first of two gradients.
    std::vector<double> train_too_early(ProcessGroup& here) const {
        std::vector<double> course{0};
        for (int update = 0; update < 30; ++update) {
            const double v = course.back(), early = mean_over(here, v - firsts()[at(here.rank())]);
            course.push_back(v - 0.25 * (early + (v - seconds()[at(here.rank())])));
        }
        return course;
    }
    std::vector<double> train_together() const {
        std::vector<double> course{0};
        for (int update = 0; update < 30; ++update) {
            const double v = course.back();
            course.push_back(v - 0.25 * (v - mean_of(firsts()) + v - mean_of(seconds())));
        }
        return course;
    }
    static double loss_of_rank_0(double v) { return ((v - 1) * (v - 1) + (v - 2) * (v - 2)) / 2; }

    // Returns the error that a new Window throws because the ranks' copies of the weights differ.
    static std::string refusal(ProcessGroup& here, const std::vector<std::vector<double>>& courses) {
        const Tensor w = parameter(Array<real>::full({}, real(courses[at(here.rank())].back())));
        Sgd<real> sgd({w}, {.learning_rate = 1});
        DataParallel<real> ranks(here);
        try {
            Window<real> window(sgd, {}, &ranks);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }

    double sent_by_window(ProcessGroup& here, int n) const {
        Shared mine(here);
        const auto before = here.sent().sum_bytes;
        for (int micro = 0; micro < n; ++micro) mine.add(part(here.rank()));
        mine.finish();
        return double(here.sent().sum_bytes - before);
    }
    double sent_by_sums(ProcessGroup& here, int n) const {
        const auto before = here.sent().sum_bytes;
        for (int micro = 0; micro < n; ++micro)
            void(here.all_reduce(grad(mean(matmul(part(here.rank()), w)), {w}).front()));
        return double(here.sent().sum_bytes - before);
    }

    // Makes an update with the micro-batches for which `belongs` is true, and returns the weights.
    template <class F>
    static std::vector<real> window_of(F belongs, Sum how, DataParallel<real>* ranks = nullptr) {
        const Tensor v = parameter(Array<real>::zeros({1000}, options().device));
        Sgd<real> sgd({v}, {.learning_rate = 1});
        Window<real> window(sgd, {.sum = how}, ranks);
        for (int k = 0; k < 24; ++k)
            if (belongs(k)) window.add({sum(v * gradient_of(k)), one()});
        window.finish();
        return v.value().to_vector();
    }
    // Returns the weights after an update with fast sums, with sums in rank order, and with exact sums.
    template <class F> static std::vector<real> three_sums(ProcessGroup& here, F belongs) {
        std::vector<real> all;
        for (const auto& [reduce, how] : {std::pair(ProcessGroup::AllReduce::fast, Sum::running),
                                          {ProcessGroup::AllReduce::rank_order, Sum::running},
                                          {ProcessGroup::AllReduce::rank_order, Sum::exact}}) {
            DataParallel<real> ranks(here, {.reduce = reduce});
            const std::vector<real> result = window_of(belongs, how, &ranks);
            all.insert(all.end(), result.begin(), result.end());
        }
        return all;
    }

    // The last rank throws in the middle of an update. Returns the error and the weights of this process.
    std::string told_of_failure(int rank) const {
        const Tensor v = zeros();
        std::string said;
        try {
            ProcessGroup processes;  // its own group, because a rank leaves it
            Sgd<real> sgd({v}, {.learning_rate = 1});
            DataParallel<real> ranks(processes);
            Window<real> window(sgd, {}, &ranks);
            for (int micro = 0; micro < 2; ++micro) window.add(Loss(matmul(part(rank), v)));
            if (rank == last) throw Error("[read] the third file is missing");
            window.finish();
        } catch (const Error& error) {
            said = error.what();
        }
        return said + "; w is " + to_string(v.value());
    }

    // ---- tools: distribution of rows, and values for tables --------------------------------------------

    static std::size_t at(int n) { return std::size_t(n); }
    static Tensor zeros() { return parameter(Array<real>::zeros({3}, options().device)); }

    Tensor part(int rank) const {
        return split(split(x, std::vector<std::int64_t>{B, 6 - B})[0], b)[at(rank)];
    }
    std::string rows_of(int rank) const {
        return b == 1 ? say("{}", rank) : say("{}-{}", rank * b, rank * b + b - 1);
    }

    // Returns the number of rows of each rank, six in total. The last of several ranks has no row.
    std::vector<std::int64_t> unequal_sizes() const {
        static const std::vector<std::vector<std::int64_t>> sizes{
            {6}, {6, 0}, {4, 2, 0}, {3, 2, 1, 0}, {3, 1, 1, 1, 0}, {2, 1, 1, 1, 1, 0}};
        return sizes[at(P - 1)];
    }
    std::vector<Tensor> dealt(ProcessGroup& here) const {
        if (unequal[at(here.rank())] == 0) return {};
        return {split(x, unequal)[at(here.rank())]};
    }
    int many_with_rows() const { return std::max(1, P - 1); }
    std::vector<double> mean_of_means() const {
        std::vector<double> all(3);
        for (const Tensor& rows : split(x, unequal)) {
            if (rows.shape()[0] == 0) continue;
            const auto own = values(grad(mean(matmul(rows, w)), {w}).front());
            for (std::size_t j = 0; j < 3; ++j) all[j] += own[j] / double(many_with_rows());
        }
        return all;
    }
    static std::vector<double> first_three(const std::vector<double>& numbers) {
        return {numbers.begin(), numbers.begin() + 3};
    }

    std::vector<double> firsts() const { return cut({1, 3, 8, 16, 22, 46}); }
    std::vector<double> seconds() const { return cut({2, 5, 11, 20, 32, 50}); }
    std::vector<double> cut(std::vector<double> numbers) const {
        numbers.resize(at(P));
        return numbers;
    }
    static double mean_of(const std::vector<double>& numbers) {
        return total(numbers) / double(numbers.size());
    }
    static double total(const std::vector<double>& numbers) {
        return std::accumulate(numbers.begin(), numbers.end(), 0.0);
    }
    std::string each_has(const std::vector<double>& first, const std::vector<double>& second) const {
        std::string all;
        for (int rank = 0; rank < P; ++rank)
            all += say(rank == 0 ? "{}+{}" : ", {}+{}", first[at(rank)], second[at(rank)]);
        return all;
    }

    static std::vector<double> divided(const std::vector<real>& sum, double by) {
        std::vector<double> all;
        for (const real each : sum) all.push_back(double(each) / by);
        return all;
    }
    static Tensor constant(const std::vector<double>& g) {
        return Array<real>({3}, {real(g[0]), real(g[1]), real(g[2])}, options().device);
    }

    static Tensor one() { return Array<real>::full({}, real(1), options().device); }
    static Tensor gradient_of(int k) {  // of micro-batch k
        return randn<real>({1000}, {.seed = options().seed, .stream = std::uint64_t(k)})
            .value()
            .to(options().device);
    }
    static std::vector<real> of_way(const std::vector<real>& three, int way) {
        return {three.begin() + 1000 * way, three.begin() + 1000 * (way + 1)};
    }
    static int differ(const std::vector<real>& a, const std::vector<real>& b) {
        int count = 0;
        for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
        return count;
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    void check_means(const std::vector<std::vector<real>>& means) const {
        for (int rank = 0; rank < P; ++rank)
            check_close(say("rank {}, in exact decimals", rank), means[at(rank)],
                        exact_means(at(rank * b), at(rank * b + b)), roundings(12) * largest_column() / b);
    }

    void check_sums(const std::vector<std::vector<real>>& sums, const std::vector<double>& full) const {
        std::vector<double> times_full;
        for (const double each : full) times_full.push_back(P * each);
        check_close(say("{} times", P), sums[0], times_full, roundings(24) * largest_column() / b);
        for (int rank = 1; rank < P; ++rank)
            check_equal(say("rank {} has the same", rank), sums[at(rank)], sums[0]);
        if (!settings_changed())
            check("prints lesson 6's line", as_printed(values(sums[0])) == "[-1.0608  0.0620 -1.8375]");
    }

    void check_steps(const Table& steps) const {
        const auto sgd = values(steps.column("SGD moves w by")),
                   adam = values(steps.column("Adam moves w by"));
        for (std::size_t j = 0; j < 3; ++j) {
            check_close("SGD: so many times shorter", P * sgd[3 + j], sgd[j], roundings(8) * P);
            check_close("Adam: as long", adam[3 + j], adam[j], 1e-5);
        }
    }

    void check_window(const std::vector<std::vector<double>>& found) const {
        check_close("the window: the truth", first_three(found[0]), exact_means(),
                    roundings(24) * largest_column());
        check_equal("six are counted", found[0][3], 6);
        for (int rank = 1; rank < P; ++rank)
            check_equal(say("rank {} steps alike", rank), found[at(rank)], found[0]);
    }

    void check_ends(const std::vector<double>& ends) const {
        check_close("their mean is right", mean_of(ends), mean_of(firsts()) + mean_of(seconds()), 1e-9);
        check("no two of them are equal", std::set<double>(ends.begin(), ends.end()).size() == at(P));
    }

    // Checks that the mean of all ranks' weights is equal to the weight in one process.
    void check_parting(const std::vector<std::vector<double>>& courses,
                       const std::vector<double>& true_course,
                       const std::vector<std::string>& refusals) const {
        std::vector<double> mean(true_course.size());
        for (const auto& course : courses)
            for (std::size_t update = 0; update < mean.size(); ++update) mean[update] += course[update] / P;
        check_close("the mean of the copies", mean, true_course, 1e-4 * true_course.back());
        for (const std::string& refusal : refusals)
            check("the next window refuses",
                  P == 1 ? refusal.empty() : refusal.find("rank 1 has") != std::string::npos, refusal);
    }

    static void check_bytes(const Table& bytes, int a_window) {
        const auto n = values(bytes.column("micro-batches")), window = values(bytes.column("window, bytes")),
                   each = values(bytes.column("a sum each, bytes"));
        for (std::size_t row = 0; row < n.size(); ++row) {
            check_equal("a window: 2(P - 1) S", window[row], a_window);
            check_equal("N times that", each[row], n[row] * a_window);
        }
    }

    // Computes the gradient in one process, which adds the ranks' sums in rank order and divides once.
    std::vector<real> in_rank_order() const {
        std::vector<real> all(1000);
        for (int rank = 0; rank < P; ++rank) {
            std::vector<real> own(1000);
            for (int k = 0; k < 24; ++k) {
                if (k * P / 24 != rank) continue;
                const auto g = gradient_of(k).value().to_vector();
                for (std::size_t i = 0; i < 1000; ++i) own[i] += g[i];
            }
            for (std::size_t i = 0; i < 1000; ++i) all[i] += own[i];
        }
        for (real& each : all) each = -(each / 24);
        return all;
    }
    void check_bits(const std::vector<std::vector<real>>& neighbours,
                    const std::vector<std::vector<real>>& cards, const std::vector<real>& running,
                    const std::vector<real>& exact) const {
        std::vector<double> bounds(1000);
        for (int k = 0; k < 24; ++k) {
            const auto g = gradient_of(k).value().to_vector();
            for (std::size_t i = 0; i < 1000; ++i) bounds[i] += roundings(2 * 24) * std::abs(g[i]) / 24;
        }
        for (int rank = 0; rank < P; ++rank) {
            const auto& three = neighbours[at(rank)];
            check_close("fast: within the bound", of_way(three, 0), running, bounds);
            check_equal("fast: as rank 0", of_way(three, 0), of_way(neighbours[0], 0));
            check_equal("rank_order: by hand", of_way(three, 1), in_rank_order());
            check_equal("exact: one process", of_way(three, 2), exact);
            check_equal("exact: dealt like cards", of_way(cards[at(rank)], 2), exact);
        }
        const int others = differ(of_way(neighbours[0], 1), running);
        check("rank_order: many differ", P == 1 ? others == 0 : others > 100 && others < 1000,
              std::to_string(others));
    }

    void check_failure(const std::vector<std::string>& words) const {
        for (int rank = 0; rank < P; ++rank) {
            const std::string& said = words[at(rank)];
            check(say("rank {} says why", rank),
                  said.find(rank == last ? "is missing" : say("rank {} has left", last)) != std::string::npos,
                  said);
            check(say("rank {} has not stepped", rank),
                  said.ends_with("; w is " + to_string(zeros().value())), said);
        }
    }
};

const RegisterLesson<AcrossProcesses> lesson(
    {.number = 24,
     .slug = "across-processes",
     .title = "one update by several processes",
     .minutes = 25,
     .steps = 10,
     .parameters = {whole_number("ranks", "processes that share the micro-batches", 3, 1, 6)}});

}  // namespace
