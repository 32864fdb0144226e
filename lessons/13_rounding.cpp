// Lesson 13: two numbers are equal in mathematics, equal within a bound, or equal in every bit.
#include <bit>
#include <bitset>

#include "course/kit/window_gradient.hpp"

using std::ranges::count_if;
// A number as it is printed, with four digits after the point.
static double printed(double number) { return std::round(number * 1e4) / 1e4; }
static double units_off(double number, double shown) { return std::abs(number - shown) * 1e4; }

// How much one item counts in the gradient of n micro-batches of b items.
template <class S> static S weight(int n, int b) {
    const auto x = parameter(Array<S>::full({b}, S(1), options().device));
    (mean(x) / n).backward();
    return x.grad().to_vector().front();
}

// The pairs n, b up to 32 for which this weight differs from 1 / (n b), rounded once.
template <class S> static std::vector<std::pair<int, int>> differing_pairs() {
    std::vector<std::pair<int, int>> found;
    for (int n = 1; n <= 32; ++n)
        for (int b = 1; b <= 32; ++b)
            if (weight<S>(n, b) != S(1) / S(n * b)) found.emplace_back(n, b);
    return found;
}

struct Draws {
    int one_sum = 0, separate = 0;  // draws whose bits differ from the full batch
    double error = 0;               // the largest, relative to the sum of the magnitudes
};

// Draws 3000 batches of random numbers, and computes each mean in three orders of additions.
template <class S> static Draws three_orders(int items, int parts) {
    using V = Var<Array<S>>;
    Draws found;
    const V w = parameter(Array<S>({1}, {1}, options().device));
    for (std::uint64_t draw = 0; draw < 3000; ++draw) {
        const V on_cpu = uniform<S>({items, 1}, -1, 1, {.seed = options().seed, .stream = draw});
        const V x = on_cpu.value().to(w.value().device());
        const auto gradient = [&](const V& v, int n) { return grad(mean(matmul(v, w)) / n, {w})[0].item(); };
        S full = gradient(x, 1), separate = 0;
        w.zero_grad();
        for (const V& micro : split(x, items / parts)) {
            (mean(matmul(micro, w)) / parts).backward();  // continues the sum in w.grad
            separate += gradient(micro, parts);           // begins at 0
        }
        const S one_sum = w.grad().item();
        found.one_sum += one_sum != full;
        found.separate += separate != full;
        long double exact = 0, magnitudes = 0;  // these sums do not round
        for (const S number : x.value().to_vector()) exact += number, magnitudes += std::abs(number);
        for (const S mean : {full, one_sum, separate})
            found.error = std::max(found.error, double(std::abs(mean * S(items) - exact) / magnitudes));
    }
    return found;
}

LESSON(one_of("micro", "parts of a sum", 4, {2, 4, 8, 16}),
       one_of("items", "random numbers in a sum", 64, {32, 64, 128, 256})) {
    const int items = setting("items"), parts = setting("micro");

    ask("printed-digits");
    const Tensor x = slice(toy::rows(), 1, 1, 2), w = zeros({1});  // the second column of the toy
    mean(matmul(x, w)).backward();
    const double once = w.grad().item(), shown = printed(once);
    w.zero_grad();
    for (const Tensor& micro : split(x, 2)) mean(matmul(micro, w)).backward();
    const double sum = w.grad().item();
    auto digits = table({"second component", "4 digits", "6 digits", "units off"});
    digits.row("full batch", once, std::to_string(once), units_off(once, shown));
    digits.row("sum of 3 micro-batches", sum, std::to_string(sum), units_off(sum, printed(sum)));
    digits.row("3 x printed number", 3 * shown, std::to_string(3 * shown), units_off(3 * once, 3 * shown));
    double most = 0;
    for (int i = 0; i < 10000; ++i) most = std::max(most, units_off(i / 99999.0, printed(i / 99999.0)));
    show("10000 numbers, at most", most);
    // Each row counts 1/2 in the sum, and the magnitudes of this column add up to 4.376.
    check_close("the stored numbers have the ratio 3", sum, 3 * once, roundings(8) * 4.376 / 2);

    ask("two-divisions");
    const auto in_float = differing_pairs<float>(), in_double = differing_pairs<double>();
    auto by_n = table({"N", "b that differ, float", "double"});
    const auto n_of = &std::pair<int, int>::first;
    for (const int n : {7, 8, 9, 10, 11})
        by_n.row(n, std::ranges::count(in_float, n, n_of), std::ranges::count(in_double, n, n_of));

    step("For how many of the 1024 pairs of N and b up to 32 does (1/N)/b differ from 1/(N b)?");
    const auto power_of_two = [](const auto& pair) {
        return std::has_single_bit(unsigned(pair.first)) || std::has_single_bit(unsigned(pair.second));
    };
    auto pairs = table({"(1/N)/b is not 1/(N b)", "float", "double"});
    pairs.row("all pairs", in_float.size(), in_double.size());
    pairs.row("N or b a power of two", count_if(in_float, power_of_two), count_if(in_double, power_of_two));
    const auto [n, b] = std::ranges::min(in_float, {}, [](auto pair) { return pair.first * pair.second; });
    show("smallest N and b", {n, b});
    check_equal("125 pairs of floats, 148 of doubles", {in_float.size(), in_double.size()}, {125, 148});
    const auto bits_of = [](float f) { return std::bitset<23>(std::bit_cast<std::uint32_t>(f)).to_string(); };
    auto bits = table({"float", "its 23 stored bits"});
    bits.row("1/(N b)", bits_of(1.f / float(n * b)));
    bits.row("(1/N)/b", bits_of(weight<float>(n, b)));

    ask("which-order", "items", items, "parts", parts, "each", items / parts);
    const Draws floats = three_orders<float>(items, parts), doubles = three_orders<double>(items, parts);
    auto orders = table({"of 3000 batches, bits differ", "float", "double"});
    orders.row("one sum, with pauses", floats.one_sum, doubles.one_sum);
    orders.row("separate sums, then added", floats.separate, doubles.separate);
    check_equal("one sum: no batch differs", {floats.one_sum, doubles.one_sum}, {0, 0});
    check("separate sums: some batches differ", floats.separate > 0 && doubles.separate > 0);

    step("Let u be half the distance from 1 to the next float (or double), and gamma(k) = k u / (1 - k u).");
    note("In any order, the error of a sum of B numbers x is at most gamma(B + 2) times the sum of |x|.");
    code(1);
    const double in_floats = gamma_bound<float>(items + 2), in_doubles = gamma_bound<double>(items + 2);
    auto bounds = table({"relative to the sum of |x|", "float", "double"});
    bounds.row("u", 0x1p-24, 0x1p-53);
    bounds.row("gamma(B + 2)", in_floats, in_doubles);
    bounds.row("largest error of 9000 means", floats.error, doubles.error);
    check("no error is above its bound", floats.error <= in_floats && doubles.error <= in_doubles);
    note("Test for equal bits only if they are promised. Otherwise, compare the error with its bound.");
}
