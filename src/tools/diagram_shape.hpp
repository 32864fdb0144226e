// shape_of() computes the rows of text, the size and the outline of a box in a diagram.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tally/tools/diagram.hpp"

namespace tally::drawing {

// Text stays inside a shape, because a monospace letter of 18 px is at most 11 px wide.
inline constexpr int char_width = 11;
inline constexpr int line_height = 26;  // height of a row of text in a shape

struct Row {
    enum class Kind : std::uint8_t { head, value, gradient };
    Kind kind = Kind::head;
    std::string name, text;  // a head has a bold name, then shape and tags; other rows have only text
    int dy = 0;              // distance of the row's middle from the middle of the shape
    int width = 0;
};

enum class Outline : std::uint8_t { box, double_box, circle, pill, hexagon };

struct Shape {
    Outline outline = Outline::box;
    int x = 0, y = 0, w = 0, h = 0;
    std::vector<Row> rows;

    int inset(int dy) const;  // distance of the outline from its rectangle, at dy from the middle
};

int text_width(const std::string& utf8);
// Returns the shape of a box, with space for wires that span `port_extent` pixels.
Shape shape_of(const detail::Diagram::Box& box, int port_extent);

}  // namespace tally::drawing
