// The answer and the check of exercise noise.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
double item_variance(const std::vector<double>& means, int size) {
    const double count = static_cast<double>(means.size());
    double mean = 0;
    for (double g : means) mean += g / count;
    double squares = 0;
    for (double g : means) squares += (g - mean) * (g - mean);
    return size * squares / (count - 1);
}
}  // namespace right

#include "04_noise.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const std::vector<double>& means, int size) {
        look.with(where);
        double given = 0;
        if (look.runs([&] { given = yours.item_variance(means, size); }))
            look.equal("variance", given, right::item_variance(means, size));
    };
    look_at("the means [1 3] of micro-batches of 4 items", {1, 3}, 4);
    look_at("the equal means [1 1 1] of micro-batches of 4 items", {1, 1, 1}, 4);
    look_at("the means [2 4 6 8] of micro-batches of 1 item", {2, 4, 6, 8}, 1);
    for (int draw = 0; draw < 3; ++draw) {
        const int size = look.whole(2, 8);
        look_at("random means of micro-batches of " + std::to_string(size) + " items", look.uniforms(5),
                size);
    }
    // Independent check: items with the known variance 1/3, split into windows of 6 micro-batches of 4.
    look.with("20000 windows of random items with the variance 1/3: the mean of your estimates");
    double sum = 0;
    const int windows = 20000;
    if (!look.runs([&] {
            for (int window = 0; window < windows; ++window) {
                std::vector<double> means;
                for (int micro = 0; micro < 6; ++micro) {
                    const auto items = look.uniforms(4);
                    means.push_back(std::accumulate(items.begin(), items.end(), 0.0) / 4);
                }
                sum += yours.item_variance(means, 4);
            }
        }))
        return;
    look.equal("mean estimate", sum / windows, 1.0 / 3, 0.02);
}

const exercise::Add add(
    {.title = "the variance of one item, from the micro-batches",
     .minutes = 10,
     .lesson = "why-a-large-batch",
     .hints = {"The variance of one item is 12. How large is the variance of a mean over 4 of these items, "
               "and how do you get from this variance back to 12?",
               "The missing step is in the last line. If there are N means, `squares` divided by N - 1 is "
               "the variance of a mean over `size` items. The task states how much larger the variance of "
               "one item is.",
               "Divide `squares`, the sum of the squared differences, by the number of means minus 1, and "
               "multiply the result by `size`."},
     .why = "A mean over b items has 1/b of the variance of one item. The noise, which is the variance of "
            "one item's gradient, is therefore b times the variance of the micro-batches' means. The noise "
            "divided by the squared gradient is the noise scale. If the batch size equals the noise scale, "
            "the variance of a batch's mean gradient equals the squared gradient."},
    examine, answers);

}  // namespace
