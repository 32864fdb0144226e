// Tests that shuffling gives every option each position equally often. Also tests how typed numbers are read.
#include "course/kit/prediction.hpp"

#include <cmath>
#include <map>
#include <set>

#include "catch.hpp"
#include "tally/base/random.hpp"

using namespace tally::lesson;

namespace {

Prediction asked(std::size_t options, int id) {
    Prediction prediction{.id = id, .options = {{'a', "right", ""}}};
    for (std::size_t i = 1; i < options; ++i)
        prediction.options.push_back({static_cast<char>('a' + i), "wrong " + std::to_string(i), "because"});
    return prediction;
}

// Returns a question whose first number is right.
Prediction typed(double right, const std::map<double, std::string>& mistakes, double within = 0) {
    Prediction prediction{.is_typed = true, .within = within, .options = {{'a', "right", "", right}}};
    for (const auto& [value, mistake] : mistakes)
        prediction.options.push_back({'b', "wrong", mistake, value});
    return prediction;
}

}  // namespace

TEST_CASE("shuffle: over n consecutive seeds each option is in each of n places once") {
    for (int lesson = 1; lesson <= 22; ++lesson)
        for (int id = 1; id <= 8; ++id) {
            const auto n = static_cast<std::size_t>(2 + (lesson + id) % 8);
            std::map<char, std::set<std::size_t>> places;
            for (std::uint64_t seed = 7 * n; seed < 8 * n; ++seed) {
                Prediction prediction = asked(n, id);
                shuffle(prediction, seed, lesson);
                CHECK(prediction.options[prediction.answer].text == "right");
                for (std::size_t i = 0; i < n; ++i) places[prediction.options[i].id].insert(i);
            }
            for (const auto& [option, stood] : places) CHECK(stood.size() == n);
        }
}

TEST_CASE("shuffle: over many predictions with one seed the right option is in each place") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        std::map<std::size_t, int> stood;
        for (int lesson = 1; lesson <= 100; ++lesson)
            for (int id = 1; id <= 4; ++id) {
                Prediction prediction = asked(4, id);
                shuffle(prediction, seed, lesson);
                ++stood[prediction.answer];
            }
        for (std::size_t place = 0; place < 4; ++place) {
            INFO("seed " << seed << ", place " << place << ": " << stood[place] << " of 400");
            CHECK((stood[place] > 60 && stood[place] < 140));  // 100 +- 4.6 standard deviations
        }
    }
}

TEST_CASE("shuffle: the order depends on the seed only, and a typed number is not shuffled") {
    Prediction once = asked(6, 3), again = asked(6, 3);
    shuffle(once, 11, 5), shuffle(again, 11, 5);
    for (std::size_t i = 0; i < 6; ++i) CHECK(once.options[i].id == again.options[i].id);
    Prediction number = typed(1, {{2, "two"}, {3, "three"}});
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        shuffle(number, seed, 1);
        CHECK(number.options[0].text == "right");
    }
    CHECK(reply_to(number, *parse_try(number, "0.5")) == "The answer is larger.");
    CHECK(reply_to(number, *parse_try(number, "7")) == "The answer is smaller.");
    CHECK(reply_to(number, *parse_try(number, "-1")) == "The answer has the other sign.");
}

TEST_CASE("parse_try: accepts a number within the tolerance only") {
    for (std::uint64_t draw = 0; draw < 200; ++draw) {
        const double value = tally::random::detail::bits(2026, 1, draw) % 2000 / 100.0 - 10;
        const double tolerance = (1 + tally::random::detail::bits(2026, 2, draw) % 100) / 1000.0;
        const double other = value + 1;
        const auto prediction = typed(value, {{other, "one more"}}, tolerance);
        INFO("draw " << draw << ": " << value << " within " << tolerance);
        for (const double part : {-0.99, 0.0, 0.99}) {
            const auto near = parse_try(prediction, std::to_string(value + part * tolerance));
            REQUIRE(near);
            CHECK(prediction.is_right(*near));
            const auto mistaken = parse_try(prediction, std::to_string(other + part * tolerance));
            CHECK((mistaken && !prediction.is_right(*mistaken) &&
                   reply_to(prediction, *mistaken) == "one more"));
        }
        const auto far = parse_try(prediction, std::to_string(value + 1.01 * tolerance + 1e-6));
        CHECK((far && !prediction.is_right(*far) && !far->choice));
    }
}

TEST_CASE("parse_try: rejects text that is not a number") {
    const auto prediction = typed(0.3, {{1, "one"}});
    for (const char* text : {"", "-", "e", "1e", "1.2.3", "1-1", "1e999", "..", "--1"})
        CHECK_FALSE(parse_try(prediction, text));
    CHECK(prediction.is_right(*parse_try(prediction, "0.3")));
    CHECK(prediction.is_right(*parse_try(typed(0.1 + 0.2, {{1, "one"}}), "0.3")));
    CHECK(prediction.tries() == 2);
    // If there are two options, only one option is left after a wrong answer.
    CHECK(asked(2, 1).tries() == 1);
}

TEST_CASE("drop_equal: drops mistakes that equal the answer or another mistake") {
    Prediction question = typed(1, {{0.5, "half"}, {1, "not divided"}, {6, "a sum"}});
    question.options.push_back({'b', "wrong", "rows", 6});
    std::swap(question.options[0], question.options[1]);
    question.answer = 1;
    CHECK_THROWS_WITH(require_distinct(question), tally::test::contains("within 0 of each other"));
    drop_equal(question);
    require_distinct(question);
    REQUIRE(question.options.size() == 3);
    CHECK((question.answer == 0 && question.options[0].value == 1));
    CHECK((question.options[1].mistake == "half" && question.options[2].mistake == "a sum"));
    Prediction near = typed(1, {{1.15, "too near"}}, 0.1);
    CHECK_THROWS_WITH(require_distinct(near), tally::test::contains("within 0.2 of each other"));
    drop_equal(near);
    CHECK(near.options.size() == 1);
}

TEST_CASE("number_in: accepts numbers as people write them") {
    const std::map<std::string, double> numbers{
        {"2/3", 2.0 / 3}, {"-0.5", -0.5},      {"0,0625", 0.0625},        {"0.9^4", 0.6561},
        {"2^-3", 0.125},  {"-2^2", -4},        {"14 949", 14949},         {"1e-3/2", 5e-4},
        {"1/2^3", 0.125}, {"0.25^(1/2)", 0.5}, {"(1/2)/(3/-4)", -2.0 / 3}};
    for (const auto& [text, number] : numbers) {
        INFO(text);
        REQUIRE(number_in(text));
        CHECK(std::abs(*number_in(text) - number) <= 1e-15 * std::abs(number));
    }
    for (const char* text :
         {"",  "/",   "2/", "/3", "1/0", "1/2/3", "2^", "^2", "nan",  "inf",  "0x1",    "3 times",
          "+", "--1", "(1", "1)", "()",  "(1)2",  "1^", "^0", "1^(2", "()^0", "1/(1/0)"})
        CHECK_FALSE(number_in(text));
}
