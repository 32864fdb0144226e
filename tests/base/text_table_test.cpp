// Tests that a TextTable computes the width that a column needs in a terminal, for text in any alphabet.
#include "tally/base/text_table.hpp"

#include "catch.hpp"

namespace tally::test {

namespace {

using enum TextTable::Side;

}  // namespace

TEST_CASE("TextTable: columns are as wide as their widest entry, and lines have no trailing spaces") {
    TextTable table({{"name", left}, {"calls", right}, {"of", left}});
    table.add({"a", "1", "x"});
    table.add({"longest", "1000000", ""});
    CHECK(table.text() ==
          "name       calls  of\n"
          "a              1  x\n"
          "longest  1000000\n");
}

TEST_CASE("TextTable: measures entries in terminal columns, not in bytes") {
    TextTable table({{"name", left}, {"größe", right}});
    table.add({"größe", "1"});
    table.add({"grosse", "größer"});
    table.add({"大小", "大"});
    CHECK(table.text() ==
          "name     größe\n"
          "größe        1\n"
          "grosse  größer\n"
          "大小        大\n");
}

}  // namespace tally::test
