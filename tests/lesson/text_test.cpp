// Tests the width, the wrapping, the conversion to ASCII and the edit distance of texts.
#include "course/kit/text.hpp"

#include "catch.hpp"

using namespace tally::lesson;
using Strings = std::vector<std::string>;

TEST_CASE("width_of: a code point is one column") {
    CHECK(width_of("σ² ≤ 1") == 6);
    CHECK(padded("σ", 3) == "σ  ");
    CHECK(padded_left("σ", 3) == "  σ");
}

TEST_CASE("wrapped: breaks at blanks") {
    CHECK(wrapped("one two three", 7) == Strings{"one two", "three"});
    CHECK(wrapped("one two three", 7, 2) == Strings{"one two", "  three"});
    CHECK(wrapped("short  enough", 20) == Strings{"short  enough"});
    CHECK(wrapped("two  blanks stay, but not where a  line begins", 33) ==
          Strings{"two  blanks stay, but not where a", "line begins"});
    CHECK(wrapped("", 10) == Strings{""});
}

TEST_CASE("wrapped: cuts a word longer than the line without loss") {
    CHECK(wrapped("abcdefghij", 4) == Strings{"abcd", "efgh", "ij"});
    CHECK(wrapped("σσσσσσ", 4) == Strings{"σσσσ", "σσ"});
}

TEST_CASE("wrapped: keeps pieces whole") {
    CHECK(wrapped(Strings{"[ok] a name", "exact no", "bound 1"}, "   ", 22, 5) ==
          Strings{"[ok] a name   exact no", "     bound 1"});
}

TEST_CASE("to_ascii: other characters become question marks") {
    CHECK(to_ascii("σ² ≤ 3") == "?? ? 3");
    CHECK(to_ascii("plain") == "plain");
    CHECK(to_ascii("字") == "?");
    CHECK(to_ascii("\xff") == "?");
}
