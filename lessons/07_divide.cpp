// Lesson 7: dividing each micro-batch's loss by N gives the full batch's gradient, equal in every bit.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "course/kit/toy.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct Divide : Toy {  // six rows x, three weights w
    // n is the number of micro-batches, and b is the number of rows in a micro-batch.
    const int n = setting("micro"), b = 6 / n;

    void talk() {
        step(n == 1 ? "The full batch, and what lesson 6 does with one micro-batch: the same."
                    : say("The full batch, and what lesson 6 left us with: {} too much.", times(n)));
        auto loss = mean(matmul(x, w));
        loss.backward();
        const auto full = w.grad().clone();
        show("full batch", full);
        w.zero_grad();
        for (const auto& micro : split(x, b)) mean(matmul(micro, w)).backward();
        const auto sum = w.grad().clone();
        show(say("sum of {}x{}", n, b), sum);
        check_lesson_6(loss, full, sum);

        step(n == 1 || b == 1
                 ? say("Each micro-loss divided by {}: a row weighs 1/6, as it should.", n)
                 : say("Each micro-loss divided by {}: a row weighs 1/{} of 1/{}, that is 1/6, as it should.",
                       n, b, n));
        w.zero_grad();
        auto after = table({"rows", say("loss / {}", n), "w.grad after it"});
        for (const auto& [micro, rows] : micro_batches(b)) {
            if (!w.has_grad()) code(2);
            auto part = mean(matmul(micro, w)) / n;
            part.backward();
            after.row(rows, part, w.grad());
        }
        show(say("sum / (6/{})", b), w.grad());
        check("prints [-0.3536  0.0207 -0.6125]", to_string(w.grad()) == "[-0.3536  0.0207 -0.6125]");
        check_equal("bit for bit", w.grad(), full);
        auto shared = shares(micro_batches(b), full, sum);
        shared.divided = values(w.grad());
        graph("divide", "What a row counts, nothing divided and divided", shared);

        const int now = n == 6 ? 3 : 6, rows_now = 6 / now;  // a different split
        predict(
            say("And {} at a time: each micro-loss is divided by", many_in_words(rows_now, "rows")),
            {right(now),
             wrong(n, say("That was for {}. How many are there now?", many_in_words(n, "micro-batches"))),
             wrong(1, say("Then {} gradients are added, each a whole mean of {}: {} too much.", to_text(now),
                          many_in_words(rows_now, "rows"), times(now))),
             wrong(b, say("No micro-batch has {} any more.", many_in_words(b, "rows"))),
             wrong(now * n, say("{} x {}: but the {} belongs to the cut before.", now, n, n))},
            hint(say("What must one row weigh in the end, and what does it weigh in a mean of {}?",
                     to_text(rows_now)),
                 "Count the micro-batches, not the rows of one of them."),
            say("{} micro-batches of {}. The number of micro-batches divides, in every cut of equal parts.",
                capital(to_text(now)), to_text(rows_now)));
        note(
            "Are all binary digits, the bits, those of the full batch? Of the toy, and of a twin whose last "
            "row has so few digits that its sums are exact:");
        auto cuts = table({"micro-batches", "float32", "float64", "twin, float32", "twin, float64"});
        for (const int parts : {1, 2, 3, 6})
            cuts.row(parts, same_bits(six_rows<float>(), parts), same_bits(six_rows<double>(), parts),
                     same_bits(twin<float>(), parts), same_bits(twin<double>(), parts));
        check_cuts(cuts);
        check("the twin prints the same", to_string(accumulated(twin<real>(), w, n)) == to_string(full));

        predict(
            "1000 rows of 32 numbers, and 32 x 16 weights: as 4 x 250 instead of at once. What of the "
            "gradient "
            "is promised?",
            {right("the same bits"),
             wrong("equal to rounding", "So it is where the additions come in another order. Do they here?"),
             wrong("another gradient", "Each mean is divided by 4: the mathematics has not changed."),
             wrong("it varies by run",
                   "The rows are drawn once, by the seed, and threads do not share a sum.")},
            hint("Who chooses the order of the additions, and does a cut change it?",
                 "Follow one element of w.grad from row 0 to row 999, in one batch and in four."),
            "tally's products add row after row at any size. BLAS, a library for products, has an order of "
            "its own.");
        const Tensor many = uniform<real>({1000, 32}, -1, 1, {.seed = options().seed, .stream = 7})
                                .value()
                                .to(options().device);
        const auto W = parameter(Array<real>::zeros({32, 16}, options().device));
        auto kinds = table({"products", "4 x 250 and 1000", "numbers that differ", "microseconds, at once"});
        const auto [ordered, ordered_parts] = both_ways(kinds, Products::ordered, many, W);
        const auto [by_blas, blas_parts] = both_ways(kinds, Products::blas, many, W);
        check_equal("ordered products: 1000 rows as 4 x 250", ordered_parts, ordered);
        check_product(many, by_blas, blas_parts);
        note("By BLAS the bits may differ, and need not. The times are this machine's.");
    }

    // Returns the gradients of all rows at once and of four micro-batches. Adds a row to the table.
    static std::pair<Array<real>, Array<real>> both_ways(Table& kinds, Products by, const Tensor& rows,
                                                         const Tensor& to) {
        const Products chosen = products();
        set_products(by);
        const auto whole = accumulated(rows, to, 1), parts = accumulated(rows, to, 4);
        using Clock = std::chrono::steady_clock;
        auto quickest = Clock::duration::max();
        for (int times = 0; times < 20; ++times) {
            const auto start = Clock::now();
            accumulated(rows, to, 1).to_vector();  // waits for a GPU
            quickest = std::min(quickest, Clock::now() - start);
        }
        set_products(chosen);
        const std::vector<real> a = whole.to_vector(), b = parts.to_vector();
        int differ = 0;
        for (std::size_t i = 0; i < a.size(); ++i) differ += a[i] != b[i];
        kinds.row(by == Products::ordered ? "ordered" : "blas", differ ? "other bits" : "the same bits",
                  differ, std::lround(std::chrono::duration<double, std::micro>(quickest).count()));
        return {whole, parts};
    }

    // Accumulates the gradient of `parts` micro-batches, and divides each micro-batch's loss by `parts`. The
    // function is a template, because the table has results in float and in double.
    template <class S>
    static Array<S> accumulated(const Var<Array<S>>& rows, const Var<Array<S>>& to, std::int64_t parts) {
        to.zero_grad();
        for (const auto& micro : split(rows, rows.shape()[0] / parts))
            (mean(matmul(micro, to)) / parts).backward();
        return to.grad().clone();
    }

    // Returns true if the gradient of `count` micro-batches equals the full batch's gradient in every bit.
    template <class S> static bool same_bits(const Var<Array<S>>& rows, int count) {
        const auto to = weights<S>();
        const auto full = accumulated(rows, to, 1).to_vector(),
                   parts = accumulated(rows, to, count).to_vector();
        return std::memcmp(full.data(), parts.data(), full.size() * sizeof(S)) == 0;
    }

    // Returns the toy's rows with a different last row, whose numbers are short binary fractions.
    template <class S> static Var<Array<S>> twin() {
        return six_rows<S>(-505.0 / 2048, -513.0 / 1024, -5837.0 / 4096);
    }

    // ---- independent checks ----------------------------------------------------------------------------------

    void check_lesson_6(const Tensor& loss, const Array<real>& full, const Array<real>& sum) const {
        check_close("loss, in exact decimals", loss, -3.97205 / 6, roundings(12) * 2);
        check("prints [-0.3536  0.0207 -0.6125]", to_string(full) == "[-0.3536  0.0207 -0.6125]");
        const std::string wanted = as_printed(column_sums(n / 6.0));
        check("prints " + wanted, to_string(sum) == wanted);
    }

    static void check_cuts(const Table& cuts) {
        check("the toy, N = 1, 2, 3, 6, float32", cuts.all("float32", "yes"));
        check("the toy, N = 1, 2, 3, 6, float64", cuts.all("float64", "yes"));
        check("its twin, N = 1, 2, 3, 6, float32", cuts.all("twin, float32", "yes"));
        check("its twin, N = 1, 2, 3, 6, float64", cuts.all("twin, float64", "yes"));
    }

    // The errors of both gradients are at most gamma(B + 2) times the mean magnitude of the column
    // (docs/mathematics.md, 2.2). The gradient also has the factor 1/16, because the mean is over 16 outputs.
    static void check_product(const Tensor& rows, const Array<real>& whole, const Array<real>& parts) {
        std::vector<double> bound(32 * 16);
        const std::vector<double> numbers = values(rows);
        for (std::size_t i = 0; i < numbers.size(); ++i)
            for (std::size_t output = 0; output < 16; ++output)
                bound[i % 32 * 16 + output] += 2 * roundings(1000 + 2) * std::abs(numbers[i]) / (1000 * 16);
        check_close("Products::blas: the same within a bound", parts.to_vector(), whole.to_vector(), bound);
    }
};

const RegisterLesson<Divide> lesson({.number = 7,
                                     .slug = "divide",
                                     .title = "divide",
                                     .minutes = 10,
                                     .steps = 4,
                                     .parameters = {equal_micro_batches()}});

}  // namespace
