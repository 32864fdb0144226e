// Exercise 9, class weights: the answer, the mistakes that are known, and the check.
#include "09_class_weights.hpp"

#include "check.hpp"

namespace {

namespace right {
double gradient(const std::vector<Micro>& micros, const std::vector<double>& weight) {
    double top = 0, bottom = 0;
    for (const Micro& micro : micros)
        for (const Item& item : micro) {
            const double w = weight[static_cast<std::size_t>(item.label)];
            top += w * item.gradient;
            bottom += w;
        }
    return top / bottom;
}
}  // namespace right

namespace mean_of_weighted_means {
double gradient(const std::vector<Micro>& micros, const std::vector<double>& weight) {
    double means = 0;
    for (const Micro& micro : micros) {
        double top = 0, bottom = 0;
        for (const Item& item : micro) {
            const double w = weight[static_cast<std::size_t>(item.label)];
            top += w * item.gradient;
            bottom += w;
        }
        means += top / bottom;
    }
    return means / static_cast<double>(micros.size());
}
}  // namespace mean_of_weighted_means

namespace weighted_means_by_items {
double gradient(const std::vector<Micro>& micros, const std::vector<double>& weight) {
    double sum = 0, items = 0;
    for (const Micro& micro : micros) {
        double top = 0, bottom = 0;
        for (const Item& item : micro) {
            const double w = weight[static_cast<std::size_t>(item.label)];
            top += w * item.gradient;
            bottom += w;
        }
        sum += static_cast<double>(micro.size()) * top / bottom;
        items += static_cast<double>(micro.size());
    }
    return sum / items;
}
}  // namespace weighted_means_by_items

namespace divided_by_items {
double gradient(const std::vector<Micro>& micros, const std::vector<double>& weight) {
    double top = 0, items = 0;
    for (const Micro& micro : micros)
        for (const Item& item : micro) {
            top += weight[static_cast<std::size_t>(item.label)] * item.gradient;
            ++items;
        }
    return top / items;
}
}  // namespace divided_by_items

namespace not_weighted {
double gradient(const std::vector<Micro>& micros, const std::vector<double>&) {
    double sum = 0, items = 0;
    for (const Micro& micro : micros)
        for (const Item& item : micro) {
            sum += item.gradient;
            ++items;
        }
    return sum / items;
}
}  // namespace not_weighted

namespace weights_below_only {
double gradient(const std::vector<Micro>& micros, const std::vector<double>& weight) {
    double sum = 0, bottom = 0;
    for (const Micro& micro : micros)
        for (const Item& item : micro) {
            sum += item.gradient;
            bottom += weight[static_cast<std::size_t>(item.label)];
        }
    return sum / bottom;
}
}  // namespace weights_below_only

struct Functions {
    decltype(&::gradient) gradient;
};

void examine(exercise::Look& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const std::vector<Micro>& micros,
                             const std::vector<double>& weight) {
        look.with(where);
        double given = 0;
        if (look.runs([&] { given = yours.gradient(micros, weight); }))
            look.equal("gradient", given, right::gradient(micros, weight));
    };
    look_at("weights 1 and 9, all four items in one micro-batch", {{{0, 1}, {0, 2}, {0, 3}, {1, 8}}}, {1, 9});
    look_at("weights 1 and 9, the one rare item in the second of two micro-batches",
            {{{0, 1}, {0, 2}}, {{0, 3}, {1, 8}}}, {1, 9});
    look_at("weights 1 and 9, the rare item alone in its micro-batch", {{{0, 1}, {0, 2}, {0, 3}}, {{1, 8}}},
            {1, 9});
    look_at("equal weights of 2, micro-batches of 2 and 2", {{{0, 1}, {1, 2}}, {{0, 3}, {1, 8}}}, {2, 2});
    for (int draw = 0; draw < 4; ++draw) {
        std::vector<Micro> micros(static_cast<std::size_t>(look.whole(2, 4)));
        for (Micro& micro : micros)
            for (int items = look.whole(1, 5); items > 0; --items)
                micro.push_back({look.whole(0, 2), look.uniform(-1, 1)});
        look_at("random items of three classes in " + std::to_string(micros.size()) + " micro-batches",
                micros, look.uniforms(3, 0.5, 5));
    }
}

const exercise::Add add(
    {.number = 9,
     .slug = "class-weights",
     .title = "a weighted mean in micro-batches",
     .minutes = 5,
     .lesson = "mean-sum-token",
     .functions = {"gradient"},
     .hints = {"If a rare item weighs 9, as how many items does it count in the denominator?",
               "It is exercise 8 again: sums over the whole window, one for the numerator and one for the "
               "denominator. What is added to each of them for one item?",
               "Add the weight times the gradient to one, and the weight to the other; divide at the end."},
     .why = "A weighted mean has a denominator, too: the sum of the weights. It belongs to the window, like "
            "the count of tokens: a micro-batch must not divide by its own."},
    examine, Functions{right::gradient},
    {{"mean_of_weighted_means",
      {mean_of_weighted_means::gradient},
      "Each micro-batch is divided by its own weights, and then the mean is taken: a rare item alone in its "
      "micro-batch loses its weight, 9 / 9."},
     {"weighted_means_by_items",
      {weighted_means_by_items::gradient},
      "Each micro-batch counts by its number of items here. It must count by the sum of its weights."},
     {"divided_by_items",
      {divided_by_items::gradient},
      "The numerator is right. The denominator is the number of items, as if each weighed 1: it must be the "
      "sum of the weights."},
     {"not_weighted",
      {not_weighted::gradient},
      "The weights are not used: this is the plain mean over the items."},
     {"weights_below_only",
      {weights_below_only::gradient},
      "The weights stand in the denominator only; each item's gradient must be multiplied by its weight, "
      "too."}});

}  // namespace
