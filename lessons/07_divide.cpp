// Lesson 7: each micro-loss divided by the number of micro-batches gives the full batch's gradient back,
// bit for bit.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tally/lesson/lesson.hpp"
#include "tally/tally.hpp"

using namespace tally;
using namespace tally::lesson;

// The toy's six rows. The last is given, because a twin of the toy has one with short binary fractions.
template <class S> Var<Array<S>> six_rows(S a, S b, S c) {
    return Array<S>({6, 3},
                    {0.375, -1.25, 0.5,    //
                     -1.125, 0.5, -0.875,  //
                     0.625, 1.0, -1.5,     //
                     -0.25, -0.375, 0.25,  //
                     -1.5, 0.75, -0.625,   //
                     a, b, c},
                    options().device);
}
template <class S> Var<Array<S>> toy() { return six_rows<S>(S(-0.2466), S(-0.5010), S(-1.4250)); }
template <class S> Var<Array<S>> twin() {
    return six_rows<S>(S(-505.0 / 2048), S(-513.0 / 1024), S(-5837.0 / 4096));
}

template <class S> Var<Array<S>> weights() {
    return parameter(Array<S>({3}, {0.5, -1.25, 0.75}, options().device));
}

// The gradient of one batch in n micro-batches, each micro-loss divided by n.
template <class S> Array<S> accumulated(const Var<Array<S>>& x, const Var<Array<S>>& w, int n) {
    w.zero_grad();
    for (const auto& micro : split(x, x.shape()[0] / n)) (mean(matmul(micro, w)) / n).backward();
    return w.grad().clone();
}

// One lane for each micro-batch; w is one, and receives what comes back from all of them.
template <class S> Picture drawn() {
    Watch watch;
    auto w = weights<S>();
    Picture picture("Three micro-batches, one w: what comes back is added");
    picture.name(w, "w");
    int row = 0;
    for (const auto& micro : split(toy<S>(), 2)) {
        auto loss = mean(matmul(micro, w)) / 3;
        picture.name(micro, "rows " + std::to_string(row) + "-" + std::to_string(row + 1))
            .name(loss, "loss / 3");
        picture.backward(loss);
        row += 2;
    }
    return picture;
}

// While one lives, large products are computed so.
class By {
public:
    explicit By(Products now) { set_products(now); }
    ~By() { set_products(before_); }
    By(const By&) = delete;
    By& operator=(const By&) = delete;

private:
    Products before_ = products();
};

// Has the gradient in n micro-batches the bits of the full batch's?
template <class S> bool same_bits(const Var<Array<S>>& x, int n) {
    const auto w = weights<S>();
    const auto full = accumulated(x, w, 1).to_vector(), parts = accumulated(x, w, n).to_vector();
    return std::memcmp(full.data(), parts.data(), full.size() * sizeof(S)) == 0;
}

template <class S> void divide() {
    const auto x = toy<S>(), w = weights<S>();

    step("The full batch, and what lesson 6 left us with: three times too much.");
    auto loss = mean(matmul(x, w));
    loss.backward();
    const auto full = w.grad().clone();
    show("full batch", full);
    w.zero_grad();
    for (const auto& micro : split(x, 2)) mean(matmul(micro, w)).backward();
    const auto sum = w.grad().clone();
    show("sum of 3x2", sum);
    check_close("loss, in exact decimals", loss, -3.97205 / 6, gamma_bound<S>(12) * 2);
    check("prints [-0.3536  0.0207 -0.6125]", to_string(full) == "[-0.3536  0.0207 -0.6125]");
    check("prints [-1.0608  0.0620 -1.8375]", to_string(sum) == "[-1.0608  0.0620 -1.8375]");

    predict("Each micro-loss must be divided by which number?", {"2", "3", "6", "none of them"}, answer(2),
            "A row weighs 1/2 now, and should weigh 1/6; 6 / 2 = 3.");
    w.zero_grad();
    auto after = table({"rows", "loss / 3", "w.grad after it"});
    int row = 0;
    for (const auto& micro : split(x, 2)) {
        if (row == 0) code(2);
        auto part = mean(matmul(micro, w)) / 3;
        part.backward();
        after.row(std::to_string(row) + "-" + std::to_string(row + 1), part, w.grad());
        row += 2;
    }
    show("sum / (6/2)", w.grad());
    check("prints [-0.3536  0.0207 -0.6125]", to_string(w.grad()) == "[-0.3536  0.0207 -0.6125]");
    check_equal("bit for bit", w.grad(), full);
    const Picture picture = drawn<S>();
    graph("divide", picture.svg(), picture.dot());

    step("Every cut of six rows into equal parts: the same bits as one batch?");
    note("The twin's last row differs a little: its sums are exact in float32.");
    auto cuts = table({"micro-batches", "float32", "float64", "twin, float32", "twin, float64"});
    bool narrow = true, wide = true, narrow_twin = true, wide_twin = true;
    for (const int n : {1, 2, 3, 6}) {
        const bool bits[] = {same_bits(toy<float>(), n), same_bits(toy<double>(), n),
                             same_bits(twin<float>(), n), same_bits(twin<double>(), n)};
        cuts.row(n, bits[0], bits[1], bits[2], bits[3]);
        narrow = narrow && bits[0];
        wide = wide && bits[1];
        narrow_twin = narrow_twin && bits[2];
        wide_twin = wide_twin && bits[3];
    }
    check("the toy, N = 1, 2, 3, 6, float32", narrow);
    check("the toy, N = 1, 2, 3, 6, float64", wide);
    check("its twin, N = 1, 2, 3, 6, float32", narrow_twin);
    check("its twin, N = 1, 2, 3, 6, float64", wide_twin);
    check("the twin prints the same", to_string(accumulated(twin<S>(), w, 3)) == to_string(full));

    predict("1000 rows times a (32, 16) matrix, as 4 x 250: no toy any more. What is promised?",
            {"the same bits", "the same within a bound", "another gradient altogether"}, answer(1),
            "Who chooses the order of the additions, and does it matter (lesson 8)?",
            "tally's products add row after row at any size. BLAS has an order of its own.");
    const Var<Array<S>> many =
        random_uniform<S>({1000, 32}, options().seed, 7, S(-1), S(1)).to(options().device);
    const auto W = parameter(Array<S>::zeros({32, 16}, options().device));
    {
        const By ours(Products::ordered);
        check_equal("ordered products: 1000 rows as 4 x 250", accumulated(many, W, 4),
                    accumulated(many, W, 1));
    }
    const By blas(Products::blas);
    const auto whole = accumulated(many, W, 1), parts = accumulated(many, W, 4);
    // Both are within gamma(B + 2) times the mean magnitude of the column (docs/mathematics.md, 2.2); each of
    // the 16 outputs weighs 1/16.
    std::vector<double> bound(32 * 16);
    const std::vector<S> numbers = many.value().to_vector();
    for (std::size_t i = 0; i < numbers.size(); ++i)
        for (std::size_t output = 0; output < 16; ++output)
            bound[i % 32 * 16 + output] +=
                2 * gamma_bound<S>(1000 + 2) * std::abs(static_cast<double>(numbers[i])) / (1000 * 16);
    check_close("Products::blas: the same within a bound", parts.to_vector(), whole.to_vector(), bound);
    note("By BLAS the bits may differ, and need not.");
}

int main(int argc, char** argv) {
    return run(argc, argv, {.number = 7, .slug = "divide", .title = "divide", .minutes = 10, .steps = 4},
               divide<float>, divide<double>);
}
