// Tables of text: columns as wide as they look, in any alphabet.
#include "tally/base/text_table.hpp"

#include "catch.hpp"

namespace tally::test {

namespace {

using enum TextTable::Side;

}  // namespace

TEST_CASE("Columns are as wide as their widest entry, and nothing stands at the end of a line") {
    TextTable table({{"name", left}, {"calls", right}, {"of", left}});
    table.add({"a", "1", "x"});
    table.add({"longest", "1000000", ""});
    CHECK(table.text() ==
          "name       calls  of\n"
          "a              1  x\n"
          "longest  1000000\n");
}

TEST_CASE("Entries are measured in columns of a terminal, not in bytes") {
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
