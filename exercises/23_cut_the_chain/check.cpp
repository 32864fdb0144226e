// The answer and the check of exercise cut-the-chain.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
std::vector<int> cuts(const std::vector<int>& kept, int budget) {
    std::vector<int> first_layers;
    int sum = 0;
    for (int layer = static_cast<int>(kept.size()) - 1; layer >= 0; --layer) {
        sum += kept[static_cast<std::size_t>(layer)];
        if (sum <= budget) continue;
        first_layers.insert(first_layers.begin(), layer + 1);
        sum = kept[static_cast<std::size_t>(layer)];
    }
    return first_layers;
}
}  // namespace right

#include "23_cut_the_chain.mistakes.hpp"

// A chain of layers on `rows` rows, with four numbers between layers. A layer with 4 k numbers a row saves k KiB.
struct Chain {
    static constexpr int rows = 64, between = 4;
    std::vector<tally::Tensor> wide, narrow;
    mutable int begun = 0;

    explicit Chain(const std::vector<int>& kept) {
        for (const int kib : kept) {
            wide.push_back(tally::parameter(tally::full({between, 4 * kib}, 0.1)));
            narrow.push_back(tally::parameter(tally::full({4 * kib, between}, 0.1)));
        }
    }
    tally::Tensor run(tally::Tensor x, std::size_t from, std::size_t to) const {
        for (std::size_t i = from; i < to; ++i, ++begun) x = matmul(tanh(matmul(x, wide[i])), narrow[i]);
        return x;
    }
    // Returns the KiB saved at the peak with these segments, and counts the runs of layers.
    double saved(const std::vector<int>& first_layers) const {
        std::vector<std::size_t> ends;
        for (const int first : first_layers) ends.push_back(static_cast<std::size_t>(first));
        tally::Tensor x = tally::constant(tally::Array<float>::full({rows, between}, 1));
        tally::memory::reset_peak();
        std::size_t from = 0;
        for (const std::size_t to : ends) {
            x = tally::checkpoint([this, from, to](const tally::Tensor& in) { return run(in, from, to); },
                                  std::move(x));
            from = to;
        }
        sum(run(std::move(x), from, wide.size())).backward();
        const auto report = tally::memory::report();
        return static_cast<double>(report.peak_by[static_cast<int>(tally::MemoryClass::saved)]) / 1024;
    }
};

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::vector<int>& kept, int budget) {
        look.with("layers that keep " + exercise::written(exercise::as_numbers(kept)) + " KiB, a budget of " +
                  std::to_string(budget));
        std::vector<int> given;
        if (!look.runs([&] { given = yours.cuts(kept, budget); })) return;
        bool ascending = true;
        for (std::size_t i = 0; i < given.size(); ++i)
            ascending = ascending && given[i] > (i == 0 ? 0 : given[i - 1]) &&
                        given[i] < static_cast<int>(kept.size());
        if (!look.holds(
                ascending,
                "your cuts " + exercise::written(exercise::as_numbers(given)) +
                    " must be in ascending order, and must be numbers of layers after the first layer"))
            return;
        const Chain chain(kept);
        const double saved = chain.saved(given);
        const int again = chain.begun - static_cast<int>(kept.size());
        const Chain best(kept);
        best.saved(right::cuts(kept, budget));
        // Each layer's input and each segment's input take 1 KiB besides the layers' own KiB.
        look.at_most("KiB saved at the peak, with up to 2 for the input of each layer", std::floor(saved),
                     budget + 2 * static_cast<double>(kept.size()) + 2);
        look.at_most("layers that ran a second time", again, best.begun - static_cast<double>(kept.size()));
    };
    look_at({30, 10, 20, 80, 40, 10, 70, 20, 50, 10, 60, 20}, 120);
    look_at({60, 60, 60, 60, 60, 60}, 120);
    look_at({10, 20, 30}, 200);
    for (int draw = 0; draw < 3; ++draw) {
        std::vector<int> kept;
        for (int layer = 0; layer < 12; ++layer) kept.push_back(10 * look.whole(1, 8));
        look_at(kept, 10 * look.whole(14, 20));
    }
}

const exercise::Add add(
    {.title = "segments of unequal layers, measured in bytes and in recomputed layers",
     .minutes = 15,
     .lesson = "checkpointing",
     .hints = {"Which layers run only once? How can you make more layers run only once?",
               "Replace todo() by a loop that begins at the last layer. Add layers to the last segment while "
               "they fit into the budget. Then fill the segment before it in the same way.",
               "Count down from the last layer to 0, and add kept[layer] to a sum. If the sum exceeds the "
               "budget, a segment begins at layer + 1: insert this number at the front of first_layers. Then "
               "the sum restarts with kept[layer]."},
     .why = "All layers before the last segment run twice, wherever you cut. So make the last segment as "
            "long as the memory allows. The other segments only have to fit into the memory. tally's "
            "function fit_into() measures the layers of a chain, and cuts the chain by the same rule."},
    examine, answers);

}  // namespace
