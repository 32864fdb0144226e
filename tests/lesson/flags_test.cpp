// Tests which flags and environment variables turn on waiting, rewriting, colour and ASCII.
#include "course/kit/flags.hpp"

#include "catch.hpp"

using namespace tally::lesson;

namespace {

const Environment terminal{.input_is_terminal = true,
                           .output_is_terminal = true,
                           .ci = {},
                           .term = "xterm",
                           .no_color = {},
                           .locale = "en_US.UTF-8"};

template <class Change> Mode with(Change change) {
    Flags flags;
    Environment around = terminal;
    change(flags, around);
    return mode_for(flags, around);
}

}  // namespace

TEST_CASE("mode_for: waits, rewrites and colours at a terminal") {
    const Mode mode = mode_for({}, terminal);
    CHECK(mode.waits);
    CHECK(mode.rewrites);
    CHECK(mode.style.colour);
    CHECK_FALSE(mode.style.ascii);
    CHECK(mode.not_waiting.empty());
}

TEST_CASE("mode_for: never waits, rewrites or colours when there may be no user") {
    const auto quiet = [](auto change) {
        const Mode mode = with(change);
        return !mode.waits && !mode.rewrites && !mode.style.colour && !mode.not_waiting.empty();
    };
    CHECK(quiet([](Flags&, Environment& around) { around.input_is_terminal = false; }));
    CHECK(quiet([](Flags&, Environment& around) { around.output_is_terminal = false; }));
    CHECK(quiet([](Flags&, Environment& around) { around.ci = "1"; }));
    CHECK(quiet([](Flags&, Environment& around) { around.term = "dumb"; }));
    CHECK(quiet([](Flags&, Environment& around) { around.term = ""; }));
    CHECK(quiet([](Flags& flags, Environment&) { flags.plain = true; }));
    CHECK(quiet([](Flags& flags, Environment&) { flags.json = true; }));
}

TEST_CASE("mode_for: rewrites and colours but does not wait with --no-step") {
    const Mode mode = with([](Flags& flags, Environment&) { flags.no_step = true; });
    CHECK_FALSE(mode.waits);
    CHECK(mode.rewrites);
    CHECK(mode.style.colour);
}

TEST_CASE("mode_for: --color overrides NO_COLOR, which overrides the terminal") {
    const auto colour = [](auto change) { return with(change).style.colour; };
    CHECK_FALSE(colour([](Flags&, Environment& around) { around.no_color = "1"; }));
    CHECK(colour([](Flags& flags, Environment& around) {
        flags.color = "always";
        around.no_color = "1";
    }));
    CHECK_FALSE(colour([](Flags& flags, Environment&) { flags.color = "never"; }));
    CHECK_FALSE(colour([](Flags& flags, Environment&) {  // --plain prints no escape sequences
        flags.color = "always";
        flags.plain = true;
    }));
}

TEST_CASE("mode_for: ASCII with --ascii or without a UTF-8 locale") {
    const auto ascii = [](auto change) { return with(change).style.ascii; };
    CHECK(ascii([](Flags& flags, Environment&) { flags.ascii = true; }));
    CHECK(ascii([](Flags&, Environment& around) { around.locale = "C"; }));
    CHECK(ascii([](Flags&, Environment& around) { around.locale = ""; }));
    CHECK_FALSE(ascii([](Flags&, Environment& around) { around.locale = "C.utf8"; }));
}
