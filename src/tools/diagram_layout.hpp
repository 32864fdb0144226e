// lay_out() computes the positions of shapes, wires, labels and lanes of a diagram, as integers.
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
    std::vector<Point> backward;  // corners from target to source; empty if the edge carries no gradient
    std::string label;
    Point label_at;  // middle of the label's base line
};

struct Band {
    int x = 0, y = 0, w = 0, h = 0;
    std::string name;
};

struct Layout {
    int width = 0, height = 0;
    std::vector<Shape> shapes;  // one per box
    std::vector<Wire> wires;    // sorted by target, then by input
    std::vector<Band> bands;
};

// Throws if the diagram has no boxes or too many boxes, or if an input comes after the box that reads it.
void require_drawable(const detail::Diagram& diagram);
Layout lay_out(const detail::Diagram& diagram);

}  // namespace tally::drawing
