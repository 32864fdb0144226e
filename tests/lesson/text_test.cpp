// Widths, wrapping, pure ASCII, the nearest name.
#include "course/kit/text.hpp"

#include "catch.hpp"

using namespace tally::lesson;
using Strings = std::vector<std::string>;

TEST_CASE("a code point is one column") {
    CHECK(width_of("σ² ≤ 1") == 6);
    CHECK(padded("σ", 3) == "σ  ");
    CHECK(padded_left("σ", 3) == "  σ");
}

TEST_CASE("text wraps at blanks") {
    CHECK(wrapped("one two three", 7) == Strings{"one two", "three"});
    CHECK(wrapped("one two three", 7, 2) == Strings{"one two", "  three"});
    CHECK(wrapped("short  enough", 20) == Strings{"short  enough"});
    CHECK(wrapped("two  blanks stay, but not where a  line begins", 33) ==
          Strings{"two  blanks stay, but not where a", "line begins"});
    CHECK(wrapped("", 10) == Strings{""});
}

TEST_CASE("a word longer than the line is cut, and nothing of it is lost") {
    CHECK(wrapped("abcdefghij", 4) == Strings{"abcd", "efgh", "ij"});
    CHECK(wrapped("σσσσσσ", 4) == Strings{"σσσσ", "σσ"});
}

TEST_CASE("pieces stay whole") {
    CHECK(wrapped(Strings{"[ok] a name", "exact no", "bound 1"}, "   ", 22, 5) ==
          Strings{"[ok] a name   exact no", "     bound 1"});
}

TEST_CASE("what is no ASCII becomes a question mark") {
    CHECK(to_ascii("σ² ≤ 3") == "?? ? 3");
    CHECK(to_ascii("plain") == "plain");
    CHECK(to_ascii("字") == "?");
    CHECK(to_ascii("\xff") == "?");
}

TEST_CASE("edit distance") {
    CHECK(edit_distance("divde", "divide") == 1);
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("arrays", "rounding") == edit_distance("rounding", "arrays"));
    CHECK(edit_distance("kitten", "sitting") == 3);
}
