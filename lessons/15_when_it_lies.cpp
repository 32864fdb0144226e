// Lesson 15: if items interact in the loss, accumulation computes a different gradient. Each case has a fix.
#include "course/kit/pictures.hpp"
#include "course/kit/talk.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct WhenItLies {
    const std::size_t n = setting("micro"), items = 2 * n;  // n micro-batches of two items

    void talk() {
        step(say("Batch norm in {} micro-batches of two: each is normalised by its own mean and spread.",
                 to_text(std::int64_t(n))));
        const auto x = column(some_values), t = column(some_targets);
        auto gain = weight(1), bias = weight(0);
        const auto x_micro = split(x, 2), t_micro = split(t, 2);
        std::vector<RunningStatistics<real>::Batch> own;
        std::vector<real> after;
        for (std::size_t k = 0; k < n; ++k) {
            if (k == 0) code(2);
            const auto part = batch_norm(x_micro[k], gain, bias, 0.0);
            (mean(t_micro[k] * part.y) / n).backward();
            own.push_back(part.statistics), after.push_back(gain.grad().item());
        }
        show("x", as_words(some_values, 0, items));
        show("targets t", as_words(some_targets, 0, items));

        const std::string last_pair = as_words(some_values, items - 2, items);
        const double of_first = (-some_targets[0] + some_targets[1]) / 2;
        predict(
            say("Each two become -1 1, and d gain, the gain's gradient, is the mean of t x result. {} of "
                "each "
                "micro-batch's, added:",
                n == 2 ? "Half" : one_in(std::int64_t(n))),
            {right(std::round(batch_norm_in_parts() * 1e4) / 1e4).within(0.001),
             wrong(std::round(by_definition(0, items).to_gain / double(items) * 100) / 100,
                   say("That is the full batch, where {} is compared with all. In {} it is below the mean.",
                       some_values[items - 2], last_pair)),
             wrong(batch_norm_in_parts() * double(n),
                   say("Each counts {}: divide by {} once more.", one_in(std::int64_t(n)), n)),
             wrong(of_first, "That is the first of them."),
             wrong(batch_norm_in_parts() * double(n) - of_first,
                   n == 2 ? "That is the second of the two." : "The first is missing, and the division.")},
            hint("What is the mean of (1)(-1) and (-2)(1)? And of (0.5)(-1) and (3)(1)?",
                 n == 2 ? "-1.5 and 1.25: half of each, added."
                        : say("-1.5, 1.25 and so on: {} of each, added.", one_in(std::int64_t(n)))),
            say("In one batch {}: there {} is compared with all, in {} it is the small one.",
                rounded(by_definition(0, items).to_gain / double(items)), some_values[items - 2], last_pair));
        auto of = table({"batch", "mean", "variance", "d gain"});
        gain.zero_grad();
        const auto normed = batch_norm(x, gain, bias, 0.0);
        mean(t * normed.y).backward();
        const double full = double(gain.grad().item());
        of.row(as_words(some_values, 0, items), normed.statistics.mean, normed.statistics.variance, full);
        RunningStatistics<real>::Batch of_all;
        std::vector<real> moments{normed.statistics.mean.item(), normed.statistics.variance.item()};
        for (std::size_t k = 0; k < n; ++k) {
            of_all = of_all.pooled_with(own[k]);
            moments.insert(moments.end(), {own[k].mean.item(), own[k].variance.item()});
            of.row(as_words(some_values, 2 * k, 2 * k + 2) + (k == 0 ? "" : ", added"), own[k].mean,
                   own[k].variance, after[k]);
        }
        const auto micro = double(after.back());
        check_batch_norm(moments, full, micro);

        step("Repair: pool the statistics first; then normalise every part by them.");
        code(2);
        RunningStatistics<real> fixed(1, options().device);
        fixed.mean = of_all.mean, fixed.variance = of_all.variance;
        gain.zero_grad();
        for (std::size_t k = 0; k < n; ++k)
            (mean(t_micro[k] * batch_norm(x_micro[k], gain, bias, fixed, 0.0)) / n).backward();
        show("pooled", std::vector<real>{of_all.mean.item(), of_all.variance.item()});
        show("d gain", gain.grad());
        check_pooled(of_all, gain.grad().item());
        // Batch norm of the full batch returns equal results for x and s x, so the gradient of s is 0.
        auto s = weight(1);
        const auto to_s = [&](const Tensor& y) { return std::abs(grad(mean(t * y), {s}).front().item()); };
        const double in_one = to_s(batch_norm(x * s, gain, bias, 0.0).y),
                     not_repaired = to_s(batch_norm(x * s, gain, bias, fixed, 0.0));
        show("d s, of a scale before it: in one batch, pooled", std::vector<double>{in_one, not_repaired});
        check("in one batch 0; pooled, what lies before is not repaired", in_one < 1e-6 && not_repaired > 1);
        note(
            "For this layer's gain and bias: to it the pooled statistics are constants. For what lies before "
            "it, they depend on the weights, too.");

        step(
            say("\"Particularly beneficial for contrastive learning\". {} pairs x, y: each x a is to find "
                "its own y b.",
                capital(to_text(std::int64_t(items)))));
        const auto xq = column(some_xs), yk = column(some_ys);
        auto a = weight(0.7), b = weight(-0.3);
        const auto xq_micro = split(xq, 2), yk_micro = split(yk, 2);
        double losses = 0;
        for (std::size_t k = 0; k < n; ++k) {
            if (k == 0) code(2);
            const auto part = info_nce(xq_micro[k] * a, yk_micro[k] * b).mean() / n;
            part.backward();
            losses += double(part.item());
        }
        const auto lost = gradients_of({a, b});

        predict(say("All {} at once, or {}: beside the first loss, the second is",
                    to_text(std::int64_t(items)), in_twos()),
                {right(n == 2   ? "about half"
                       : n == 3 ? "about 2/5"
                                : "about 1/3"),
                 wrong("the same", "Fewer rows to be told apart make the task another one."),
                 wrong("about double", "With fewer others the right one is easier to find."),
                 wrong("about zero", "One other is left. To guess between two still costs log 2.")},
                hint("With how many others is a row compared?", "Who guesses among k pays log k."),
                say("A row is compared with {} others, or with 1 other: chance is log {}, or log 2.",
                    items - 1, items));
        auto contrast = table({"pairs", "loss", "d a", "d b"});
        a.zero_grad(), b.zero_grad();
        const auto loss = info_nce(xq * a, yk * b).mean();
        loss.backward();
        const auto wanted = gradients_of({a, b});
        contrast.row(items, loss, wanted[0], wanted[1]);
        contrast.row(in_twos(), losses, lost[0], lost[1]);
        check_contrast({double(loss.item()), wanted[0], wanted[1], losses, lost[0], lost[1]});
        drawn(matmul(xq * a, reshape(yk * b, {1, std::int64_t(items)})), double(loss.item()), losses);

        step("Repair: embed all without a graph; then the loss's gradient there.");
        a.zero_grad(), b.zero_grad();
        std::vector<Tensor> z_parts, u_parts;
        {
            const NoGrad no_graph;
            for (const auto& part : xq_micro) z_parts.push_back(part * a);
            for (const auto& part : yk_micro) u_parts.push_back(part * b);
        }
        code(3);
        auto z = parameter(concat(z_parts).value());
        auto u = parameter(concat(u_parts).value());
        info_nce(z, u).mean().backward();
        const auto to_z = split(constant(z.grad().clone()), 2), to_u = split(constant(u.grad().clone()), 2);
        note("Embed each micro-batch again, and send its rows of that gradient back:");
        for (std::size_t k = 0; k < n; ++k) {
            if (k == 0) code(2);
            (xq_micro[k] * a).backward(to_z[k].value());
            (yk_micro[k] * b).backward(to_u[k].value());
        }
        const auto repaired = gradients_of({a, b});
        show("d a, d b", repaired);
        check_close("as in one batch", repaired, wanted, 1e-6);
        check_close("and the formula", repaired, {all_pairs().to_a, all_pairs().to_b}, 1e-6);

        step("The library does it for any encoders; add_cached() does it in a window.");
        a.zero_grad(), b.zero_grad();
        const auto contrasted = [](const auto& all_of) { return info_nce(all_of[0], all_of[1]).mean(); };
        code(3);
        const auto embed_x = [&](std::size_t part) { return xq_micro[part] * a; };
        const auto embed_y = [&](std::size_t part) { return yk_micro[part] * b; };
        void(cached_backward<real>(n, {embed_x, embed_y}, contrasted));
        check_equal("the same bits", gradients_of({a, b}), repaired);

        step(say("Dropout, {} items. A mask is drawn from a key: seed, layer, and the first item's number.",
                 2 * items));
        const auto rows =
            constant(randn<real>({2 * std::int64_t(items), 16}, {.seed = options().seed, .stream = 1})
                         .value()
                         .to(options().device));
        const auto rows_micro = split(rows, 2);
        const std::uint64_t seed = options().seed, layer = 0;
        auto w =
            parameter(randn<real>({16}, {.seed = options().seed, .stream = 2}).value().to(options().device));
        const auto accumulated = [&](bool by_item) {
            w.zero_grad();
            std::uint64_t row = 0;
            for (const auto& part : rows_micro) {
                (mean(matmul(dropout(part, 0.5, {seed, layer, by_item ? row : 0}), w)) / items).backward();
                row += 2;
            }
            return w.grad().clone();
        };
        code(2);
        const auto all_items = dropout(rows, 0.5, {seed, layer, 0});
        mean(matmul(all_items, w)).backward();

        predict(
            say("The same as {} x 2. What keeps the bits?", items),
            {right("masks by item"),
             wrong("one seed for all", "One seed, and by place the third item draws the mask of the first."),
             wrong("masks by place", "The third item is the first of its micro-batch: another place."),
             wrong("nothing does", "What is drawn may be tied to something that no cut changes.")},
            hint("Which mask does the third item draw, if it is the first of its micro-batch?",
                 "Something of an item stays, however the batch is cut: its number."),
            "By place the third draws the first one's mask, whatever the seed.");
        const Array<real> at_once = w.grad().clone(), per_item = accumulated(true),
                          per_place = accumulated(false);
        auto masks = table({say("{} x 2, masks", items), say("max|difference| to {}", 2 * items)});
        masks.row("by place in its part", largest_difference(per_place, at_once));
        masks.row("by item", largest_difference(per_item, at_once));
        check("by place: more than 0.01 apart", largest_difference(per_place, at_once) > 0.01);
        check_equal("by item: the same bits", per_item, at_once);
        check_items(rows, all_items);

        step("\"No accuracy loss\", \"for every loss function\": if nothing couples the items.");
        auto sums = table({"", "full batch", "micro-batches", "repaired"});
        sums.row("batch norm, d gain", full, micro, gain.grad().item());
        sums.row("contrastive, d a", wanted[0], lost[0], repaired[0]);
        sums.row("dropout, max|difference|", 0.0, largest_difference(per_place, at_once),
                 largest_difference(per_item, at_once));
        note(
            "Exact if: an item's loss depends on that item and the weights only; weights and buffers stand "
            "still within the window; what is random belongs to the item.");
    }

    // Each list contains one number for each of `items` items. Each micro-batch has two items.
    const Vector some_values = first({0, 2, 4, 6, 8, 10, 12, 14}),
                 some_targets = first({1, -2, 0.5, 3, 2, -1, -0.5, 1.5});
    const Vector some_xs = first({0.5, -1, 2, 0.25, -0.75, 1.25, -1.5, 0.75}),
                 some_ys = first({0.4, -0.6, 1.5, 0.1, -0.5, 0.9, -1.2, 0.3});
    Vector first(Vector of_eight) const {
        of_eight.resize(items);
        return of_eight;
    }

    // ---- tools: text and values for tables and checks --------------------------------------------------

    static std::string as_words(const Vector& numbers, std::size_t from, std::size_t to) {
        std::string text;
        for (std::size_t i = from; i < to; ++i) text += (i > from ? " " : "") + Filling(numbers[i]).text;
        return text;
    }

    std::string in_twos() const { return sum_of(std::vector<std::int64_t>(n, 2)); }

    static double rounded(double number) { return std::round(number * 100) / 100; }

    static Tensor column(const std::vector<double>& values) {
        std::vector<real> rounded(values.begin(), values.end());
        return constant(
            Array<real>({static_cast<std::int64_t>(values.size()), 1}, rounded).to(options().device));
    }

    static Tensor weight(double value) {
        return parameter(Array<real>({1}, {static_cast<real>(value)}, options().device));
    }

    static std::vector<double> gradients_of(const std::vector<Tensor>& parameters) {
        std::vector<double> all;
        for (const auto& parameter : parameters) all.push_back(double(parameter.grad().item()));
        return all;
    }

    static double largest_difference(const Array<real>& a, const Array<real>& b) {
        const auto left = a.to_vector(), right = b.to_vector();
        double largest = 0;
        for (std::size_t i = 0; i < left.size(); ++i)
            largest = std::max(largest, std::abs(double(left[i]) - double(right[i])));
        return largest;
    }

    void drawn(const Tensor& similarities, double loss, double losses) const {
        const auto numbers = values(similarities);
        std::vector<Vector> rows;
        for (std::size_t i = 0; i < items; ++i)
            rows.emplace_back(&numbers[items * i], &numbers[items * i] + items);
        graph("similarities", "Similarities z u: each row is to find its own pair among those in its batch",
              Matrices{{{to_text(std::int64_t(items)) + " pairs", "loss " + short_number(loss), items, rows},
                        {n == 2 ? "two and two" : "two by two", "loss " + short_number(losses), 2, rows}}});
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    // Computes the mean, the variance and the gain's gradient of batch norm from their definitions in double.
    struct Normed {
        double mean = 0, variance = 0, to_gain = 0;  // to_gain: the sum of t (x - mean) / deviation
    };
    Normed by_definition(std::size_t from, std::size_t to) const {
        Normed found;
        const auto count = double(to - from);
        for (std::size_t i = from; i < to; ++i) found.mean += some_values[i] / count;
        for (std::size_t i = from; i < to; ++i)
            found.variance += std::pow(some_values[i] - found.mean, 2) / count;
        for (std::size_t i = from; i < to; ++i)
            found.to_gain += some_targets[i] * (some_values[i] - found.mean) / std::sqrt(found.variance);
        return found;
    }
    double batch_norm_in_parts() const {
        double sum = 0;
        for (std::size_t k = 0; k < n; ++k) sum += by_definition(2 * k, 2 * k + 2).to_gain;
        return sum / double(items);
    }

    // Computes the loss and the gradients of the rows [from, to) in double, by the formula of the softmax.
    struct Contrasted {
        double loss = 0, to_a = 0, to_b = 0;
    };
    Contrasted by_formula(std::size_t from, std::size_t to) const {
        constexpr double a = 0.7, b = -0.3;
        Contrasted c;
        const auto count = double(to - from);
        for (std::size_t i = from; i < to; ++i) {
            double total = 0, along = 0;  // sums of exp(logit), and of exp(logit) x y
            for (std::size_t j = from; j < to; ++j) {
                const double weight = std::exp(a * some_xs[i] * b * some_ys[j]);
                total += weight;
                along += weight * some_xs[i] * some_ys[j];
            }
            // derivative with respect to the product a b
            const double slope = (along / total - some_xs[i] * some_ys[i]) / count;
            c.loss += (std::log(total) - a * b * some_xs[i] * some_ys[i]) / count;
            c.to_a += slope * b;
            c.to_b += slope * a;
        }
        return c;
    }

    void check_batch_norm(const std::vector<real>& moments, double full, double micro) const {
        const double whole = by_definition(0, items).to_gain / double(items);
        std::vector<double> expected{by_definition(0, items).mean, by_definition(0, items).variance};
        for (std::size_t k = 0; k < n; ++k) expected.insert(expected.end(), {double(4 * k + 1), 1});
        check_close("moments", moments, expected, roundings(int(items) + 4) * 30);
        check_close("the full batch, by definition", full, whole, 1e-6);
        check_close("in parts, by definition", micro, batch_norm_in_parts(), roundings(12) * 2);
        if (settings_changed()) return;
        check_close("0.950329 and -0.125", {full, micro}, {0.950329, -0.125}, 1e-6);
        check("more than 1 apart", full - micro > 1);
    }

    void check_pooled(const RunningStatistics<real>::Batch& pooled, real to_gain) const {
        const Normed whole = by_definition(0, items);
        check_close(say("mean {}, variance {}", whole.mean, rounded(whole.variance)),
                    {pooled.mean.item(), pooled.variance.item()}, {real(whole.mean), real(whole.variance)},
                    roundings(int(items) + 4) * 30);
        check_close("as in one batch", to_gain, whole.to_gain / double(items), roundings(16) * 3);
    }

    Contrasted all_pairs() const { return by_formula(0, items); }
    void check_contrast(const std::vector<double>& six) const {
        const Contrasted all = all_pairs();
        Contrasted parts;
        for (std::size_t k = 0; k < n; ++k) {
            const Contrasted part = by_formula(2 * k, 2 * k + 2);
            parts.loss += part.loss / double(n);
            parts.to_a += part.to_a / double(n);
            parts.to_b += part.to_b / double(n);
        }
        check_close("the formula", six, {all.loss, all.to_a, all.to_b, parts.loss, parts.to_a, parts.to_b},
                    1e-6);
        // A micro-batch has a smaller loss, because its softmax sums fewer exponentials.
        check("fewer others, less loss", six[3] < six[0]);
        check("about what is said", std::abs(six[3] / six[0] - (n == 2   ? 0.5
                                                                : n == 3 ? 0.4
                                                                         : 1.0 / 3)) < 0.05);
        check("and another gradient", std::abs(six[4] - six[1]) > 0.01 && std::abs(six[5] - six[2]) > 0.01);
        if (settings_changed()) return;
        check_close("and in digits", six, {1.571169, 0.286374, -0.668207, 0.809376, 0.183524, -0.428223},
                    1e-6);
        check("more than a third is lost", six[4] < six[1] * 2 / 3 && six[5] > six[2] * 2 / 3);
    }

    void check_items(const Tensor& rows, const Tensor& all_items) const {
        // An item's mask does not depend on the other items of its micro-batch.
        std::vector<real> one_by_one;
        for (std::uint64_t i = 0; i < 2 * items; ++i) {
            const auto row = slice(rows, 0, static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1);
            const auto kept = dropout(row, 0.5, {options().seed, 0, i}).value().to_vector();
            one_by_one.insert(one_by_one.end(), kept.begin(), kept.end());
        }
        check_equal("one item at a time", one_by_one, all_items.value().to_vector());
    }
};

const RegisterLesson<WhenItLies> lesson({.number = 15,
                                         .slug = "when-it-lies",
                                         .title = "when it lies",
                                         .minutes = 20,
                                         .steps = 10,
                                         .parameters = {
                                             whole_number("micro", "micro-batches of two", 2, 2, 4)}});

}  // namespace
