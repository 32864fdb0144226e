// Lesson 11: the last update of an epoch (the tail) and the last test batch may be smaller than the others.
#include "course/kit/toy.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct TheTail : Toy {
    const int n = setting("micro"), images = setting("items");
    const int micros = (images + 15) / 16,
              left = left_over(micros);  // micro-batches in the last update of an epoch
    const int last = left_over(6);       // rows in the toy's last update; a micro-batch is one row
    const Tensor tail = slice(x, 0, 6 - last, 6);

    void talk() {
        if (left == n)
            step(say(
                "{} images, 16 at a time, an update after every {} micro-batches: the last one has all {}.",
                images, n, n));
        else
            predict(
                say("{} images, 16 at a time; an update after every {} micro-batches and at the end. The "
                    "last update has how many micro-batches?",
                    images == 60000 ? "60 000" : say("{}", images), n),
                {right(left), wrong(n, say("{} micro-batches are no multiple of {}.", micros, n)),
                 wrong(1,
                       say("{} would leave one over. How many micro-batches are there?", micros - left + 1)),
                 wrong(3, say("{} is {} x {} and what?", micros, n, micros / n)),
                 wrong(double(left) / n, "A part of an update, yes. Of how many micro-batches?")},
                hint("How many micro-batches has an epoch?",
                     say("Divide by 16 first. Then see what {} leaves over.", n)),
                say("{} / 16 makes {}, and {} = {} x {} + {}.", images, micros, micros, n, micros / n, left));
        auto epoch = table({"at a time", "batches", "updates", "in the last: batches", "images"});
        for (const std::int64_t k : {1, n}) {
            const auto micro_batches = split(Items::in_order(images), 16 * n / k);
            const auto windows = split(Items::in_order(std::int64_t(micro_batches.size())), k);
            const auto whole = std::int64_t(windows.size()) - 1;
            epoch.row(16 * n / k, std::int64_t(micro_batches.size()), whole + 1, windows.back().count(),
                      images - whole * 16 * n);
        }
        check_epoch(epoch);

        if (last == n)
            step(say("A published listing divides each loss by N = {}. Six rows leave no tail.", n));
        else
            predict(say("A published listing divides each loss by N = {}. The gradient of a tail of {} is", n,
                        last),
                    {right(part(last)), wrong("just right", "It divides by what did not come."),
                     wrong(times(n / last) + " too large", "It divides by more than has come, not by less."),
                     wrong(part(other),
                           say("{} come, not {}.", last == 1 ? "One has" : capital(to_text(last)) + " have",
                               to_text(other)))},
                    hint("How many means are added, and what are they divided by?",
                         say("{} of them; N is {} all the same.", last, n)),
                    say("{}, divided by {}.", capital(many_in_words(last, "means")), to_text(n)));
        note(say("The toy's six rows, one at a time: {}.",
                 last == n
                     ? say("6 = {} x {}. The last update has rows {} to 5", n, 6 / n, 6 - n)
                     : say("6 mod {} = {}. The tail is {}", n, last, last == 1 ? "row 5" : "rows 4 and 5")));
        for (const auto& row : split(tail, 1)) {
            if (!w.has_grad()) code(2);
            const auto loss = mean(matmul(row, w));
            (loss / n).backward();
        }
        const std::vector<real> by_n = w.grad().to_vector();
        w.zero_grad();
        mean(matmul(tail, w)).backward();
        const std::vector<real> wanted = w.grad().to_vector();
        show("the listing's gradient", by_n);
        show(last == n ? "the mean of these" : "the mean over the tail", wanted);
        require_valid_part(by_n, wanted);
        graph("the-tail",
              last == n ? "No tail: the last update has all its micro-batches"
                        : say("A tail of {}: divided by {}, not by {}", many_in_words(last, "micro-batches"),
                              to_text(last), to_text(n)),
              [this](Picture& p) { drawn(p); });

        step(say("Four rules, two epochs of six rows, N = {}. How much has each row counted?", n));
        note(
            "scale: a tail's update is divided by what came. drop: it makes none. carry: the next epoch "
            "fills it.");
        // The loss of row i is w_i. An update with learning rate 1 subtracts the weight of row i from w_i.
        const auto counting = [](const Items& items, const Tensor& v) {
            return Loss(slice(v, 0, items[0], items[items.count() - 1] + 1));
        };
        auto counts = table({"rule", "updates", "rows 0 to 5 count"});
        const auto count_row = [&](const std::string& name, const Trained& trained) {
            const Tensor end = Array<real>({6}, trained.after.back());
            counts.row(name, trained.updates, real(0) - end);
        };
        count_row(say("batches of {}", n), train(Rule::scale, {6, 6, n, 1, 2, 1.0}, counting));
        for (const auto& [rule, name] : rules) count_row(name, train(rule, {6, 6, 1, n, 2, 1.0}, counting));
        note("Seen by giving row i the loss w_i: from w = 0, with rate 1, -w is how much it has counted.");
        check_counts(counts);

        const Problem problem(30 % n == 0 ? 62 : 60);  // so that the last window is not full
        const int over = problem.items % (2 * n);
        predict(say("{} items in batches of {}, or as {} micro-batches of 2. Under which rule do both end at "
                    "the same weights?",
                    problem.items, 2 * n, n),
                {right("scale"),
                 wrong("by N", say("Its tail of {} is divided by {}.",
                                   many_in_words(over / 2, "micro-batches"), to_text(n))),
                 wrong("drop", say("The last {} items have no say in it; in batches of {} they have.",
                                   to_text(over), 2 * n)),
                 wrong("carry", "The tail waits for the next epoch, where it meets other items.")},
                hint("Whose last update is that of the last batch?",
                     say("{} = {} x {} + {}: follow the last {} through each rule.", problem.items,
                         problem.items / (2 * n), 2 * n, over, to_text(over))),
                say("Its last update is that of the last batch: the mean over {} items.", over));
        const auto loss_of = [&](const Items& items, const Tensor& v) { return problem.loss(items, v); };
        const auto large = train(Rule::scale, {problem.items, 3, 2 * n, 1, 5, 0.1}, loss_of);
        auto ends = table({"rule", "updates", "w after 5 epochs", "off after 1", "after 5"});
        ends.row(say("batches of {}", 2 * n), large.updates, large.after.back(), "", "");
        std::vector<double> off;
        for (const auto& [rule, name] : rules) {
            const auto small = train(rule, {problem.items, 3, 2, n, 5, 0.1}, loss_of);
            off.push_back(furthest(small.after[4], large.after[4]));
            ends.row(name, small.updates, small.after[4], in_brief(furthest(small.after[0], large.after[0])),
                     in_brief(off.back()));
        }
        check_ends(problem, large, train(Rule::scale, {problem.items, 3, 2, n, 5, 0.1}, loss_of), off);

        predict(
            "10 000 test images, 64 at a time; batch means are averaged. One of the last 16 counts as much "
            "as "
            "how many others?",
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
                const auto loss = Loss(part);
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

    // Describes a linear problem. The target of an item x is the dot product of x and (1, -2, 3), plus noise.
    struct Problem {
        explicit Problem(int count) : items(count) {}

        int items;
        Array<real> X = randn<real>({items, 3}, {.seed = options().seed, .stream = 1}).value();
        Array<real> y = (matmul(Tensor(X), Tensor(Array<real>({3}, {1, -2, 3}))) +
                         Tensor(randn<real>({items}, 0, 0.5, {.seed = options().seed, .stream = 2}).value()))
                            .value();

        Loss<Array<real>> loss(const Items& some, const Tensor& w) const {
            const Tensor x = rows(X, some).to(options().device), target = rows(y, some).to(options().device);
            return mse(matmul(x, w), target);
        }
    };

    // The published listing divides the gradient by a fixed number of micro-batches. A Window divides the
    // gradient by the number of added micro-batches, and has three rules for the tail.
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

    // Trains from w = 0, with an update after every n-th micro-batch.
    template <class LossOf> static Trained train(Rule rule, const Plan& plan, LossOf loss_of) {
        const auto w = parameter(Array<real>::zeros({plan.weights}, options().device));
        Sgd sgd({w}, {.learning_rate = plan.rate});
        const auto micro_batches = split(Items::in_order(plan.items), plan.at_a_time);
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

    // ---- tools: text and values for tables and checks --------------------------------------------------

    // Divides a number of things into groups of n, and returns the number of things in the last group.
    int left_over(int things) const { return things % n == 0 ? n : things % n; }

    // The wrong answer is the fraction other / n, which differs from the right answer last / n.
    const int other = 2 * last == n ? 1 : n - last;
    std::string part(int of_n) const {
        return 2 * of_n == n   ? "half of the right one"
               : 4 * of_n == n ? "a quarter of the right one"
                               : say("{}/{} of the right one", of_n, n);
    }

    void drawn(Picture& p) const {
        const TheTail own;
        p.name(own.w, "w");
        auto row = 6 - last;
        for (const auto& micro : split(own.tail, 1)) {
            auto loss = mean(matmul(micro, own.w)) / last;
            p.name(micro, say("row {}", row++)).name(loss, say("loss / {}", last)).backward(loss);
        }
    }

    // Returns losses of 10 000 images as multiples of 2^-24 from 0 to 1. The last 16 images are hard.
    static std::vector<real> test_losses() {
        std::vector<real> losses;
        for (const float drawn :
             uniform({10000}, 0, 1, {.seed = options().seed, .stream = 3}).value().to_vector()) {
            const double units = std::floor(std::ldexp(drawn, 23)) + (losses.size() < 9984 ? 0 : 1 << 23);
            losses.push_back(real(std::ldexp(units, -24)));
        }
        return losses;
    }

    static double furthest(const std::vector<real>& a, const std::vector<real>& b) {
        double most = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            most = std::max(most, std::abs(double(a[i]) - double(b[i])));
        return most;
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    void check_epoch(const Table& epoch) const {
        const int batch = 16 * n, updates = (images + batch - 1) / batch;
        const int images_left = images - (updates - 1) * batch;
        check_equal(say("ceil({} / {}), ceil({} / 16) batches", images, batch, images),
                    epoch.column("batches"), {updates, (images + 15) / 16});
        check_equal(say("{} updates either way", updates), epoch.column("updates"), {updates, updates});
        check_equal(say("in the last: {} of {}", left, n), values(epoch.column("in the last: batches"))[1],
                    micros - (updates - 1) * n);
        check_equal(say("of {} images, as with {}", images_left, batch), epoch.column("images"),
                    {images_left, images_left});
    }

    void require_valid_part(const std::vector<real>& by_n, const std::vector<real>& right) const {
        std::vector<real> part_of_it;
        for (const real component : right) part_of_it.push_back(component * real(last) / real(n));
        const double bound = roundings(9) * largest_of_tail() / last;
        if (2 * last == n)
            check_equal("exactly half", by_n, part_of_it);
        else
            check_close(say("{}/{} of the right one", last, n), by_n, part_of_it, 2 * bound);
        check_close("right", right, exact_means(std::size_t(6 - last)), bound);
    }

    double largest_of_tail() const {
        std::vector<double> sums(3);
        const std::vector<double> numbers = values(tail);
        for (std::size_t i = 0; i < numbers.size(); ++i) sums[i % 3] += std::abs(numbers[i]);
        return *std::max_element(sums.begin(), sums.end());
    }

    void check_counts(const Table& counts) const {
        const auto weighed = values(counts.column("rows 0 to 5 count"));
        const auto row = [&](std::size_t i) {
            const auto from = weighed.begin() + std::ptrdiff_t(6 * i);
            return std::vector<double>(from, from + 6);
        };
        const int whole = 6 / n, updates = 2 * ((5 + n) / n);
        check_equal("updates", counts.column("updates"), {updates, updates, updates, 2 * whole, 12 / n});
        std::vector<double> as_batches, by_n(6, 2.0 / n), dropped, carried;
        for (int i = 0; i < 6; ++i) {
            const bool in_whole = i < whole * n;
            as_batches.push_back(2.0 / (in_whole ? n : last));
            dropped.push_back(in_whole ? 2.0 / n : 0);
            carried.push_back(((i < 12 / n * n) + (6 + i < 12 / n * n)) / double(n));
        }
        const auto same = [&](std::string_view name, std::size_t i, const std::vector<double>& expected) {
            check_close(name, row(i), expected, roundings(4));
        };
        same(say("batches of {}", n), 0, as_batches);
        same("divided by N", 1, by_n);
        same("Tail::scale, as the batches", 2, as_batches);
        same("Tail::drop", 3, dropped);
        same("Tail::carry", 4, carried);
    }

    // Trains on batches of equal size with plain loops in double.
    static std::vector<double> by_hand(const Problem& problem, std::size_t size, int epochs, double rate) {
        const auto items = std::size_t(problem.items);
        const Array<real>&X = problem.X, &y = problem.y;
        std::vector<double> v(3);
        for (int epoch = 0; epoch < epochs; ++epoch)
            for (std::size_t from = 0; from < items; from += size) {
                const std::size_t to = std::min(from + size, items);
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

    static std::string in_brief(double off) { return off < 1e-3 ? short_text(off) : row_text({off}, 4); }

    // An update rounds w, which is about 3, by at most 2e-7. Later updates reduce this error.
    void check_ends(const Problem& problem, const Trained& large, const Trained& scaled,
                    const std::vector<double>& off) const {  // errors of the four rules after 5 epochs
        std::vector<real> scale, batches_of_8;               // after every epoch
        for (std::size_t e = 0; e < 5; ++e) {
            scale.insert(scale.end(), scaled.after[e].begin(), scaled.after[e].end());
            batches_of_8.insert(batches_of_8.end(), large.after[e].begin(), large.after[e].end());
        }
        check_close("by hand", large.after.back(), by_hand(problem, std::size_t(2 * n), 5, 0.1), 1e-6);
        check_close("scale", scale, batches_of_8, 1e-6);
        check("the others: off by more than 1e-5", std::min({off[0], off[2], off[3]}) > 1e-5);
    }

    // The losses are multiples of 2^-24, so integers give exact sums.
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
        // The formula is (1.2) of docs/mathematics.md for 156 batches of 64 items and one batch of 16 items.
        check_close("formula", of_means[0] - truth, (hard - truth) * 0.75 / 157, 2 * roundings(66));
    }
};

const RegisterLesson<TheTail> lesson({.number = 11,
                                      .slug = "the-tail",
                                      .title = "the tail",
                                      .minutes = 20,
                                      .steps = 5,
                                      .parameters = {
                                          whole_number("micro", "micro-batches between two updates", 4, 2, 6),
                                          whole_number("items", "images of an epoch", 60000, 1000, 70000)}});

}  // namespace
