// Tests that answers are written as lines.
#include "course/kit/answers.hpp"

#include "catch.hpp"

using namespace tally::lesson;

namespace {
// Returns a question with the number 3 and the right option 2.5.
Reveal halves(bool is_typed = false) {
    Reveal reveal;
    reveal.prediction = {
        .id = 3,
        .is_typed = is_typed,
        .question = "Half of 5 is",
        .options = {{'a', "2.5", "", 2.5}, {'b', "5", "That is all of it.", 5}, {'c', "2", "Cut off.", 2}}};
    return reveal;
}
}  // namespace

TEST_CASE("answer_lines: separates the fields by tabs and replaces control characters by blanks") {
    const auto given = [](const std::string& typed) {
        Reveal reveal = halves(true);
        reveal.tries = {{.choice = 1, .typed = typed}};
        const std::string line = answer_lines(reveal, "halves"), head = "question\thalves\t3\twrong\tb\t";
        const std::string tail = "\tThat is all of it.\tHalf of 5 is\n";
        CHECK((line.starts_with(head) && line.ends_with(tail)));
        return line.substr(head.size(), line.size() - head.size() - tail.size());
    };
    CHECK(given("a\tb\033[1m\n") == "a b [1m ");
    CHECK(given("a\xC2\x9B"
                "31m") == "a 31m");
    CHECK(given("half a letter: \xC2") == "half a letter: \xEF\xBF\xBD");
    CHECK(given("\xC2\xB5s") == "\xC2\xB5s");
}

TEST_CASE("answer_lines: one line for each try") {
    Reveal reveal = halves();
    CHECK(answer_lines(reveal, "halves") == "question\thalves\t3\tskipped\t\t\t\tHalf of 5 is\n");
    reveal.tries = {{.choice = 1, .typed = {}}, {.choice = 0, .typed = {}}};
    CHECK(answer_lines(reveal, "halves") ==
          "question\thalves\t3\twrong\tb\t5\tThat is all of it.\tHalf of 5 is\n"
          "question\thalves\t3\tright\ta\t2.5\t\tHalf of 5 is\n");
    reveal = halves(true);
    reveal.tries = {{.choice = {}, .typed = "7"}};
    CHECK(answer_lines(reveal, "halves") ==
          "question\thalves\t3\twrong\t\t7\tThe answer is smaller.\tHalf of 5 is\n");
    for (std::size_t i = 0; i < 3; ++i) {  // the letter of an option does not depend on the shuffle
        reveal = halves();
        shuffle(reveal.prediction, 5, 7);
        reveal.tries = {{.choice = i, .typed = {}}};
        const std::string line = answer_lines(reveal, "halves");
        CAPTURE(line);
        CHECK((line.find("\ta\t2.5\t") != line.npos || line.find("\tb\t5\t") != line.npos ||
               line.find("\tc\t2\t") != line.npos));
    }
}
