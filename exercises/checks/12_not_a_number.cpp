// Exercise 12, not a number: the answer, the mistakes that are known, and the check.
#include "12_not_a_number.hpp"

#include "check.hpp"

namespace {

namespace right {
std::vector<double> gradient(const std::vector<Micro>& micros) {
    std::vector<double> sum(micros[0].sum.size());
    int items = 0;
    for (const Micro& micro : micros) {
        bool good = true;
        for (double value : micro.sum) good = good && std::isfinite(value);
        if (!good) continue;
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += micro.sum[i];
        items += micro.items;
    }
    if (items == 0) return {};
    for (double& value : sum) value /= items;
    return sum;
}
}  // namespace right

namespace poisoned {
std::vector<double> gradient(const std::vector<Micro>& micros) {
    std::vector<double> sum(micros[0].sum.size());
    int items = 0;
    for (const Micro& micro : micros) {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += micro.sum[i];
        items += micro.items;
    }
    if (items == 0) return {};
    for (double& value : sum) value /= items;
    return sum;
}
}  // namespace poisoned

namespace denominator_of_all {
std::vector<double> gradient(const std::vector<Micro>& micros) {
    std::vector<double> sum(micros[0].sum.size());
    int items = 0;
    for (const Micro& micro : micros) {
        bool good = true;
        for (double value : micro.sum) good = good && std::isfinite(value);
        items += micro.items;
        if (!good) continue;
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += micro.sum[i];
    }
    for (double& value : sum) value /= items;
    return sum;
}
}  // namespace denominator_of_all

namespace times_zero {
std::vector<double> gradient(const std::vector<Micro>& micros) {
    std::vector<double> sum(micros[0].sum.size());
    int items = 0;
    for (const Micro& micro : micros) {
        bool good = true;
        for (double value : micro.sum) good = good && std::isfinite(value);
        const int weight = good ? 1 : 0;
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * micro.sum[i];
        items += weight * micro.items;
    }
    if (items == 0) return {};
    for (double& value : sum) value /= items;
    return sum;
}
}  // namespace times_zero

namespace only_nan {
std::vector<double> gradient(const std::vector<Micro>& micros) {
    std::vector<double> sum(micros[0].sum.size());
    int items = 0;
    for (const Micro& micro : micros) {
        bool good = true;
        for (double value : micro.sum) good = good && !std::isnan(value);
        if (!good) continue;
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += micro.sum[i];
        items += micro.items;
    }
    if (items == 0) return {};
    for (double& value : sum) value /= items;
    return sum;
}
}  // namespace only_nan

namespace number_by_number {
std::vector<double> gradient(const std::vector<Micro>& micros) {
    std::vector<double> sum(micros[0].sum.size());
    int items = 0;
    for (const Micro& micro : micros) {
        for (std::size_t i = 0; i < sum.size(); ++i)
            if (std::isfinite(micro.sum[i])) sum[i] += micro.sum[i];
        items += micro.items;
    }
    if (items == 0) return {};
    for (double& value : sum) value /= items;
    return sum;
}
}  // namespace number_by_number

namespace whole_window_dropped {
std::vector<double> gradient(const std::vector<Micro>& micros) {
    std::vector<double> sum(micros[0].sum.size());
    int items = 0;
    for (const Micro& micro : micros) {
        bool good = true;
        for (double value : micro.sum) good = good && std::isfinite(value);
        if (!good) return {};
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += micro.sum[i];
        items += micro.items;
    }
    if (items == 0) return {};
    for (double& value : sum) value /= items;
    return sum;
}
}  // namespace whole_window_dropped

namespace nothing_left_is_zero {
std::vector<double> gradient(const std::vector<Micro>& micros) {
    std::vector<double> sum(micros[0].sum.size());
    int items = 0;
    for (const Micro& micro : micros) {
        bool good = true;
        for (double value : micro.sum) good = good && std::isfinite(value);
        if (!good) continue;
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += micro.sum[i];
        items += micro.items;
    }
    if (items == 0) return sum;
    for (double& value : sum) value /= items;
    return sum;
}
}  // namespace nothing_left_is_zero

namespace first_number_only {
std::vector<double> gradient(const std::vector<Micro>& micros) {
    std::vector<double> sum(micros[0].sum.size());
    int items = 0;
    for (const Micro& micro : micros) {
        if (!std::isfinite(micro.sum[0])) continue;
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += micro.sum[i];
        items += micro.items;
    }
    if (items == 0) return {};
    for (double& value : sum) value /= items;
    return sum;
}
}  // namespace first_number_only

struct Functions {
    decltype(&::gradient) gradient;
};

void examine(exercise::Look& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const std::vector<Micro>& micros) {
        look.with(where);
        std::vector<double> given;
        if (look.runs([&] { given = yours.gradient(micros); }))
            look.equal("gradient", given, right::gradient(micros));
    };
    const double nan = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();
    const Micro good{{2, 4}, 2}, other{{6, 3}, 1};
    look_at("two good micro-batches, of 2 items and of 1", {good, other});
    look_at("a third one that is all NaN", {good, {{nan, nan}, 3}, other});
    look_at("a third one of [1 NaN]", {good, {{1, nan}, 3}, other});
    look_at("a third one of [NaN 1]", {good, {{nan, 1}, 3}, other});
    look_at("a third one of [infinity 1]", {good, {{inf, 1}, 3}, other});
    look_at("a third one of [1 -infinity]", {good, other, {{1, -inf}, 3}});
    look_at("nothing but a bad one", {{{nan, inf}, 2}});
    for (int draw = 0; draw < 3; ++draw) {
        std::vector<Micro> micros;
        for (int count = look.whole(3, 5); count > 0; --count)
            micros.push_back({look.uniforms(3), look.whole(1, 4)});
        micros[1].sum[static_cast<std::size_t>(look.whole(0, 2))] = draw == 0 ? nan : inf;
        look_at("random numbers, the second micro-batch of " + std::to_string(micros.size()) + " bad",
                micros);
    }
}

