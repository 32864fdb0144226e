// Tests that answers are written, parsed and counted.
#include "course/kit/answers.hpp"

#include <random>

#include "catch.hpp"
#include "course/kit/runner/answer_file.hpp"
#include "course/kit/runner/choose.hpp"
#include "course/kit/runner/misconceptions.hpp"
#include "folder.hpp"

using namespace tally::lesson;

namespace {

std::uint64_t new_seed() { return std::random_device{}(); }

bool same(const AnswerRecord& a, const AnswerRecord& b) { return line_of(a) == line_of(b); }

AnswerRecord try_of(int number, const std::string& how, const std::string& which = {},
                    const std::string& of = "divide") {
    return {.what = "question", .of = of, .number = std::to_string(number), .how = how, .which = which};
}

}  // namespace

TEST_CASE("line_of and parse_answer: an answer comes back unchanged and is one line") {
    const auto seed = new_seed();
    std::mt19937 draw(static_cast<std::mt19937::result_type>(seed));
    for (int round = 0; round < 200; ++round) {
        std::string any;
        for (int i = 0; i < 20; ++i) any += static_cast<char>(draw() % 256);
        const AnswerRecord answer{.what = "question",
                                  .of = "divide",
                                  .number = std::to_string(1 + draw() % 99),
                                  .how = "wrong",
                                  .which = "b",
                                  .given = any,
                                  .sentence = any,
                                  .question = any};
        const std::string line = line_of(answer);
        CAPTURE(seed, round, line);
        CHECK(line.find_first_of("\n\r\033") == std::string::npos);
        const auto back = parse_answer(line);
        REQUIRE(back);
        CHECK(line_of(*back) == line);
        // parse_answer() rejects a truncated line, unless this line is a valid answer itself.
        for (std::size_t end = 0; end < line.size(); ++end) {
            const auto half = parse_answer(line.substr(0, end));
            CHECK((!half || line_of(*half) == line.substr(0, end)));
        }
    }
}

TEST_CASE("parse_answer: rejects a line that is not an answer") {
    CHECK(parse_answer("lesson\tdivide\t\tdone\t\t\t\t"));
    for (const std::string line :
         {"", "lesson", "lesson\tdivide\t\tdone\t\t\t", "lesson\tdivide\t\tdone\t\t\t\t\t",
          "lesson\tdivide\t\tfinished\t\t\t\t", "lesson\t\t\tdone\t\t\t\t", "lesson\tDivide\t\tdone\t\t\t\t",
          "question\tdivide\t\tright\t\t\t\t", "question\tdivide\t0\tright\t\t\t\t",
          "question\tdivide\t100\tright\t\t\t\t", "question\tdivide\t1\tpassed\t\t\t\t",
          "exercise\tdivide\t\tright\t\t\t\t", "verse\tdivide\t1\tright\t\t\t\t",
          "question\tdivide\t1\twrong\tb c\t\t\t", "question\tdivide\t1\twrong\tb\t\t\033[31m\t"}) {
        CAPTURE(line);
        CHECK(!parse_answer(line));
    }
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

TEST_CASE("predicted: the first tries count when a question was answered several times") {
    const auto all =
        predicted({try_of(1, "right"), try_of(2, "wrong", "b"), try_of(2, "right", "a"), try_of(3, "skipped"),
                   try_of(3, "wrong", "b"), try_of(3, "wrong", "c"), try_of(3, "right", "a"),
                   try_of(4, "skipped"), try_of(1, "wrong", "b"), try_of(1, "right", "a", "unequal")});
    CHECK(all.asked == 5);
    CHECK(all.at_once == 2);
    CHECK(all.later == 1);
    CHECK(all.skipped == 1);
}

TEST_CASE("misconceptions: a learner counts once for each mistake and each question") {
    const std::vector<std::vector<AnswerRecord>> learners{
        {try_of(1, "wrong", "b"), try_of(1, "right", "a"), try_of(1, "wrong", "b")},
        {try_of(1, "wrong", "b"), try_of(1, "wrong", "c")},
        {try_of(1, "right", "a"), try_of(2, "wrong", "d")},
        {try_of(1, "skipped"), try_of(1, "wrong", "b", "unequal")},
        {}};
    const auto all = misconceptions(learners);
    REQUIRE(all.size() == 4);
    CHECK((all[0].answer.which == "b" && all[0].answer.of == "divide" && all[0].learners == 2 &&
           all[0].of == 3));
    CHECK((all[1].of == 1 && all[2].of == 1 && all[3].answer.which == "c" && all[3].of == 3));
    std::size_t made = 0;
    for (const auto& one : all) {
        CHECK(one.learners <= one.of);
        made += one.learners;
    }
    CHECK(made == 5);
    const std::string picture = chart_of(all, learners.size());
    CHECK(picture.find("2 of 3: divide, question 1") != std::string::npos);
    CHECK(misconceptions({}).empty());
}

TEST_CASE("AnswerFile: all_answered requires answers to all questions up to the last one asked") {
    const tally::test::Folder folder;
    const std::string work = folder / "work";
    AnswerFile answers(work);
    CHECK_FALSE(answers.all_answered("divide", false));  // no question was asked
    CHECK(answers.all_answered("divide", true));
    const auto question = [](const char* number, const char* how) {
        return AnswerRecord{.what = "question", .of = "divide", .number = number, .how = how};
    };
    answers.add({question("3", "right")});  // the lesson was begun at a later step
    CHECK_FALSE(answers.all_answered("divide", true));
    answers.add({question("1", "wrong"), question("2", "skipped")});
    CHECK_FALSE(answers.all_answered("divide", true));
    answers.add({question("2", "right")});
    CHECK(answers.all_answered("divide", true));
    CHECK(AnswerFile(work).all_answered("divide", true));
    CHECK_FALSE(answers.all_answered("unequal", false));
}

TEST_CASE("in_one_line: replaces control characters by blanks") {
    CHECK(in_one_line("a\tb\033[1m") == "a b [1m");
    CHECK(in_one_line("a\xC2\x9B"
                      "31m") == "a 31m");
    CHECK(in_one_line("half a letter: \xC2") == "half a letter: \xEF\xBF\xBD");
    CHECK(in_one_line("\xC2\xB5s") == "\xC2\xB5s");
}

TEST_CASE("find_named: finds by number, name, beginning or part of a name") {
    const std::vector<Named> all{
        {2, "the-diamond"}, {6, "forgot-to-divide"}, {7, "divide"}, {11, "the-tail"}, {3, "tail"}};
    std::string message;
    const auto found = [&](const std::string& which) -> std::string {
        const auto at = find_named(all, which, "lesson", "./learn list", message);
        return at ? all[*at].slug : "";
    };
    for (const auto& [number, slug] : all) {
        CHECK(found(slug) == slug);
        CHECK(found(std::to_string(number)) == slug);
        CHECK(found("0" + std::to_string(number)) == slug);
    }
    CHECK(found("forg") == "forgot-to-divide");
    CHECK(found("diam") == "the-diamond");
    CHECK(found("div") == "divide");  // a match at the beginning is preferred
    CHECK(found("the").empty());
    CHECK(message == "'the' could be the-diamond, the-tail (./learn list)");
    CHECK(found("8").empty());
    CHECK(message == "no lesson 8; there are 2 to 11 (./learn list)");
    CHECK(found("dvide").empty());
    CHECK(message == "no lesson 'dvide'; the nearest is 'divide' (./learn list)");
}
