// Tests that pages of lessons are parsed, and that errors in pages name the file, the line and what is expected.
#include "course/kit/page.hpp"

#include <filesystem>
#include <fstream>
#include <functional>

#include "catch.hpp"

using namespace tally::lesson;

namespace {
const std::string head = "# Lesson 7: divide\n\n10 minutes alone, 20 in class · `./learn run divide`\n\n";
const std::string example_question =
    "### few-words\n\nHow much does a word of\n`micro` {k} count?\n\n"
    "* **{n}**(within)\n* 1/{n} — The inverse:\n  which is larger?\n* 7 — That is {k}.\n\n"
    "Hint: Is it 1?\nHint: Compare.\nAnswer: A word counts {n}.\n\n";

std::string with(std::string text, const std::string& before, const std::string& after) {
    const std::size_t at = text.find(before);
    REQUIRE(at != std::string::npos);
    return text.replace(at, before.size(), after);
}

std::string error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "no error";
}
}  // namespace

TEST_CASE("parse_page: reads the number, the title, the minutes and the questions") {
    const Page page = parse_page(
        "p.md", head + "### not-a-question\n```\n## The questions\n```\n## The questions\n\n" +
                    with(example_question, "(within)", " (within 0.5)") + "## Read next\n### no\n");
    CHECK(page.number == 7);
    CHECK(page.title == "divide");
    CHECK(page.minutes == 10);
    REQUIRE(page.questions.size() == 1);

    const Prediction asked = prediction_of(page, "few-words", {{"n", "4"}, {"k", "9"}}, false);
    CHECK(asked.question == "How much does a word of micro 9 count?");
    CHECK(asked.is_typed);
    CHECK(asked.within == 0.5);
    REQUIRE(asked.options.size() == 3);
    CHECK(asked.options[asked.answer].value == 4);
    CHECK(asked.options[1].value == 0.25);
    CHECK(asked.options[1].mistake == "The inverse: which is larger?");
    CHECK(asked.options[2].mistake == "That is 9.");
    CHECK(asked.hints.question == "Is it 1?");
    CHECK(asked.why == "A word counts 4.");
}

TEST_CASE("parse_page: reads the sentence about PyTorch") {
    const Page page = parse_page(
        "p.md",
        head + "## Remember\n\nDivide once.\n\nIn PyTorch: `(loss / n)\n.backward()`\n\nTry it: six.\n");
    CHECK(page.in_pytorch == "In PyTorch: (loss / n) .backward()");
}

TEST_CASE("prediction_of: a question is typed only if all options are numbers") {
    const std::string words = with(with(example_question, "(within)", ""), "* 7 —", "* seven —");
    const Page page = parse_page("p.md", head + "## The questions\n" + words);
    CHECK_FALSE(prediction_of(page, "few-words", {{"n", "4"}, {"k", "9"}}, false).is_typed);
}

TEST_CASE("prediction_of: equal numbers are dropped only if a parameter was changed") {
    const Page page =
        parse_page("p.md", head + "## The questions\n" + with(example_question, "(within)", ""));
    CHECK(prediction_of(page, "few-words", {{"n", "7"}, {"k", "9"}}, true).options.size() == 2);
    CHECK_THROWS(prediction_of(page, "few-words", {{"n", "7"}, {"k", "9"}}, false));
}

TEST_CASE("parse_page: an error names the file, the line and what is expected") {
    const auto parsed = [](const std::string& text) { return error_of([&] { parse_page("p.md", text); }); };
    const std::string good = with(example_question, "(within)", "");
    const auto asked = [&](const std::string& before, const std::string& after) {
        return parsed(head + "## The questions\n" + with(good, before, after));
    };
    CHECK(asked("Hint: Is it 1?", "Hint: Is it 1?") == "no error");
    CHECK(parsed("text\n") == "p.md:1: expected a heading such as '# Lesson 7: divide'");
    CHECK(parsed("# Lesson 7: divide\n") ==
          "p.md:1: expected a line such as '10 minutes alone, 20 in class'");
    CHECK(asked("* 7 — That", "* 7 - That") ==
          "p.md:14: expected '* **the right option**' or '* a wrong option — its explanation'");
    CHECK(asked("* **{n}**", "* **{n}** — Yes.") ==
          "p.md:11: expected '* **the right option**' or '* a wrong option — its explanation'");
    CHECK(asked("* **{n}**\n", "") ==
          "p.md:6: the question 'few-words' has 0 right options, which are bold; expected 1");
    CHECK(asked("* 7 — That is {k}.", "* **7**") ==
          "p.md:6: the question 'few-words' has 2 right options, which are bold; expected 1");
    CHECK(asked("* 1/{n} — The inverse:\n  which is larger?\n* 7 — That is {k}.\n", "") ==
          "p.md:6: the question 'few-words' has 1 options; expected 2 to 9");
    CHECK(asked("Hint: Compare.\n", "") ==
          "p.md:6: the question 'few-words' has 1 hints; expected two lines 'Hint: ...'");
    CHECK(asked("Answer: A word counts {n}.", "") ==
          "p.md:6: the question 'few-words' has no line 'Answer: ...'");
    CHECK(asked("Hint: Is it 1?", "Another paragraph.") ==
          "p.md:16: expected '* an option — its explanation', 'Hint: ...' or 'Answer: ...'");
    CHECK(error_of([&] {
              prediction_of(parse_page("p.md", head + "## The questions\n" + good), "few-words", {{"n", "4"}},
                            false);
          }) == "p.md:6: ask(\"few-words\") gives no value for {k}");
    CHECK(error_of([&] { prediction_of(parse_page("p.md", head), "other", {}, false); }) ==
          "p.md: the question 'other' does not exist; add the heading '### other' to the section '## The "
          "questions'");
}

TEST_CASE("page_to_read: paragraphs are wrapped and the questions are left out") {
    const auto path = std::filesystem::temp_directory_path() / "tally_page_to_read.md";
    std::ofstream(path) << head << "A paragraph of\nsome words.\n- an item that is\n  long\n1. first\n```\n"
                        << "code   of more than twenty columns\n```\n| a | b |\n## The questions\n"
                        << example_question << "## Remember\nthe rule\n";
    const std::string page = page_to_read(path, 20);
    std::filesystem::remove(path);
    CHECK(page ==
          "# Lesson 7: divide\n\n10 minutes alone, 20\nin class · `./learn\nrun divide`\n\n"
          "A paragraph of some\nwords.\n- an item that is\n   long\n1. first\n```\n"
          "code   of more than twenty columns\n```\n| a | b |\n## Remember\nthe rule\n");
}
