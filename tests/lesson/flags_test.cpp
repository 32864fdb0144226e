// What flags and surroundings decide: waiting, rewriting, colour, ASCII.
#include "course/kit/flags.hpp"

#include "catch.hpp"

using namespace tally::lesson;

namespace {

const Surroundings terminal{.input_is_terminal = true,
                            .output_is_terminal = true,
                            .ci = {},
                            .term = "xterm",
                            .no_color = {},
                            .locale = "en_US.UTF-8"};

template <class Change> Mode with(Change change) {
    Flags flags;
    Surroundings around = terminal;
    change(flags, around);
    return mode_for(flags, around);
}

}  // namespace

TEST_CASE("at a terminal it waits, rewrites and colours") {
    const Mode mode = mode_for({}, terminal);
    CHECK(mode.waits);
    CHECK(mode.rewrites);
    CHECK(mode.style.colour);
    CHECK_FALSE(mode.style.ascii);
    CHECK(mode.not_waiting.empty());
}

TEST_CASE("it never waits, rewrites or colours where nobody may be") {
    const auto quiet = [](auto change) {
        const Mode mode = with(change);
        return !mode.waits && !mode.rewrites && !mode.style.colour && !mode.not_waiting.empty();
    };
    CHECK(quiet([](Flags&, Surroundings& around) { around.input_is_terminal = false; }));
    CHECK(quiet([](Flags&, Surroundings& around) { around.output_is_terminal = false; }));
    CHECK(quiet([](Flags&, Surroundings& around) { around.ci = "1"; }));
    CHECK(quiet([](Flags&, Surroundings& around) { around.term = "dumb"; }));
    CHECK(quiet([](Flags&, Surroundings& around) { around.term = ""; }));
    CHECK(quiet([](Flags& flags, Surroundings&) { flags.plain = true; }));
    CHECK(quiet([](Flags& flags, Surroundings&) { flags.json = true; }));
}

TEST_CASE("no-step does not wait, and may still rewrite and colour") {
    const Mode mode = with([](Flags& flags, Surroundings&) { flags.no_step = true; });
    CHECK_FALSE(mode.waits);
    CHECK(mode.rewrites);
    CHECK(mode.style.colour);
}

TEST_CASE("colour: the flag before NO_COLOR before the terminal") {
    const auto colour = [](auto change) { return with(change).style.colour; };
    CHECK_FALSE(colour([](Flags&, Surroundings& around) { around.no_color = "1"; }));
    CHECK(colour([](Flags& flags, Surroundings& around) {
        flags.color = "always";
        around.no_color = "1";
    }));
    CHECK_FALSE(colour([](Flags& flags, Surroundings&) { flags.color = "never"; }));
    CHECK_FALSE(colour([](Flags& flags, Surroundings&) {  // --plain promises no escapes at all
        flags.color = "always";
        flags.plain = true;
    }));
}

TEST_CASE("ASCII when asked for, or when the locale has nothing else") {
    const auto ascii = [](auto change) { return with(change).style.ascii; };
    CHECK(ascii([](Flags& flags, Surroundings&) { flags.ascii = true; }));
    CHECK(ascii([](Flags&, Surroundings& around) { around.locale = "C"; }));
    CHECK(ascii([](Flags&, Surroundings& around) { around.locale = ""; }));
    CHECK_FALSE(ascii([](Flags&, Surroundings& around) { around.locale = "C.utf8"; }));
}
