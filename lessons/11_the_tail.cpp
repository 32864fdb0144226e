// Lesson 11: what an epoch leaves over: the last window is not full, and the last test batch is not either.
#include "tally/lesson/toy.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct TheTail : Toy {
    const Tensor tail = slice(x, 0, 4, 6);  // rows 4 and 5

    void talk() {
        predict(
            "60 000 images, 16 at a time, an update after every 4th. The last one has how many "
            "micro-batches?",
            {right(2), wrong(4, "3750 micro-batches are no multiple of 4."),
             wrong(1, "3749 would leave one over. How many micro-batches are there?"),
             wrong(3, "3750 is 4 x 937 and what?"),
             wrong(0.5, "Half a window, yes. Of how many micro-batches?")},
            hint("How many micro-batches has an epoch?", "Divide by 16 first. Then see what 4 leaves over."),
            "60000 / 16 = 3750, and 3750 / 4 = 937.5.");
        auto epoch = table({"at a time", "batches", "updates", "in the last: batches", "images"});
        for (const std::int64_t n : {1, 4}) {
            const auto micro_batches = split(in_order(60000), 64 / n);
            const auto windows = split(in_order(std::int64_t(micro_batches.size())), n);
            const auto whole = std::int64_t(windows.size()) - 1;
            epoch.row(64 / n, std::int64_t(micro_batches.size()), whole + 1, windows.back().count(),
                      60000 - whole * 64);
        }
        check_epoch(epoch);

        predict("A published listing divides each loss by N = 4. The gradient of a tail of 2 is",
                {right("half of it"), wrong("just right", "It divides by what did not come."),
                 wrong("twice too large", "It divides by more than has come, not by less."),
                 wrong("a quarter of it", "Two have come, not one.")},
                hint("How many means are added, and what are they divided by?",
                     "2 of them; N is 4 all the same."),
                "Two means, divided by four.");
        note("The toy's six rows, one at a time: 6 mod 4 = 2. The tail is rows 4 and 5.");
        for (const auto& row : split(tail, 1)) {
            if (!w.has_grad()) code(2);
            const auto loss = mean(matmul(row, w));
            (loss / 4).backward();
        }
        const std::vector<real> too_small = w.grad().to_vector();
        w.zero_grad();
        mean(matmul(tail, w)).backward();
        const std::vector<real> wanted = w.grad().to_vector();
        show("the listing's gradient", too_small);
        show("the mean over the tail", wanted);
        check_half(too_small, wanted);
        graph("the-tail", "A tail of two micro-batches: divided by two, not by four", [](Picture& p) {
            const TheTail own;
            p.name(own.w, "w");
            auto row = own.x.shape()[0] - own.tail.shape()[0];
            for (const auto& micro : split(own.tail, 1)) {
                auto loss = mean(matmul(micro, own.w)) / 2;
                p.name(micro, "row " + std::to_string(row++)).name(loss, "loss / 2").backward(loss);
            }
        });

        step("Four rules, two epochs. Row i has the loss w_i: -w shows how much it counted.");
        // The loss of row i is w_i: a descent with rate 1 from 0 counts in -w how much each row has weighed.
        const auto counting = [](const Items& items, const Tensor& v) {
            return counted(slice(v, 0, items[0], items[items.count() - 1] + 1));
        };
        auto counts = table({"rule", "updates", "rows 0 to 5 count"});
        const auto count_row = [&](const char* name, const Trained& trained) {
            const Tensor end = Array<real>({6}, trained.after.back());
            counts.row(name, trained.updates, real(0) - end);
        };
        count_row("batches of 4", train(Rule::scale, {6, 6, 4, 1, 2, 1.0}, counting));
        for (const auto& [rule, name] : rules) count_row(name, train(rule, {6, 6, 1, 4, 2, 1.0}, counting));
        check_counts(counts);

        predict("60 items in batches of 8, or as 2 x 4. Under which rule do both end at the same weights?",
                {right("scale"), wrong("by N", "Its tail of two micro-batches is divided by four."),
                 wrong("drop", "The last four items have no say in it; in batches of 8 they have."),
                 wrong("carry", "The tail waits for the next epoch, where it meets other items.")},
                hint("Whose last update is that of the last batch?",
                     "60 = 7 x 8 + 4: follow the last four through each rule."),
                "Its last update is that of the last batch: the mean over 4 items.");
        const Problem problem;
        const auto loss_of = [&](const Items& items, const Tensor& v) { return problem.loss(items, v); };
        const auto large = train(Rule::scale, {60, 3, 8, 1, 5, 0.1}, loss_of);
        auto ends = table({"rule", "updates", "w after 5 epochs", "off after 1", "after 5"});
        ends.row("batches of 8", large.updates, large.after.back(), "", "");
        for (const auto& [rule, name] : rules) {
            const auto small = train(rule, {60, 3, 2, 4, 5, 0.1}, loss_of);
            ends.row(name, small.updates, small.after[4], furthest(small.after[0], large.after[0]),
                     furthest(small.after[4], large.after[4]));
        }
        check_ends(problem, large, train(Rule::scale, {60, 3, 2, 4, 5, 0.1}, loss_of), ends);

        predict("10 000 test images, 64 at a time; batch means are averaged. One of the last 16 counts as",
                {right(4), wrong(1, "The last mean has 16 items, and counts as much as one of 64."),
                 wrong(0.25, "The other way round: fewer items share the same weight."),
                 wrong(16, "That is how many they are."), wrong(64, "That is how many the others are.")},
                hint("How many items share the weight of the last mean?", "1/157 for 16 items, or for 64."),
                "It counts as 4 others: 1/(157 x 16) against 1/(157 x 64).");
        const Tensor all = Array<real>({10000}, test_losses(), options().device);
        auto estimates = table({"at a time", "batches", "mean of means", "sum / count"});
        std::vector<double> of_means, by_items;
        for (const std::int64_t size : {64, 16}) {
            double means = 0, sums = 0, count = 0;
            const auto parts = split(all, size);
            for (const auto& part : parts) {
                const auto loss = counted(part);
                means += double(loss.mean().item()) / double(parts.size());
                sums += double(loss.sum.item());
                count += double(loss.count.item());
            }
            of_means.push_back(means), by_items.push_back(sums / count);
            estimates.row(size, std::int64_t(parts.size()), std::to_string(means),
                          std::to_string(sums / count));
        }
        check_test_losses(of_means, by_items);
        const auto by_64 = split(all, 64);
        show("64 / 16", double(by_64.front().shape()[0]) / double(by_64.back().shape()[0]));
        note("Compare test losses only if both are sums over counts.");
    }

    // A linear problem: 60 items of three numbers, and targets y = X (1, -2, 3) with some noise.
    struct Problem {
        Array<real> X = random_normal<real>({60, 3}, options().seed, 1, real(0), real(1));
        Array<real> y = (matmul(Tensor(X), Tensor(Array<real>({3}, {1, -2, 3}))) +
                         Tensor(random_normal<real>({60}, options().seed, 2, real(0), real(0.5))))
                            .value();

        Loss<Array<real>> loss(const Items& items, const Tensor& w) const {
            const Tensor x = rows(X, items).to(options().device),
                         target = rows(y, items).to(options().device);
            return mse(matmul(x, w), target);
        }
    };

    // What divides the gradient of a window: a number of micro-batches fixed beforehand, as in the published
    // listing, or what has come, with a policy for a window that is not full.
    enum class Rule { listing, scale, drop, carry };

    struct Trained {
        std::vector<std::vector<real>> after;  // w at the end of each epoch
        std::int64_t updates = 0;
    };

    struct Plan {
        std::int64_t items, weights, at_a_time;
        int n, epochs;
        double rate;
    };

    // From w = 0, with an update after every n-th micro-batch.
    template <class LossOf> static Trained train(Rule rule, const Plan& plan, LossOf loss_of) {
        const auto w = parameter(Array<real>::zeros({plan.weights}, options().device));
        Sgd sgd({w}, {.learning_rate = plan.rate});
        const auto micro_batches = split(in_order(plan.items), plan.at_a_time);
        Trained trained;
        if (rule == Rule::listing) {
            for (int epoch = 0; epoch < plan.epochs; ++epoch) {
                for (std::size_t batch = 0; batch < micro_batches.size(); ++batch) {
                    (loss_of(micro_batches[batch], w).mean() / plan.n).backward();
                    if ((batch + 1) % std::size_t(plan.n) != 0 && batch + 1 != micro_batches.size()) continue;
                    sgd.step();
                    sgd.zero_grad();
                    ++trained.updates;
                }
                trained.after.push_back(w.value().to_vector());
            }
            return trained;
        }
        const Tail policy = rule == Rule::drop ? Tail::drop : rule == Rule::carry ? Tail::carry : Tail::scale;
        Window window(sgd, {.micro_batches = plan.n, .tail = policy});
        for (int epoch = 0; epoch < plan.epochs; ++epoch) {
            for (const Items& items : micro_batches) {
                window.add(loss_of(items, w));
                if (window.full()) window.finish();
            }
            window.flush();
            trained.after.push_back(w.value().to_vector());
        }
        trained.updates = window.updates();
        return trained;
    }

    static constexpr std::pair<Rule, const char*> rules[] = {{Rule::listing, "divided by N"},
                                                             {Rule::scale, "Tail::scale"},
                                                             {Rule::drop, "Tail::drop"},
                                                             {Rule::carry, "Tail::carry"}};

    // ---- the tools: text, and numbers as a table or a check wants them ---------------------------------

    // Losses of 10 000 images from 0 to 1, in units of 2^-24; the last 16 are hard.
    static std::vector<real> test_losses() {
        std::vector<real> losses;
        for (std::uint64_t i = 0; i < 10000; ++i) {
            const std::int64_t units = (i < 9984 ? 0 : 1 << 23) + (random::bits(options().seed, 3, i) >> 9);
            losses.push_back(real(std::ldexp(double(units), -24)));
        }
        return losses;
    }

    static double furthest(const std::vector<real>& a, const std::vector<real>& b) {
        double most = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            most = std::max(most, std::abs(double(a[i]) - double(b[i])));
        return most;
    }

    // ---- the witness ----------------------------------------------------------------------------------------

    static void check_epoch(const Table& epoch) {
        check_equal("ceil(60000 / 64), 60000 / 16 batches", epoch.column("batches"),
                    {(60000 + 63) / 64, 60000 / 16});
        check_equal("938 updates either way", epoch.column("updates"), {938, 938});
        check_equal("the tail: 3750 mod 4 = 2", values(epoch.column("in the last: batches"))[1], 3750 % 4);
        check_equal("of 32 images, as with 64", epoch.column("images"), {60000 % 64, 60000 % 64});
    }

    static void check_half(const std::vector<real>& too_small, const std::vector<real>& right) {
        std::vector<real> half;
        for (const real component : right) half.push_back(component / 2);
        check_equal("exactly half", too_small, half);
        check_close("right", right, {-1.7466 / 2, 0.2490 / 2, -2.05 / 2}, roundings(9) * 2.05 / 2);
    }

    static void check_counts(const Table& counts) {
        const auto weighed = values(counts.column("rows 0 to 5 count"));
        const auto row = [&](std::size_t i) {
            const auto from = weighed.begin() + std::ptrdiff_t(6 * i);
            return std::vector<double>(from, from + 6);
        };
        check_equal("updates", counts.column("updates"), {4, 4, 4, 2, 3});
        check_equal("a batch of 4, a batch of 2", row(0), {0.5, 0.5, 0.5, 0.5, 1.0, 1.0});
        check_equal("divided by N", row(1), {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
        check_equal("Tail::scale, as the batches", row(2), row(0));
        check_equal("Tail::drop", row(3), {0.5, 0.5, 0.5, 0.5, 0.0, 0.0});
        check_equal("Tail::carry", row(4), {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
    }

    // The same training in batches, by plain loops in double.
    static std::vector<double> by_hand(const Problem& problem, std::size_t size, int epochs, double rate) {
        const Array<real>&X = problem.X, &y = problem.y;
        std::vector<double> v(3);
        for (int epoch = 0; epoch < epochs; ++epoch)
            for (std::size_t from = 0; from < 60; from += size) {
                const std::size_t to = std::min<std::size_t>(from + size, 60);
                std::vector<double> gradient(3);
                for (std::size_t i = from; i < to; ++i) {
                    double error = -double(y.span()[i]);
                    for (std::size_t j = 0; j < 3; ++j) error += double(X.span()[3 * i + j]) * v[j];
                    for (std::size_t j = 0; j < 3; ++j)
                        gradient[j] += 2 * error * double(X.span()[3 * i + j]) / double(to - from);
                }
                for (std::size_t j = 0; j < 3; ++j) v[j] -= rate * gradient[j];
            }
        return v;
    }

    // An update rounds w, which is about 3, to within 2e-7; the descent shrinks what earlier ones have left.
    static void check_ends(const Problem& problem, const Trained& large, const Trained& scaled,
                           const Table& ends) {
        const auto off = values(ends.column("after 5"));  // of the four rules
        std::vector<real> scale, batches_of_8;            // after every epoch
        for (std::size_t e = 0; e < 5; ++e) {
            scale.insert(scale.end(), scaled.after[e].begin(), scaled.after[e].end());
            batches_of_8.insert(batches_of_8.end(), large.after[e].begin(), large.after[e].end());
        }
        check_close("by hand", large.after.back(), by_hand(problem, 8, 5, 0.1), 1e-6);
        check_close("scale", scale, batches_of_8, 1e-6);
        check("the others: off by more than 1e-3", std::min({off[0], off[2], off[3]}) > 1e-3);
    }

    // The losses are whole numbers of 2^-24, so that sums of integers are an exact witness.
    static void check_test_losses(const std::vector<double>& of_means, const std::vector<double>& by_items) {
        const std::vector<real> losses = test_losses();
        std::int64_t exact = 0;
        for (const real loss : losses) exact += std::int64_t(std::ldexp(double(loss), 24));
        const double truth = std::ldexp(double(exact), -24) / 10000;
        check_close("by items", by_items, {truth, truth}, roundings(66));
        check_close("means, 16", of_means[1], truth, roundings(66));
        check("means, 64: another number", std::abs(of_means[0] - truth) > 1e-3);
        double hard = 0;
        for (std::size_t i = 9984; i < 10000; ++i) hard += double(losses[i]) / 16;
        // (1.2) of docs/mathematics.md with 156 sizes of 64 and one of 16.
        check_close("formula", of_means[0] - truth, (hard - truth) * 0.75 / 157, 2 * roundings(66));
    }
};

const Given<TheTail> lesson(
    {.number = 11, .slug = "the-tail", .title = "the tail", .minutes = 20, .steps = 5});

}  // namespace
