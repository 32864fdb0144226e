// Lesson 15: where items meet in the loss, accumulation computes something else; and how each
// case is repaired.
#include "tally/lesson/pictures.hpp"
#include "tally/lesson/talk.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct WhenItLies {
    void talk() {
        const auto x = column(four_values), t = column(four_targets);
        auto gain = weight(1), bias = weight(0);

        predict(
            "Batch norm turns 0 2 into -1 1, and 4 6 likewise. The gain's gradient is the mean of target x "
            "result. Targets 1 -2, then 0.5 3; half of each micro-batch's, added:",
            {right(-0.125).within(0.001),
             wrong(0.95, "That is the full batch of 0 2 4 6, where 4 is above the mean. In 4 6 it is below."),
             wrong(-0.25, "Each of the two counts a half: halve it once more."),
             wrong(-1.5, "That is the first of the two."), wrong(1.25, "That is the second of the two.")},
            hint("What is the mean of (1)(-1) and (-2)(1)? And of (0.5)(-1) and (3)(1)?",
                 "-1.5 and 1.25: half of each, added."),
            "In one batch 0.95: there 4 is above the mean, in {4, 6} it is the small one.");
        auto of = table({"batch", "mean", "variance", "d gain"});
        const auto normed = batch_norm(x, gain, bias, 0.0);
        mean(t * normed.y).backward();
        const double full = double(gain.grad().item());
        of.row("0 2 4 6", normed.batch.mean, normed.batch.variance, full);
        gain.zero_grad();
        const auto x_micro = split(x, 2), t_micro = split(t, 2);
        BatchStatistics<real> of_both;
        std::vector<real> moments{normed.batch.mean.item(), normed.batch.variance.item()};
        for (std::size_t k = 0; k < 2; ++k) {
            const auto part = batch_norm(x_micro[k], gain, bias, 0.0);
            (mean(t_micro[k] * part.y) / 2).backward();
            of_both = pooled(of_both, part.batch);
            moments.insert(moments.end(), {part.batch.mean.item(), part.batch.variance.item()});
            of.row(k == 0 ? "0 2" : "4 6, added", part.batch.mean, part.batch.variance, gain.grad());
        }
        const double micro = double(gain.grad().item());
        check_batch_norm(moments, full, micro);

        step("Repair: pool the statistics first; then normalise every part by them.");
        code(2);
        RunningStatistics<real> fixed(1, options().device);
        fixed.mean = of_both.mean, fixed.variance = of_both.variance;
        gain.zero_grad();
        for (std::size_t k = 0; k < 2; ++k)
            (mean(t_micro[k] * batch_norm(x_micro[k], gain, bias, fixed, 0.0)) / 2).backward();
        show("pooled", std::vector<real>{of_both.mean.item(), of_both.variance.item()});
        show("d gain", gain.grad());
        check_pooled(of_both, gain.grad().item());
        // A scale s before the layer changes nothing in the full batch: mean and deviation scale with it.
        auto s = weight(1);
        const auto to_s = [&](const Tensor& y) { return std::abs(grad(mean(t * y), {s}).front().item()); };
        const double in_one = to_s(batch_norm(x * s, gain, bias, 0.0).y),
                     not_repaired = to_s(batch_norm(x * s, gain, bias, fixed, 0.0));
        show("d s, a scale before it", std::vector<double>{in_one, not_repaired});
        check("in one batch 0; pooled, what lies before is not repaired", in_one < 1e-6 && not_repaired > 1);
        note(
            "For this layer's gain and bias: to it the pooled statistics are constants. For what lies before "
            "it, they depend on the weights, too.");

        predict(
            "\"Particularly beneficial for contrastive learning\". Four pairs, then 2 + 2: the loss is",
            {right("about half"), wrong("the same", "Fewer rows to be told apart make the task another one."),
             wrong("about double", "With fewer others the right one is easier to find."),
             wrong("about zero", "One other is left. To guess between two still costs log 2.")},
            hint("With how many others is a row compared?", "Who guesses among k pays log k."),
            "A row is compared with 3 others, or with 1 other: chance is log 4, or log 2.");
        const auto xq = column(xs), yk = column(ys);
        auto a = weight(0.7), b = weight(-0.3);
        const auto xq_micro = split(xq, 2), yk_micro = split(yk, 2);
        auto contrast = table({"pairs", "loss", "d a", "d b"});
        const auto loss = info_nce(xq * a, yk * b).mean();
        loss.backward();
        const auto wanted = gradients_of({a, b});
        contrast.row("4", loss, wanted[0], wanted[1]);
        a.zero_grad(), b.zero_grad();
        double losses = 0;
        for (std::size_t k = 0; k < 2; ++k) {
            const auto part = info_nce(xq_micro[k] * a, yk_micro[k] * b).mean() / 2;
            part.backward();
            losses += double(part.item());
        }
        const auto lost = gradients_of({a, b});
        contrast.row("2 + 2", losses, lost[0], lost[1]);
        check_contrast({double(loss.item()), wanted[0], wanted[1], losses, lost[0], lost[1]});
        check("more than a third is lost", lost[0] < wanted[0] * 2 / 3 && lost[1] > wanted[1] * 2 / 3);
        drawn(matmul(xq * a, reshape(yk * b, {1, 4})), double(loss.item()), losses);

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
        for (std::size_t k = 0; k < 2; ++k) {
            if (k == 0) code(2);
            (xq_micro[k] * a).backward(to_z[k].value());
            (yk_micro[k] * b).backward(to_u[k].value());
        }
        const auto repaired = gradients_of({a, b});
        show("d a, d b", repaired);
        check_close("as in one batch", repaired, wanted, 1e-6);
        check_close("and the formula", repaired, {four().to_a, four().to_b}, 1e-6);

        step("The library does it for any encoders; add_cached() does it in a window.");
        a.zero_grad(), b.zero_grad();
        const auto contrasted = [](const auto& all_of) { return info_nce(all_of[0], all_of[1]).mean(); };
        code(3);
        const auto embed_x = [&](std::size_t part) { return xq_micro[part] * a; };
        const auto embed_y = [&](std::size_t part) { return yk_micro[part] * b; };
        cached_backward<real>(2, {embed_x, embed_y}, contrasted);
        check_equal("the same bits", gradients_of({a, b}), repaired);

        predict(
            "Dropout, 8 items or 4 x 2. What keeps the bits?",
            {right("masks by item"),
             wrong("one seed for all", "One seed, and by place the third item draws the mask of the first."),
             wrong("masks by place", "The third item is the first of its micro-batch: another place."),
             wrong("nothing does", "What is drawn may be tied to something that no cut changes.")},
            hint("Which mask does the third item draw, if it is the first of its micro-batch?",
                 "Something of an item stays, however the batch is cut: its number."),
            "By place the third draws the first one's mask, whatever the seed.");
        const auto items = constant(random_normal<real>({8, 16}, options().seed, 1).to(options().device));
        const auto items_micro = split(items, 2);
        const std::uint64_t seed = options().seed, layer = 0;
        auto w = parameter(random_normal<real>({16}, options().seed, 2).to(options().device));
        const auto accumulated = [&](bool by_item) {
            w.zero_grad();
            std::uint64_t row = 0;
            for (const auto& part : items_micro) {
                const MaskKey key{seed, layer, by_item ? row : 0};
                (mean(matmul(dropout(part, 0.5, key), w)) / 4).backward();
                row += 2;
            }
            return w.grad().clone();
        };
        code(2);
        const auto all_items = dropout(items, 0.5, MaskKey{seed, layer, 0});
        mean(matmul(all_items, w)).backward();
        const Array<real> at_once = w.grad().clone(), per_item = accumulated(true),
                          per_place = accumulated(false);
        auto masks = table({"4 x 2, masks", "max|difference| to 8"});
        masks.row("by place in its part", largest_difference(per_place, at_once));
        masks.row("by item", largest_difference(per_item, at_once));
        check("by place: more than 0.01 apart", largest_difference(per_place, at_once) > 0.01);
        check_equal("by item: the same bits", per_item, at_once);
        check_items(items, all_items);

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

    inline static const std::vector<double> four_values{0, 2, 4, 6}, four_targets{1, -2, 0.5, 3};

    inline static const std::vector<double> xs{0.5, -1, 2, 0.25}, ys{0.4, -0.6, 1.5, 0.1};

    // ---- the tools: text, and numbers as a table or a check wants them ---------------------------------

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

    static void drawn(const Tensor& similarities, double loss, double losses) {
        const auto numbers = values(similarities);
        std::vector<Vector> rows;
        for (std::size_t i = 0; i < 4; ++i) rows.emplace_back(&numbers[4 * i], &numbers[4 * i] + 4);
        graph("similarities", "Similarities z u: each row is to find its own pair among those in its batch",
              Matrices{{{"four pairs", "loss " + short_number(loss), 4, rows},
                        {"two and two", "loss " + short_number(losses), 2, rows}}});
    }

    // ---- the witness ----------------------------------------------------------------------------------------

    // Batch norm's mean, variance and d gain from their definitions, in double.
    struct Normed {
        double mean = 0, variance = 0, to_gain = 0;  // to_gain: the sum of t (x - mean) / deviation
    };
    static Normed by_definition(std::size_t from, std::size_t to) {
        Normed n;
        const auto items = double(to - from);
        for (std::size_t i = from; i < to; ++i) n.mean += four_values[i] / items;
        for (std::size_t i = from; i < to; ++i) n.variance += std::pow(four_values[i] - n.mean, 2) / items;
        for (std::size_t i = from; i < to; ++i)
            n.to_gain += four_targets[i] * (four_values[i] - n.mean) / std::sqrt(n.variance);
        return n;
    }

    // Loss and gradients of rows [from, to) in double, from the formula of the softmax.
    struct Contrasted {
        double loss = 0, to_a = 0, to_b = 0;
    };
    static Contrasted by_formula(std::size_t from, std::size_t to, double a, double b) {
        Contrasted c;
        const auto items = double(to - from);
        for (std::size_t i = from; i < to; ++i) {
            double total = 0, along = 0;  // of exp(logit), and of exp(logit) x y
            for (std::size_t j = from; j < to; ++j) {
                const double weight = std::exp(a * xs[i] * b * ys[j]);
                total += weight;
                along += weight * xs[i] * ys[j];
            }
            const double slope = (along / total - xs[i] * ys[i]) / items;  // by the product a b
            c.loss += (std::log(total) - a * b * xs[i] * ys[i]) / items;
            c.to_a += slope * b;
            c.to_b += slope * a;
        }
        return c;
    }

    static void check_batch_norm(const std::vector<real>& moments, double full, double micro) {
        const Normed whole = by_definition(0, 4), left = by_definition(0, 2), right = by_definition(2, 4);
        check_close("moments", moments, {3, 5, 1, 1, 5, 1}, roundings(8) * 8);
        check_close("0.950329", {full, full}, {0.950329, whole.to_gain / 4}, 1e-6);
        check_close("-0.125", micro, (left.to_gain + right.to_gain) / 4, roundings(12) * 2);
        check("more than 1 apart", full - micro > 1);
    }

    static void check_pooled(const BatchStatistics<real>& pooled, real to_gain) {
        const Normed whole = by_definition(0, 4);
        check_close("mean 3, variance 5", {pooled.mean.item(), pooled.variance.item()},
                    {real(whole.mean), real(whole.variance)}, roundings(8) * 8);
        check_close("as in one batch", to_gain, whole.to_gain / 4, roundings(16) * 3);
    }

    static Contrasted four() { return by_formula(0, 4, 0.7, -0.3); }
    static void check_contrast(const std::vector<double>& six) {
        const Contrasted all = four(), first = by_formula(0, 2, 0.7, -0.3),
                         second = by_formula(2, 4, 0.7, -0.3);
        check_close("the formula", six,
                    {all.loss, all.to_a, all.to_b, (first.loss + second.loss) / 2,
                     (first.to_a + second.to_a) / 2, (first.to_b + second.to_b) / 2},
                    1e-6);
        check_close("and in digits", six, {1.571169, 0.286374, -0.668207, 0.809376, 0.183524, -0.428223},
                    1e-6);
    }

    static void check_items(const Tensor& items, const Tensor& all_items) {
        // What an item lets through does not depend on who is beside it.
        std::vector<real> one_by_one;
        for (std::uint64_t i = 0; i < 8; ++i) {
            const auto row = slice(items, 0, static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1);
            const auto kept = dropout(row, 0.5, MaskKey{options().seed, 0, i}).value().to_vector();
            one_by_one.insert(one_by_one.end(), kept.begin(), kept.end());
        }
        check_equal("one item at a time", one_by_one, all_items.value().to_vector());
    }
};

const Given<WhenItLies> lesson(
    {.number = 15, .slug = "when-it-lies", .title = "when it lies", .minutes = 20, .steps = 7});

}  // namespace
