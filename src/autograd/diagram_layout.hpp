// Where everything of a diagram goes: integer places for shapes, wires, labels and lanes. Used by to_svg
// and its tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/diagram.hpp"

namespace tally::drawing {

inline constexpr int char_width =
    11;  // of an 18 px monospace letter; fonts stay below it, so text keeps inside
inline constexpr int line_height = 26;  // of a row of text in a shape

struct Point {
    int x = 0, y = 0;
};

struct Row {
    enum class Kind : std::uint8_t { head, value, gradient };
    Kind kind = Kind::head;
    std::string name, text;  // a head: the name in bold, then shape and tags; else only text
    int dy = 0;              // its middle, from the middle of the shape
    int width = 0;
};

enum class Outline : std::uint8_t { box, double_box, circle, pill, hexagon };

struct Shape {
    Outline outline = Outline::box;
    int x = 0, y = 0, w = 0, h = 0;
    std::vector<Row> rows;

    int inset(int dy) const;  // how far the outline lies inside its rectangle, dy off the middle
};

struct Wire {
    int from = 0, to = 0;         // boxes
    std::vector<Point> forward;   // corners from source to target
    std::vector<Point> backward;  // from target to source; empty where no gradient comes back
    std::string label;
    Point label_at;  // middle of its base line
};

struct Band {
    int x = 0, y = 0, w = 0, h = 0;
    std::string name;
};

struct Layout {
    int width = 0, height = 0;
    std::vector<Shape> shapes;  // one per box
    std::vector<Wire> wires;    // by target, then by input
    std::vector<Band> bands;
};

// Throws where no picture can be drawn: no boxes, too many, an input that does not come before its box.
void require_drawable(const Diagram& diagram);
int text_width(const std::string& utf8);
Shape shape_of(const Diagram::Box& box,
               int port_extent);  // its rows and size; room for wires that span port_extent
Layout lay_out(const Diagram& diagram);

}  // namespace tally::drawing
