// A sheet: what is drawn lies where it was asked for, and the page grows with it.
#include "tally/tools/sheet.hpp"

#include "catch.hpp"

using namespace tally;

TEST_CASE("an arrow's head is as wide on both sides of its line, whatever the slant") {
    drawing::Sheet sheet("An arrow", "");
    sheet.arrow(100, 200, 130, 240);  // 50 long; the head begins 14 before its end and is 7 wide on each side
    CHECK_THAT(sheet.svg(), test::contains("M130,240 L127,225 L116,233 Z"));
    sheet.arrow(300, 200, 360, 200);
    CHECK_THAT(sheet.svg(), test::contains("M360,200 L346,193 L346,207 Z"));
    CHECK(sheet.width() == 360 + drawing::Sheet::margin);
    CHECK(sheet.height() == 240 + drawing::Sheet::margin);
}
