// The answer and the check of exercise window.
#include "given.hpp"

#include <fmt/format.h>

#include <tuple>

#include "check.hpp"
#include "toy.hpp"

namespace {

namespace right {
void begin(Window& window) {
    window.w.zero_grad();
    window.rows = 0;
}

void add(Window& window, const Tensor& x, const Tensor& target) {
    sum(row_losses(x, target, window.w)).backward();
    window.rows += static_cast<int>(x.shape()[0]);
}

void finish(Window& window) {
    if (window.rows == 0) return;
    sgd_step({window.w}, window.reduction == Reduction::mean ? window.rate / window.rows : window.rate);
}

int epoch(Window& window, const Tensor& x, const Tensor& target, int micro_rows, int micros) {
    const int rows = static_cast<int>(x.shape()[0]);
    int updates = 0, from = 0;
    while (from < rows) {
        begin(window);
        int micro = 0;
        for (; micro < micros && from < rows; ++micro) {
            const int to = std::min(from + micro_rows, rows);
            add(window, slice(x, 0, from, to), slice(target, 0, from, to));
            from = to;
        }
        finish(window);
        ++updates;
    }
    return updates;
}
}  // namespace right

#include "08_window.mistakes.hpp"

using exercise::cut;
using exercise::numbers;
using exercise::Numbers;
using Sizes = std::vector<int>;

struct Rows {
    Tensor x, target;
};

// A window that begins with the toy's weight, or with a weight that is just as large.
Window new_window(double rate, Reduction reduction) {
    return {.w = exercise::toy_weight(), .rate = rate, .reduction = reduction};
}

void update(const Functions& f, Window& window, const Rows& rows, const Sizes& sizes) {
    const auto x = cut(rows.x, sizes), target = cut(rows.target, sizes);
    f.begin(window);
    for (std::size_t i = 0; i < x.size(); ++i) f.add(window, x[i], target[i]);
    f.finish(window);
}

double loss_of(const Window& window, const Rows& rows) {
    return tally::mean(row_losses(rows.x, rows.target, window.w)).item();
}

void examine_windows(exercise::AnswerTest& look, const Functions& yours, const Rows& six) {
    const auto compare = [&](const std::string& where, Reduction reduction,
                             const std::vector<std::pair<Rows, Sizes>>& windows) {
        look.with(where);
        Window window = new_window(0.05, reduction), wanted = new_window(0.05, reduction);
        if (!look.runs([&] {
                for (const auto& [rows, sizes] : windows) update(yours, window, rows, sizes);
            }))
            return;
        for (const auto& [rows, sizes] : windows)  // the full batch
            update(answers.right, wanted, rows,
                   sizes.empty() ? sizes : Sizes{static_cast<int>(rows.x.shape()[0])});
        look.equal("weights", numbers(window.w.value()), numbers(wanted.w.value()));
    };
    for (const Sizes& sizes : {Sizes{6}, {2, 2, 2}, {4, 2}, {1, 5}})
        compare("the six rows, cut as " + exercise::sizes_in_words(sizes) + ", Reduction::mean",
                Reduction::mean, {{six, sizes}});
    compare("the six rows, cut as 4+2, Reduction::sum", Reduction::sum, {{six, {4, 2}}});
    const int count = look.whole(3, 5);
    const Rows others{exercise::random_rows(look, count, 3),
                      tally::reshape(exercise::random_rows(look, 1, count), {count})};
    compare(fmt::format("two windows, of six rows and of {} random rows", count), Reduction::mean,
            {{six, {4, 2}}, {others, {1, count - 1}}});
    compare("a window without a micro-batch", Reduction::mean, {{six, {}}});
}

void examine_epochs(exercise::AnswerTest& look, const Functions& yours) {
    for (const auto& [count, micro_rows, micros] :
         {std::tuple{8, 2, 2}, {6, 2, 2}, {7, 2, 2}, {7, 3, 1}, {5, 3, 4}, {look.whole(9, 20), 2, 3}}) {
        look.with(fmt::format("an epoch of {} rows, {} rows in a micro-batch, {} micro-batches in a window",
                              count, micro_rows, micros));
        const Rows rows{exercise::random_rows(look, count, 3),
                        tally::reshape(exercise::random_rows(look, 1, count), {count})};
        Window window = new_window(0.05, Reduction::mean), wanted = new_window(0.05, Reduction::mean);
        int updates = 0;
        if (!look.runs([&, rows_of_one = micro_rows, many = micros] {
                updates = yours.epoch(window, rows.x, rows.target, rows_of_one, many);
            }))
            continue;
        const int right_updates = answers.right.epoch(wanted, rows.x, rows.target, micro_rows, micros);
        if (look.equal("number of updates", updates, right_updates))
            look.equal("weights", numbers(window.w.value()), numbers(wanted.w.value()));
    }
}

void examine_training(exercise::AnswerTest& look, const Functions& yours, const Rows& six) {
    look.part("the training");
    look.with("a training of 100 updates, with the six rows cut as 6, 4+2 and 2+2+2");
    constexpr int updates = 100;
    constexpr double rate = 0.2;
    Window wanted = new_window(rate, Reduction::mean);
    const double first_loss = loss_of(wanted, six);
    for (int i = 0; i < updates; ++i) update(answers.right, wanted, six, {6});
    const Numbers right_weights = numbers(wanted.w.value());
    double most = 0, loss = 0;
    for (const Sizes& sizes : {Sizes{6}, {4, 2}, {2, 2, 2}}) {
        Window window = new_window(rate, Reduction::mean);
        if (!look.runs([&] {
                for (int i = 0; i < updates; ++i) update(yours, window, six, sizes);
            }))
            return;
        const Numbers weights = numbers(window.w.value());
        if (!look.equal("weights, cut as " + exercise::sizes_in_words(sizes), weights, right_weights)) return;
        for (std::size_t i = 0; i < weights.size(); ++i)
            most = std::max(most, std::abs(weights[i] - right_weights[i]));
        loss = std::max(loss, loss_of(window, six));
    }
    look.trained(fmt::format(
        "Your window has trained a linear regression with the six rows, cut as 6, as 4+2 and as 2+2+2: the "
        "loss fell from {:.3f} to {:.3f} in {} updates each time. Your weights, compared with those of a "
        "training with the full batch, {}.",
        first_loss, loss, updates,
        most == 0 ? "have the bits of the full batch"
                  : fmt::format("differ from those of the full batch by at most {:.1g}", most)));
}

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const Tensor x = exercise::toy_rows();
    const Rows six{x, tally::constant({3.1f, -2.6f, -2.2f, 0.8f, -3.2f, 0.2f})};  // near a linear function
    look.part("the window");
    examine_windows(look, yours, six);
    look.part("epoch");
    examine_epochs(look, yours);
    if (look.complaints().empty()) examine_training(look, yours, six);  // a wrong update may diverge
}

const exercise::Add add_to_the_course(
    {.title = "a window that accumulates, which trains a linear regression",
     .minutes = 20,
     .lesson = "the-tail",
     .hints =
         {"With Reduction::mean, by which number must the gradient be divided, and why does add() not yet "
          "know this number?",
          "add() calls backward() for the sum of the row losses and counts the rows. finish() makes one "
          "sgd_step. With Reduction::mean, divide the learning rate by the number of rows in the window.",
          "In epoch(), while rows are left: call begin(), call add() for at most `micros` micro-batches, "
          "call finish(), and count the update. Each micro-batch begins at row `from` and ends before row "
          "std::min(from + micro_rows, rows)."},
     .why = "You have written a window, which accumulates the gradients of the micro-batches of one update. "
            "Your window divides the gradient once, by the number of accumulated rows. Therefore, the same "
            "code is right for micro-batches of unequal sizes and for the last window of an epoch. tally's "
            "Window does the same."},
    examine, answers);

}  // namespace