const exercise::Add add(
    {.number = 12,
     .slug = "not-a-number",
     .title = "leave out the micro-batch that is not a number",
     .minutes = 5,
     .lesson = "mean-sum-token",
     .functions = {"gradient"},
     .hints = {"A micro-batch is left out: from which two sums must it stay away?",
               "Look at all of its numbers before you add any of them; `continue` goes on to the next "
               "micro-batch.",
               "A bool that begins as true and stays so only while std::isfinite() says yes for each number; "
               "behind the loop over micro-batches look whether items is still 0."},
     .why = "Whatever is left out must be missing in the numerator and in the denominator alike, or the "
            "update shrinks. Reset and drop by not adding, never by multiplying with 0. A Window calls this "
            "policy drop_micro."},
    examine, Functions{right::gradient},
    {{"poisoned",
      {poisoned::gradient},
      "The bad micro-batch was added like any other, and one NaN makes the whole sum NaN. It must be left "
      "out."},
     {"denominator_of_all",
      {denominator_of_all::gradient},
      "The bad micro-batch is left out of the sum, but its items are still in the denominator: the update is "
      "too small."},
     {"times_zero",
      {times_zero::gradient},
      "You multiply the bad numbers by 0, and NaN * 0 is NaN. What must not count must not be added at all."},
     {"only_nan",
      {only_nan::gradient},
      "NaN is found, infinity is not. It comes first: an overflow makes an infinity, and only the next "
      "operation a NaN."},
     {"number_by_number",
      {number_by_number::gradient},
      "You leave out bad numbers one by one: the good ones of a broken micro-batch stay in, and all of its "
      "items in the denominator. The micro-batch as a whole has to go."},
     {"whole_window_dropped",
      {whole_window_dropped::gradient},
      "One bad micro-batch, and the whole window makes no update. That is a policy, too, but not this one: "
      "the others are to be used."},
     {"nothing_left_is_zero",
      {nothing_left_is_zero::gradient},
      "Where no micro-batch is left you return zeros, and momentum would step all the same. No update is an "
      "empty vector."},
     {"first_number_only",
      {first_number_only::gradient},
      "Only the first number is looked at. Any of them may be the bad one."}});

}  // namespace
