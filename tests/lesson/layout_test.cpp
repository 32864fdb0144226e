// Compares the printed lines of a lesson's events with expected text.
#include "course/kit/layout.hpp"

#include "catch.hpp"
#include "course/kit/text.hpp"

using namespace tally::lesson;

namespace {

const Lesson divide{.number = 7, .slug = "divide", .title = "divide", .minutes = 10, .steps = 6};

std::string laid_out(decltype(Event::is) what, Style style = {}) {
    std::string text = "\n";
    for (const auto& line : lines_of({4, std::move(what)}, divide, style)) {
        CHECK(width_of(line) <= style.width);
        text += line + "\n";
    }
    return text;
}

const std::vector<float> full{-0.3536F, 0.0207F, -0.6125F}, sum{-1.0608F, 0.062F, -1.8375F};

TableShown micro_batches() {
    TableShown table{{"rows", "loss", "this micro-batch", "w.grad after it"}, {}};
    table.rows.push_back({"0-1", 0.1406F, full, sum});
    table.rows.push_back({"2-3", -0.7656F, full, sum});
    return table;
}

Prediction times() {
    return {.question = "It is the full-batch gradient times",
            .options = {{'a', "3", ""},
                        {'b', "1", "Nothing was cleared."},
                        {'c', "2", "Rows."},
                        {'d', "no fixed factor", "One."}},
            .why = "6 / 2 = 3"};
}

Prediction half() {
    return {.is_typed = true,
            .within = 0.01,
            .question = "Half of 5 is",
            .options = {{'a', "2.5", "", 2.5}, {'b', "5", "That is the sum.", 5}},
            .why = "5 / 2"};
}

Check three_times() {
    return {.name = "sum of three = 3 x full",
            .ok = true,
            .exact = false,
            .close = true,
            .max_diff = 2.4e-7,
            .bound = 1.1e-6};
}

}  // namespace

TEST_CASE("lines_of: a title is a rule with the settings") {
    const Title title{divide, "cpu", 0};
    CHECK(laid_out(title) == R"(
== Lesson 7: divide ============================================= cpu  seed 0 ==
)");
    Style narrow;
    narrow.width = 36;
    CHECK(laid_out(title, narrow) == R"(
== Lesson 7: divide ==
cpu  seed 0
)");
}

TEST_CASE("lines_of: a sentence begins a step and a note continues it") {
    CHECK(laid_out(Sentence{Sentence::Role::step, "w.grad is NOT cleared in between."}) == R"(
 [4/6] w.grad is NOT cleared in between.
)");
    Style narrow;
    narrow.width = 30;
    CHECK(laid_out(Sentence{Sentence::Role::note, "w.grad is NOT cleared in between."}, narrow) == R"(
  w.grad is NOT cleared in
  between.
)");
}

TEST_CASE("lines_of: source has file and line") {
    CHECK(laid_out(Source{"lessons/07_divide.cpp",
                          31,
                          {"for (auto micro : split(x, 2))", "    (loss / 3).backward();"}}) == R"(
       lessons/07_divide.cpp:31
         for (auto micro : split(x, 2))
             (loss / 3).backward();
)");
}

TEST_CASE("lines_of: values are in one column") {
    CHECK(laid_out(Tensor{"w.grad", full}) == R"(
       w.grad          [-0.3536  0.0207 -0.6125]
)");
    CHECK(laid_out(Tensor{"loss", -0.662F}) == R"(
       loss             -0.6620
)");
    CHECK(laid_out(Tensor{"before", Numbers::not_there()}) == R"(
       before          -
)");
    CHECK(laid_out(Tensor{"order", "d c b a"}) == R"(
       order             d c b a
)");
}

TEST_CASE("lines_of: the columns of a table are aligned") {
    CHECK(laid_out(micro_batches()) == R"(
       rows      loss      this micro-batch           w.grad after it
       0-1     0.1406   -0.3536  0.0207 -0.6125   -1.0608  0.0620 -1.8375
       2-3    -0.7656   -0.3536  0.0207 -0.6125   -1.0608  0.0620 -1.8375
)");
}

TEST_CASE("lines_of: a table repeats its first column when it is wider than the screen") {
    Style narrow;
    narrow.width = 60;
    CHECK(laid_out(micro_batches(), narrow) == R"(
       rows      loss      this micro-batch
       0-1     0.1406   -0.3536  0.0207 -0.6125
       2-3    -0.7656   -0.3536  0.0207 -0.6125
       rows       w.grad after it
       0-1    -1.0608  0.0620 -1.8375
       2-3    -1.0608  0.0620 -1.8375
)");
}

TEST_CASE("lines_of: a table has its first column in each block at any width") {
    Style narrow;
    narrow.width = 40;
    TableShown table{{"a rather long heading", "this micro-batch"}, {}};
    table.rows.push_back({"the first two rows", full});
    table.rows.push_back({"2-3", full});
    CHECK(laid_out(table, narrow) == R"(
  a rather long heading
  the first two rows
  2-3
  a rather long heading   this
    micro-batch
  the first two rows   -0.3536  0.0207
    -0.6125
  2-3   -0.3536  0.0207 -0.6125
)");
    for (narrow.width = 20; narrow.width <= 80; ++narrow.width) {
        const std::string all = laid_out(micro_batches(), narrow);
        for (const std::string value : {"loss", "this", "w.grad"}) {
            const std::size_t at = all.find(value), block = all.rfind("rows ", at);
            CAPTURE(narrow.width, value, all);
            CHECK((at != std::string::npos && block != std::string::npos));
            CHECK(all.find("2-3 ", block) != std::string::npos);
        }
    }
}

