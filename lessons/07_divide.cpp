// Lesson 7: each micro-loss divided by N gives the gradient of the full batch, with the same bits.
#include "course/kit/toy.hpp"

// The gradient of n micro-batches in w.grad. V has floats or doubles.
template <class V> static std::vector<double> accumulated(const V& x, const V& w, int n) {
    w.zero_grad();
    for (const V& micro : split(x, x.shape()[0] / n)) (mean(matmul(micro, w)) / n).backward();
    return values(w.grad());
}

// The same with a new sum for each micro-batch, which is added afterwards. PyTorch adds in this order.
template <class V> static std::vector<double> separate(const V& x, const V& w, int n) {
    V sum = w - w;  // zeros
    for (const V& micro : split(x, x.shape()[0] / n))
        sum = sum + grad(mean(matmul(micro, w)) / n, {w}).front();
    return values(sum);
}

// How far are these gradients from the full batch, in the type S? {a, b, c} is the last row of the toy.
// Returns the largest distance with one sum, and then the distances with separate sums for N = 2, 3 and 6.
template <class S> static std::vector<double> distances(double a, double b, double c) {
    const auto x = toy::rows<S>(a, b, c);
    const auto w = toy::weights<S>();
    const auto full = accumulated(x, w, 1);
    std::vector<double> found{0};
    for (const int n : {2, 3, 6}) {
        found[0] = std::max(found[0], furthest(accumulated(x, w, n), full));
        found.push_back(furthest(separate(x, w, n), full));
    }
    return found;
}

static int count_different(const std::vector<double>& a, const std::vector<double>& b) {
    int different = 0;
    for (std::size_t i = 0; i < a.size(); ++i) different += a[i] != b[i];
    return different;
}

LESSON(equal_micro_batches({2, 3, 6})) {
    const Tensor x = toy::rows(), w = toy::weights();  // six rows of three numbers, and three weights
    const int n = setting("micro"), each = 6 / n;      // micro-batches, and rows in each of them

    step("As in lesson 6, we split a batch of six rows. Micro-batches: {}, rows in each: {}.", n, each);
    mean(matmul(x, w)).backward();
    const Array<real> full = w.grad().clone();
    w.zero_grad();
    for (const Tensor& micro : split(x, each)) mean(matmul(micro, w)).backward();
    const Array<real> sum = w.grad().clone();
    show("full batch", full, "sum of the micro-batches", sum);

    ask("the-factor", "n", n, "each", each, "sum", sum);
    w.zero_grad();
    auto after = table({"rows", "1 / N", "loss / N", "w.grad afterwards"});
    code(2);
    for (const auto& [micro, rows] : toy::micro_batches(x, each)) {
        const Tensor part = mean(matmul(micro, w)) / n;
        part.backward();
        after.row(rows, 1.0 / n, part, w.grad());
    }
    check_close("w.grad is the mean of the rows", w.grad(), toy::mean_of_rows, toy::bound(9));  // 9 roundings
    check_equal("w.grad equals the full batch, bit for bit", w.grad(), full);
    Shares shares = toy::shares(each, full, sum);
    shares.divided = values(w.grad());
    graph("divide", "How much one row counts, without and with the division", shares);

    const int now = n == 6 ? 3 : 6;  // another number of micro-batches
    ask("another-split", "n", n, "each", each, "now", now, "rows", 6 / now, "product", n * now);
    const auto split_anew = accumulated(x, w, now);
    show("divided by", now, "w.grad", split_anew);
    check_equal("w.grad equals the full batch, bit for bit", split_anew, full);

    step("How far is w.grad from the gradient of the full batch? tally adds all rows to one sum.");
    note("PyTorch computes a separate sum for each micro-batch, and then adds it to w.grad.");
    auto far = table({"type", "last row", "one sum", "separate, N = 2", "N = 3", "N = 6"});
    const auto compare = [&](const char* type, const char* last_row, const std::vector<double>& d) {
        far.row(type, last_row, d[0], d[1], d[2], d[3]);
    };
    compare("float", "as before", distances<float>(-0.2466, -0.5010, -1.4250));
    compare("double", "as before", distances<double>(-0.2466, -0.5010, -1.4250));
    compare("float", "short", distances<float>(-505.0 / 2048, -513.0 / 1024, -5837.0 / 4096));
    compare("double", "short", distances<double>(-505.0 / 2048, -513.0 / 1024, -5837.0 / 4096));
    note("Rows with 'short': the last row of X has numbers like -505/2048, which need no rounding.");
    check_equal("one sum: the bits of the full batch", far.column("one sum"), std::vector<double>(4));

    ask("same-bits");
    const Tensor many =
        uniform<real>({1000, 32}, -1, 1, {.seed = options().seed, .stream = 7}).value().to(options().device);
    const Tensor weights = parameter(Array<real>::zeros({32, 16}, options().device));
    const auto once = accumulated(many, weights, 1), parts = accumulated(many, weights, 4);
    show("elements of w.grad", once.size(), "largest difference", furthest(parts, once));
    check_equal("4 x 250 rows equal 1000 rows, bit for bit", parts, once);

    step("We compute the same gradient with BLAS, a library that chooses the order of the additions.");
    const Products chosen = products();
    auto kinds = table({"products", "elements that differ", "largest difference"});
    set_products(Products::blas);
    const auto blas_once = accumulated(many, weights, 1), blas_parts = accumulated(many, weights, 4);
    set_products(chosen);
    kinds.row("ordered", count_different(once, parts), furthest(once, parts));
    kinds.row("blas", count_different(blas_once, blas_parts), furthest(blas_once, blas_parts));
    // Each gradient has at most 1002 roundings, and is a mean of magnitudes below 1, divided by 16.
    check_close("BLAS: equal within a bound", blas_parts, blas_once, 2 * roundings(1002) / 16);
}
