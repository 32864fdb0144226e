// Lesson 8: two results can be equal in exact arithmetic, equal within a bound, or equal in every bit.
#include <algorithm>
#include <bit>
#include <iomanip>
#include <limits>
#include <sstream>
#include <type_traits>

#include "course/kit/toy.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct Rounding {
    // `items` is the number of summands, and `parts` is the number of micro-batches.
    const int items = setting("items"), parts = setting("micro");

    void talk() {
        // x is the toy's second column. (The gradient of a linear loss does not depend on w.)
        const Tensor x = slice(Toy::six_rows(), 1, 1, 2);
        auto w = parameter(Array<real>::zeros({1}, options().device));

        predict(
            "Lesson 6 printed 0.0207, and 0.0620 for 3 times that: not 0.0621. By how many units of its "
            "last digit is a printed number off, at most?",
            {right(0.5).within(0.01), wrong(0, "Digits were left out. Where would they have stood?"),
             wrong(1, "Then a neighbour would be nearer, and it would have been printed."),
             wrong(1.5, "So much 3 times a printed number may be off."),
             wrong(5, "In units of a digit that is not printed any more.")},
            hint("Which numbers are printed as 0.0207?", "From 0.02065 on, and below 0.02075."),
            "Half a unit; and 3 times the printed number is off by up to 1.5. The engine has more digits.");
        mean(matmul(x, w)).backward();
        const double one = w.grad().item();
        w.zero_grad();
        for (const auto& micro : split(x, 2)) mean(matmul(micro, w)).backward();
        const double three = w.grad().item();
        auto digits = table({"second component", "4 digits", "6 digits", "off by units of the 4th"});
        digits.row("full batch", one, std::to_string(one), units_off(one, rounded(one)));
        digits.row("sum of 3x2", three, std::to_string(three), units_off(three, rounded(three)));
        digits.row("3 x full batch", 3 * one, std::to_string(3 * one), units_off(3 * one, rounded(3 * one)));
        digits.row("3 x what was printed", 3 * rounded(one), std::to_string(3 * rounded(one)),
                   units_off(3 * one, 3 * rounded(one)));
        show("of 10000 numbers, at most", most_units_off());
        check_ratio(one, three);
        note("A ratio of printed numbers is not a ratio.");

        predict(
            "1/7, then divided by 11, has not the bits of 1/77. For which N from 7 to 11 is 1/N, then / b, "
            "sure to be 1/(N b), whatever b is?",
            {right(8), wrong(7, "That is one that goes wrong, with b = 11."),
             wrong(9, "1/9 has no end in binary: it is rounded, and then once more."),
             wrong(10, "Ten is round for us. In binary 1/10 is rounded."),
             wrong(11, "A prime does not help: 1/11 is rounded, and then once more.")},
            hint("Which division is not rounded at all?",
                 "A binary number divided by a power of two keeps its digits."),
            "Two roundings against one, unless one of them rounds nothing: by 2, 4, 8, ...");
        int differ = 0, differ_with_power_of_two = 0, engine_differs = 0;
        int smallest_n = 32, smallest_b = 32;
        std::vector<int> differ_at(33);  // indexed by N
        for (int n = 1; n <= 32; ++n)
            for (int b = 1; b <= 32; ++b) {
                const real twice = weight(n, b), once = real(1) / real(n * b);
                const bool power_of_two =
                    std::has_single_bit(unsigned(n)) || std::has_single_bit(unsigned(b));
                engine_differs += twice != real(1) / real(n) / real(b);
                differ += twice != once, differ_at[std::size_t(n)] += twice != once;
                differ_with_power_of_two += power_of_two && twice != once;
                if (twice != once && n * b < smallest_n * smallest_b) smallest_n = n, smallest_b = b;
            }
        auto weights = table({"micro-batches N, items b, up to 32", "pairs"});
        weights.row("all", 32 * 32);
        weights.row("1/N and then / b is not 1/(N b)", differ);
        weights.row("of these, N or b is a power of two", differ_with_power_of_two);
        show("the smallest", "N = " + std::to_string(smallest_n) + ", b = " + std::to_string(smallest_b));
        show("N", std::vector<int>{7, 8, 9, 10, 11});
        const std::vector<int> pairs(differ_at.begin() + 7, differ_at.begin() + 12);
        show("its pairs", pairs);
        check("N = 8: none. The other four: some",
              pairs[1] == 0 && std::count(pairs.begin(), pairs.end(), 0) == 1);
        check_weights(differ, differ_with_power_of_two, engine_differs);
        graph("rounding",
              say("One rounding and two: the numbers around 1/{}, with their bits", smallest_n * smallest_b),
              around(smallest_n, smallest_b, weight(smallest_n, smallest_b)));

        const std::string sums = many_in_words(parts, "sums");
        predict(say("{} random numbers, added as {} x {}. Which way keeps the bits of one long sum?", items,
                    parts, items / parts),
                {right("a sum that goes on"),
                 wrong(sums + ", added", say("The second of them begins at 0, not where the first has ended "
                                             "after {}: another order.",
                                             items / parts)),
                 wrong("both of them", capital(sums) + " made apart have their additions in another order."),
                 wrong("neither of them",
                       say("A sum may stop after {} and go on: nothing has changed.", items / parts))},
                hint("Which additions are made, and in which order?",
                     "Write down who is added to what, for four numbers as 2 x 2."),
                "A running sum may pause: the order of its additions stays the same.");
        auto one_weight = parameter(Array<real>({1}, {1}, options().device));
        int running_differs = 0, apart_differs = 0;
        double worst = 0;  // error / bound
        for (std::uint64_t draw = 0; draw < 3000; ++draw) {
            const Array<real> numbers =
                uniform<real>({items, 1}, -1, 1, {.seed = options().seed, .stream = draw}).value();
            const Tensor batch = numbers.to(options().device);
            const auto gradient_of = [&](const Tensor& part, int n) {
                return grad(mean(matmul(part, one_weight)) / n, {one_weight}).front().item();
            };
            const real whole = gradient_of(batch, 1);
            real apart = 0;
            one_weight.zero_grad();
            for (const auto& micro : split(batch, items / parts)) {
                (mean(matmul(micro, one_weight)) / parts).backward();
                apart += gradient_of(micro, parts);
            }
            const real running = one_weight.grad().item();
            running_differs += running != whole;
            apart_differs += apart != whole;
            worst = std::max(worst, of_the_bound(numbers, {whole, running, apart}));
        }
        auto orders = table({"added up", "draws whose bits differ"});
        orders.row("in one running sum", running_differs);
        orders.row(say("as {}, then added", sums), apart_differs);
        check_equal("running: none of 3000", running_differs, 0);
        check(settings_changed() ? "apart: some" : "apart: more than 2000 of 3000",
              apart_differs > (settings_changed() ? 0 : 2000), std::to_string(apart_differs));

        step("A bound that always holds: |error| <= gamma(B + 2) times the sum |w x|.");
        note(
            "B numbers, w the weight of each. gamma(n) is a little more than n u, and u is half the "
            "distance from 1 to the next number.");
        code(1);
        const double bound = gamma_bound<real>(items + 2);
        auto bounds = table({"", "relative to the sum of |w x|"});
        bounds.row("u", scientific(roundings(1)));
        bounds.row(say("gamma({})", items + 2), scientific(bound));
        bounds.row("largest error of 9000 sums", scientific(worst * bound));
        check("no error is larger", worst <= 1, scientific(worst) + " of the bound");
        check("and some are not 0", worst > 0);
        note("Three ways to add each of 3000 draws are 9000 sums.");
        note(
            "Three kinds of equal: the same mathematics; the same within a bound, which can always be asked "
            "for; the same bits, where they are promised.");
    }

    // Computes a mean over N micro-batches of b items with the engine, and returns the weight of one item.
    static real weight(int micro_batches, int items) {
        auto x = parameter(Array<real>::full({items}, real(1), options().device));
        (mean(x) / micro_batches).backward();
        return x.grad().to_vector().front();
    }

    // ---- tools: text and values for tables and checks --------------------------------------------------

    static double rounded(double number) { return std::round(number * 1e4) / 1e4; }

    static double units_off(double number, double as_printed) {
        return rounded(std::abs(number - as_printed) * 1e4);
    }
    static double most_units_off() {
        double most = 0;
        for (int i = 0; i < 10000; ++i) {
            const double number = i / 99999.0;
            most = std::max(most, units_off(number, rounded(number)));
        }
        return most;
    }

    static std::string scientific(double number) {
        std::ostringstream text;
        text << std::setprecision(2) << number;
        return text.str();
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    static void check_ratio(double one, double three) {
        check("0.0207, 0.0620 and 0.0621",
              rounded(one) == 0.0207 && rounded(three) == 0.062 && rounded(3 * rounded(one)) == 0.0621);
        // The magnitudes of the column sum to 4.376, and each row has the weight 1/2.
        check_close("the ratio of unrounded values is 3", three, 3 * one, roundings(8) * 4.376 / 2);
    }

    static void check_weights(int differ, int differ_with_power_of_two, int engine_differs) {
        const bool is_float = std::is_same_v<real, float>;
        check_equal(is_float ? "125 in float32" : "148 in float64", differ, is_float ? 125 : 148);
        check_equal("none where N or b is a power of two", differ_with_power_of_two, 0);
        check_equal("the engine divides twice, as written", engine_differs, 0);
    }

    // Returns the largest error of the computed means, divided by the error bound. The exact mean is computed
    // with integers, because all numbers are multiples of 2^-(bits - 1) and their count is a power of two.
    double of_the_bound(const Array<real>& numbers, std::initializer_list<real> means) const {
        constexpr int bits = std::numeric_limits<real>::digits;
        std::int64_t exact = 0, magnitude = 0;
        for (const real number : numbers.span()) {
            const auto units = static_cast<std::int64_t>(std::ldexp(number, bits - 1));
            exact += units;
            magnitude += std::abs(units);
        }
        double worst = 0;
        const int doublings = std::countr_zero(unsigned(items));
        for (const real mean : means) {
            const auto error = static_cast<std::int64_t>(std::ldexp(mean, bits - 1 + doublings)) - exact;
            worst = std::max(worst, std::abs(double(error)) / (roundings(items + 2) * double(magnitude)));
        }
        return worst;
    }
};

const RegisterLesson<Rounding> lesson(
    {.number = 8,
     .slug = "rounding",
     .title = "rounding",
     .minutes = 15,
     .steps = 4,
     .parameters = {one_of("micro", "parts that a sum is cut into", 4, {2, 4, 8, 16}),
                    one_of("items", "random numbers of a sum", 64, {32, 64, 128, 256})}});

}  // namespace