TEST_CASE("lines_of: a prediction shows the question and a reveal the answer") {
    CHECK(laid_out(times()) == R"(
 [4/6] PREDICT  It is the full-batch gradient times
       1) 3    2) 1    3) 2    4) no fixed factor
)");
    const Try right{0, {}}, first_wrong{1, {}}, last_wrong{3, {}};
    CHECK(laid_out(Reveal{times(), {}}) == "\n       Answer: 1) 3.  6 / 2 = 3\n");
    CHECK(laid_out(Reveal{times(), {right}}) == "\n       Right: 1) 3.  6 / 2 = 3\n");
    CHECK(laid_out(Reveal{times(), {first_wrong, right}}) == "\n       Right: 1) 3.  6 / 2 = 3\n");
    CHECK(laid_out(Reveal{times(), {first_wrong}}) ==
          "\n       Answer: 1) 3.  6 / 2 = 3\n");  // the second attempt was skipped
    CHECK(laid_out(Reveal{times(), {first_wrong, last_wrong}}) ==
          "\n       Not quite: 4) no fixed factor.  One.\n       Answer: 1) 3.  6 / 2 = 3\n");
    CHECK(reply_lines(times(), first_wrong, divide, {}) ==
          std::vector<std::string>{"       Not quite: 2) 1.  Nothing was cleared."});
}

TEST_CASE("lines_of: a typed number is shown with its tolerance and as it was typed") {
    CHECK(laid_out(half()) == R"(
 [4/6] PREDICT  Half of 5 is
       type a number; 0.01 more or less is accepted
)");
    CHECK(laid_out(Reveal{half(), {*parse_try(half(), "2.51")}}) == "\n       Right: 2.5.  5 / 2\n");
    CHECK(laid_out(Reveal{half(), {*parse_try(half(), "5e0"), *parse_try(half(), "7")}}) ==
          "\n       Not quite: 7.  The answer is smaller.\n       Answer: 2.5.  5 / 2\n");
    CHECK(reply_lines(half(), *parse_try(half(), "5e0"), divide, {}) ==
          std::vector<std::string>{"       Not quite: 5e0.  That is the sum."});
}

TEST_CASE("lines_of: options use two columns or one line each when they do not fit on one line") {
    const auto asked = [](std::size_t length) {
        return Prediction{.question = "?",
                          .options = {{'a', std::string(length, 'a'), ""},
                                      {'b', std::string(length, 'b'), "b"},
                                      {'c', std::string(length, 'c'), "c"}}};
    };
    CHECK(laid_out(asked(30)) == "\n [4/6] PREDICT  ?\n       1) " + std::string(30, 'a') + "    2) " +
                                     std::string(30, 'b') + "\n       3) " + std::string(30, 'c') + "\n");
    CHECK(laid_out(asked(35)) == "\n [4/6] PREDICT  ?\n       1) " + std::string(35, 'a') + "\n       2) " +
                                     std::string(35, 'b') + "\n       3) " + std::string(35, 'c') + "\n");
}

TEST_CASE("lines_of: a check shows its result") {
    Style wide;
    wide.width = 100;
    CHECK(laid_out(three_times(), wide) == R"(
       [ok] sum of three = 3 x full   exact no   close yes   max|diff| 2.4e-07   bound 1.1e-06
)");
    CHECK(laid_out(three_times()) == R"(
       [ok] sum of three = 3 x full   exact no   close yes   max|diff| 2.4e-07
            bound 1.1e-06
)");
    const Check failed{.name = "peak",
                       .ok = false,
                       .detail = "got 9, expected 4",
                       .file = "lessons/28_checkpointing.cpp",
                       .line = 58};
    CHECK(laid_out(failed) == R"(
       [FAIL] peak
            got 9, expected 4
            lessons/28_checkpointing.cpp:58
)");
}

TEST_CASE("lines_of: charts of bars and points") {
    const Plot bars{"loss", true, {{"loss", {1, 2, 3}, {4, 2, 1}}}};
    CHECK(laid_out(bars) == R"(
       loss
       4 |███
         |███
         |███ ███
       0 |███ ███ ███
          1 .. 3
)");
    Style ascii;
    ascii.ascii = true;
    CHECK(laid_out(bars, ascii) == R"(
       loss
       4 |###
         |###
         |### ###
       0 |### ### ###
          1 .. 3
)");
    Style narrow;
    narrow.width = 34;
    CHECK(laid_out(Plot{"cloud", false, {{"noise", {0, 2}, {1, -1}}, {"truth", {1}, {0}}}}, narrow) == R"(
  cloud
   1 |o
     |
     |
     |              x
     |
     |
  -1 |                           o
      0                          2
    o noise    x truth
)");
}

TEST_CASE("lines_of: a chart without finite numbers is a message") {
    CHECK(laid_out(Plot{"x", false, {{"s", {}, {}}}}) == "\n       x\n       (nothing finite to draw)\n");
}

TEST_CASE("lines_of: every state is a word with and without colour") {
    Style colour;
    colour.colour = true;
    std::string text;
    for (const auto& line : lines_of({4, three_times()}, divide, colour)) text += line;
    CHECK_THAT(text, tally::test::contains("\033[32m[ok]\033[0m sum of three"));
    CHECK(painted("[ok]", Tone::good, Style{}) == "[ok]");
}
