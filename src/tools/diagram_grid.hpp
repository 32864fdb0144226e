// make_grid() arranges boxes and long wires in columns, which is the first step of a layout.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tally/tools/diagram_layout.hpp"

namespace tally::drawing {

inline constexpr int strand = 9;           // from a wire's middle to its forward or backward line
inline constexpr int port_pitch = 40;      // between the wires that enter or leave one shape
inline constexpr int labelled_pitch = 56;  // between wires with a label below each
inline constexpr int band_padding = 18, band_title = 30, band_gap = 22;  // of the bands around lanes

template <class T> T& at(std::vector<T>& items, int index) { return items[static_cast<std::size_t>(index)]; }
template <class T> const T& at(const std::vector<T>& items, int index) {
    return items[static_cast<std::size_t>(index)];
}
template <class T> int count(const std::vector<T>& items) { return static_cast<int>(items.size()); }

// A `Cell` is a box, or the space for a long wire that crosses a column.
struct Cell {
    bool is_box = false, is_parameter = false, carries_label = false;
    int column = 0, group = 0, w = 0, h = 0, y = 0;
    std::vector<int> in, out;  // hops, from top to bottom
};

// A `Hop` is the piece of an edge between two neighbouring columns.
struct Hop {
    int edge = 0, from = 0, to = 0;  // cells
    int out_dy = 0, in_dy = 0;       // where the hop leaves and enters, from the top of the cells
    int track = -1;                  // the track of the vertical piece; -1 for a straight hop
};

struct Edge {
    int from = 0, to = 0;  // boxes, which are also the first cells
    bool back = false;
    std::string label;
    std::vector<int> hops;
    int label_cell = -1;  // the passage that carries the label; -1: the label is before the target
};

struct Grid {
    std::vector<Shape> shapes;  // one per box
    std::vector<Cell> cells;    // the boxes, then the passages
    std::vector<Hop> hops;
    std::vector<Edge> edges;
    std::vector<std::vector<int>> columns;  // cells from top to bottom

    std::vector<int> lane_numbers;  // of the lanes in use, ascending; the index is the group of the lane
    int middle = 0, left = 1, right = 2;   // groups of shared boxes: between, before and after the lanes
    int middle_layer = 0, left_layer = 0;  // first layer of the lanes and of `left`, counted from the right

    bool has_lanes() const { return lane_numbers.size() > 1; }
    bool in_lanes(int group) const { return group <= middle; }
    int y1(const Hop& hop) const { return at(cells, hop.from).y + hop.out_dy; }
    int y2(const Hop& hop) const { return at(cells, hop.to).y + hop.in_dy; }
};

struct Extent {
    int top = 0, bottom = 0;
};

Grid make_grid(const detail::Diagram& diagram);
void choose_heights(Grid& grid);
// Puts each lane below the previous lane, and returns the extents of the lanes.
std::vector<Extent> stack_lanes(Grid& grid);

}  // namespace tally::drawing
