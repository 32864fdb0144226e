// Tests the steps, the recorded events, the tables, the checks and the end of a running lesson.
#include "course/kit/running.hpp"

#include <array>

#include "catch.hpp"
#include "course/kit/toy.hpp"

using namespace tally::lesson;
using tally::test::contains;

namespace {

const Lesson two_steps{.number = 1, .slug = "two-steps", .title = "two steps", .minutes = 1, .steps = 2};

// A RecordingViewer records the names of the events that a lesson shows.
struct RecordingViewer : Viewer {
    std::vector<std::string> seen;

    void show(const Event& event) override {
        constexpr std::array names{"title",  "sentence", "source", "tensor", "table",    "prediction",
                                   "reveal", "check",    "graph",  "plot",   "progress", "end"};
        seen.push_back(names[event.is.index()] + std::string(" ") + std::to_string(event.step));
    }
    void progress(const ProgressMade& made, bool another_tenth) override {
        if (another_tenth) tenths.push_back(made.done);
    }
    std::vector<Try> ask(const Prediction&, const Record&) override {
        seen.push_back("ask");
        return {};
    }
    void end_of_step(const Record&) override { seen.push_back("stop"); }
    void end_of_lesson(const Record&) override { seen.push_back("last stop"); }
    std::vector<std::int64_t> tenths;
};

struct Stage {
    explicit Stage(int from = 1, const Lesson& lesson = two_steps)
        : options{.settings = settings_of(lesson.parameters, {})}, running(lesson, options, viewer, from) {}
    RecordingViewer viewer;
    Options options;
    Running running;
};

using Seen = std::vector<std::string>;

void predict() {
    Running::now().ask({.question = "what?", .options = {{'a', "a", ""}, {'b', "b", "not b"}}, .why = "so"});
}

}  // namespace

TEST_CASE("Running: a step ends when the next begins, and a question is asked before the reveal") {
    Stage stage;
    step("one");
    show("x", 1.0);
    predict();
    check("it holds", true);
    stage.running.finish(Outcome::ok, "");
    CHECK(stage.viewer.seen == Seen{"sentence 1", "tensor 1", "stop", "prediction 2", "ask", "reveal 2",
                                    "check 2", "end 2", "last stop"});
    CHECK(stage.running.end().outcome == Outcome::ok);
    CHECK(stage.running.end().checks == 1);
}

TEST_CASE("Running: with a later first step earlier steps are hidden and ask nothing, and the end is shown") {
    Stage stage(2);
    predict();
    check("it holds", false, "because");
    step("two");
    stage.running.finish(Outcome::ok, "");
    CHECK(stage.viewer.seen == Seen{"sentence 2", "end 2", "last stop"});
    CHECK(stage.running.end().outcome == Outcome::fail);
}

TEST_CASE("Running: the end is shown when a lesson stops in a hidden step") {
    Stage stage(2);
    step("one");
    stage.running.finish(Outcome::fail, "it threw");
    CHECK(stage.viewer.seen.front() == "end 2");
    CHECK(stage.running.end().failed_step == 1);
}

TEST_CASE("setting: converts only to the declared kind of parameter") {
    Lesson changed = two_steps;
    changed.parameters = {learning_rate(1, 0.1, 2), equal_micro_batches(),
                          several("values", "a and b", {2, -3}, -9, 9)};
    const Stage stage(1, changed);
    const double rate = setting("rate");
    const int micro = setting("micro");
    const double as_double = setting("micro");
    CHECK(rate == 1);
    CHECK(micro == 3);
    CHECK(as_double == 3);
    const std::vector<std::int64_t> values = setting("values");
    CHECK(values == std::vector<std::int64_t>{2, -3});
    // A real number cannot be read as int, even if the value is whole.
    CHECK_THROWS_WITH(int(setting("rate")), "[setting] 'rate' is a real number; read it as double");
    CHECK_THROWS_WITH(double(setting("values")),
                      "[setting] 'values' is several numbers; read it as std::vector<std::int64_t>");
    CHECK_THROWS_WITH(std::vector<std::int64_t>(setting("micro")),
                      "[setting] 'micro' is one number; read it as int or double");
    CHECK_THROWS_WITH(int(setting("steps")), "[setting] the lesson does not declare a parameter 'steps'");
}

TEST_CASE("table: is shown before the next event") {
    Stage stage;
    step("one");
    auto rows = table({"k", "loss"});
    rows.row(1, 0.5);
    for (auto i : progress("work", 20)) static_cast<void>(i);
    rows.row(2, 0.25);
    CHECK(stage.viewer.seen == Seen{"sentence 1"});
    check("done", true);
    CHECK(stage.viewer.seen == Seen{"sentence 1", "table 1", "check 1"});
    CHECK_THROWS_WITH(rows.row(3, 0.1), contains("already shown"));
    auto other = table({"k"});
    CHECK_THROWS_WITH(rows.row(3, 0.1), contains("already shown"));
    CHECK_THROWS_WITH(other.row(1, 2), contains("2 cells for 1 columns"));
}

