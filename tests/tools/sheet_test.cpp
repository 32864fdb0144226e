// Tests drawing::Sheet, which draws texts, lines and shapes on a page.
#include "tally/tools/sheet.hpp"

#include "catch.hpp"

using namespace tally;

TEST_CASE("Sheet::arrow: the head is equally wide on both sides of the line for every slope") {
    drawing::Sheet sheet("An arrow", "");
    sheet.arrow(100, 200, 130, 240);  // the arrow is 50 long, and its head is 14 long and 14 wide
    CHECK_THAT(sheet.svg(), test::contains("M130,240 L127,225 L116,233 Z"));
    sheet.arrow(300, 200, 360, 200);
    CHECK_THAT(sheet.svg(), test::contains("M360,200 L346,193 L346,207 Z"));
    CHECK(sheet.width() == 360 + drawing::Sheet::margin);
    CHECK(sheet.height() == 240 + drawing::Sheet::margin);
}
