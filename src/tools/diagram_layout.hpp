// Where everything of a diagram goes: integer places for shapes, wires, labels and lanes. Used by to_svg
// and its tests.
#pragma once

#include <string>
#include <vector>

#include "tally/tools/diagram.hpp"
#include "tally/tools/diagram_shape.hpp"

namespace tally::drawing {

struct Point {
    int x = 0, y = 0;
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
Layout lay_out(const Diagram& diagram);

}  // namespace tally::drawing