TEST_CASE("table: returns the cells that it has shown") {
    Stage stage;
    step("one");
    auto rows = table({"k", "loss", "", "same"});
    CHECK(!rows.all("same", "yes"));
    rows.row(1, std::vector<float>{0.5f, 0.25f}, "words", true);
    rows.row(2, 0.125f, 7, true);
    CHECK(rows.column("k").values == std::vector<double>{1, 2});
    CHECK(rows.column("k").type == Numbers::Type::integer);
    CHECK(rows.column("loss").values == std::vector<double>{0.5, 0.25, 0.125});
    CHECK(rows.column("loss").shape == std::vector<std::int64_t>{3});
    CHECK(rows.column("loss").type == Numbers::Type::float32);
    CHECK(rows.all("same", "yes"));
    check("done", true);  // ends the table
    CHECK(rows.column("").values == std::vector<double>{7});
    CHECK_THROWS_WITH(rows.column("los"), contains("has no column 'los'"));
    CHECK_THROWS_WITH(rows.row(3, 0.1, 1, false), contains("already shown"));
    CHECK(rows.all("same", "yes"));
}

TEST_CASE("toy::micro_batches: they name their rows") {
    Stage stage;
    std::vector<std::string> said;
    for (const std::int64_t size : {1, 4, 6})
        for (const auto& [micro, rows] : toy::micro_batches(toy::rows(), size))
            said.push_back(rows + " of " + std::to_string(micro.shape()[0]));
    CHECK(said == std::vector<std::string>{"0 of 1", "1 of 1", "2 of 1", "3 of 1", "4 of 1", "5 of 1",
                                           "0-3 of 4", "4-5 of 2", "0-5 of 6"});
}

TEST_CASE("table: stays open until its first row") {
    Stage stage;
    step("one");
    auto rows = table({"k"});
    check("said before the first row", true);
    rows.row(1);
    check("done", true);
    CHECK(stage.viewer.seen == Seen{"sentence 1", "check 1", "table 1", "check 1"});
}

TEST_CASE("progress: visits every index and reports each tenth once") {
    for (const std::int64_t total : {1, 3, 10, 999, 12345}) {
        Stage stage;
        step("one");
        std::int64_t done = 0;
        for (auto i : progress("work", total)) done += i == done ? 1 : 0;
        CHECK(done == total);
        const auto expected = static_cast<std::size_t>(std::min<std::int64_t>(total, 10));
        CHECK(stage.viewer.tenths.size() == expected);
        CHECK(stage.viewer.tenths.back() == total);
    }
    for (auto i : progress("nothing", 0)) FAIL("work where there is none: " << i);
}

TEST_CASE("Running: the end reports the first failure") {
    Stage stage;
    step("one");
    CHECK(check("fine", true));
    step("two");
    CHECK_FALSE(check_equal("peak", 9, 4));
    CHECK_FALSE(check("second", false));
    stage.running.finish(Outcome::ok, "");
    const End& end = stage.running.end();
    CHECK(end.outcome == Outcome::fail);
    CHECK(end.failed == 2);
    CHECK(end.detail == "peak: got 9, expected 4");
    CHECK(end.file == "lesson/running_test.cpp");
    CHECK(end.failed_step == 2);
}

TEST_CASE("Running: a lesson fails when it has more or fewer steps than declared") {
    Stage stage;
    step("one");
    stage.running.finish(Outcome::ok, "");
    CHECK(stage.running.end().outcome == Outcome::fail);
    CHECK(stage.running.end().detail == "the lesson declares 2 steps and has 1");
}

TEST_CASE("Running: a lesson fails when it is skipped after a failed check") {
    Stage stage;
    step("one");
    check("no", false);
    stage.running.finish(Outcome::skip, "not today");
    CHECK(stage.running.end().outcome == Outcome::fail);
}

TEST_CASE("lesson kit: mistakes of authors throw errors with messages") {
    CHECK_THROWS_WITH(step("outside a lesson"), contains("no lesson is running"));
    Stage stage;
    step("one");
    CHECK_THROWS_WITH(code(4), contains("1 to 3"));
    CHECK_THROWS_WITH(plot("p", {Series{"s", {1, 2}, {1}}}), contains("2 x and 1 y"));
}

TEST_CASE("code: shows the next lines without their indentation") {
    struct Last : Viewer {
        Event event;
        void show(const Event& e) override { event = e; }
    } last;
    const Options options;
    Running running(two_steps, options, last, 1);
    step("one");
    code(2);
    const int shown = 1;
    CHECK(shown == 1);
    const auto& source = std::get<Source>(last.event.is);
    CHECK(source.file == "lesson/running_test.cpp");
    CHECK(source.lines == std::vector<std::string>{"const int shown = 1;", "CHECK(shown == 1);"});
}
