// Tests that answers are written as lines.
#include "course/kit/answers.hpp"

#include "catch.hpp"

using namespace tally::lesson;

namespace {
bool same(const AnswerRecord& a, const AnswerRecord& b) { return line_of(a) == line_of(b); }
}  // namespace

TEST_CASE("line_of: separates the fields by tabs and replaces control characters by blanks") {
    const auto line = [](const std::string& given) {
        return line_of({.what = "question",
                        .of = "divide",
                        .number = "1",
                        .how = "wrong",
                        .which = "b",
                        .given = given});
    };
    CHECK(line("a\tb\033[1m\n") == "question\tdivide\t1\twrong\tb\ta b [1m \t\t");
    CHECK(line("a\xC2\x9B"
               "31m") == "question\tdivide\t1\twrong\tb\ta 31m\t\t");
    CHECK(line("half a letter: \xC2") == "question\tdivide\t1\twrong\tb\thalf a letter: \xEF\xBF\xBD\t\t");
    CHECK(line("\xC2\xB5s") == "question\tdivide\t1\twrong\tb\t\xC2\xB5s\t\t");
}

TEST_CASE("answers_of: one entry for each try") {
    Reveal reveal{prediction_of("Half of 5 is",
                                std::vector<Option>{right("2.5"), wrong("5", "That is all of it."),
                                                    wrong("2", "Cut off.")},
                                hint("?", "."), "why"),
                  {}};
    reveal.prediction.id = 3;
    CHECK(same(
        answers_of(reveal, "halves").front(),
        {.what = "question", .of = "halves", .number = "3", .how = "skipped", .question = "Half of 5 is"}));
    reveal.tries = {{.choice = 1, .typed = {}}, {.choice = 0, .typed = {}}};
    const auto answers = answers_of(reveal, "halves");
    REQUIRE(answers.size() == 2);
    CHECK(same(answers[0], {.what = "question",
                            .of = "halves",
                            .number = "3",
                            .how = "wrong",
                            .which = "b",
                            .given = "5",
                            .sentence = "That is all of it.",
                            .question = "Half of 5 is"}));
    CHECK((answers[1].how == "right" && answers[1].which == "a" && answers[1].sentence.empty()));
    shuffle(reveal.prediction, 5, 7);
    for (std::size_t i = 0; i < 3; ++i) {  // the letter of an option does not depend on the shuffle
        reveal.tries = {{.choice = i, .typed = {}}};
        const auto again = answers_of(reveal, "halves").front();
        CHECK(again.which == (again.given == "2.5" ? "a" : again.given == "5" ? "b" : "c"));
    }
}
