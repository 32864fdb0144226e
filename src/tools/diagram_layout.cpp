// lay_out() assigns tracks to wires and wraps columns into lines, which is the last step of a layout.
#include "tally/tools/diagram_layout.hpp"

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "tally/base/error.hpp"
#include "tally/base/text.hpp"
#include "tally/tools/diagram_grid.hpp"

namespace tally::drawing {

namespace {

constexpr int track_pitch = 40;  // between the vertical pieces of wires
constexpr int bend = 34;         // from a shape to the nearest vertical piece: arrow head, corner, gap
constexpr int shortest_gutter = 76;
constexpr int wire_room = 2 * strand + 4;
constexpr int return_pitch = 18;  // between the lines that run back to the next line of columns
constexpr int widest = 2000;      // width at which the columns wrap if the diagram sets none

// A `Line` contains consecutive columns of a picture. Most pictures have one line.
struct Line {
    int first = 0, last = 0;             // columns
    int left = 0, right = 0;             // of its columns
    int shift = 0, top = 0, bottom = 0;  // y in the picture = shift + y of a cell
};

class Arranger {
public:
    explicit Arranger(const detail::Diagram& diagram)
        : lane_names_(diagram.lanes), asked_(diagram.widest), grid_(make_grid(diagram)) {
        choose_heights(grid_);
        lane_extent_ = stack_lanes(grid_);
        int attempts = 20;  // if 20 attempts are not enough, two wires touch in the picture
        for (int cell = choose_tracks(); cell >= 0 && attempts > 0; --attempts) {
            push_down(cell);
            cell = choose_tracks();
        }
        break_lines();
    }
    Layout layout() const;

private:
    const std::vector<std::string>& lane_names_;
    const int asked_;  // the most pixels of a line that the diagram permits; 0: no limit
    Grid grid_;
    std::vector<Extent> lane_extent_;
    std::vector<int> tracks_, label_room_, strands_;  // in the gutter after each column
    std::vector<int> column_width_, column_x_;
    std::vector<Line> lines_;

    int choose_tracks();
    bool goes_down(const Hop& hop) const;
    bool side_by_side(const Hop& a, const Hop& b) const;
    void place_tracks(const std::vector<int>& bent);
    int part_collinear(const std::vector<int>& bent);
    void push_down(int cell);
    void break_lines();
    void place_lines(const std::vector<int>& ends);
    int line_width(int first, int last) const;
    std::vector<int> ends_of_lines(int width) const;
    std::vector<int> hops_after(int column) const;
    int strands_after(int column) const;
    int gutter_width(int column) const;
    int room_before(int column) const;
    int room_after(int column) const;
    int line_of(int column) const;
    std::vector<Point> route(const Edge& edge, int offset) const;
    void route_return(std::vector<Point>& points, const Hop& hop, int offset) const;
    void add_bands(Layout& layout, const Line& line) const;
};

std::vector<int> Arranger::hops_after(int column) const {
    std::vector<int> found;
    for (int cell : at(grid_.columns, column))
        found.insert(found.end(), at(grid_.cells, cell).out.begin(), at(grid_.cells, cell).out.end());
    std::sort(found.begin(), found.end(),
              [&](int a, int b) { return grid_.y1(at(grid_.hops, a)) < grid_.y1(at(grid_.hops, b)); });
    return found;
}

// Assigns overlapping vertical pieces of wires to separate tracks, in an order that avoids crossings. Returns
// the index of a cell that must move to separate two wires, or -1.
int Arranger::choose_tracks() {
    tracks_.clear();
    label_room_.clear();
    int in_the_way = -1;
    for (int column = 0; column < count(grid_.columns); ++column) {
        std::vector<int> bent, up;  // bent: hops down from the lowest, then hops up from the highest
        int label_room = 0;
        for (int h : hops_after(column)) {
            const Hop& hop = at(grid_.hops, h);
            at(grid_.hops, h).track = -1;
            if (goes_down(hop)) bent.insert(bent.begin(), h);
            if (grid_.y2(hop) < grid_.y1(hop)) up.push_back(h);
            const Edge& edge = at(grid_.edges, hop.edge);
            if (hop.to == edge.to && edge.label_cell < 0 && !edge.label.empty())
                label_room = std::max(label_room, text_width(edge.label) + char_width);
        }
        bent.insert(bent.end(), up.begin(), up.end());
        place_tracks(bent);
        if (const int cell = part_collinear(bent); cell >= 0) in_the_way = cell;
        int tracks = 0;
        for (int h : bent) tracks = std::max(tracks, at(grid_.hops, h).track + 1);
        tracks_.push_back(tracks);
        label_room_.push_back(label_room);
    }
    return in_the_way;
}

bool Arranger::goes_down(const Hop& hop) const { return grid_.y2(hop) > grid_.y1(hop); }

bool Arranger::side_by_side(const Hop& a, const Hop& b) const {
    const auto [a_top, a_bottom] = std::minmax({grid_.y1(a), grid_.y2(a)});
    const auto [b_top, b_bottom] = std::minmax({grid_.y1(b), grid_.y2(b)});
    return std::max(a_top, b_top) <= std::min(a_bottom, b_bottom) + wire_room;
}

void Arranger::place_tracks(const std::vector<int>& bent) {
    for (int i = 0; i < count(bent); ++i) {
        Hop& hop = at(grid_.hops, at(bent, i));
        hop.track = 0;
        for (int k = 0; k < i; ++k) {
            const Hop& other = at(grid_.hops, at(bent, k));
            if (goes_down(other) != goes_down(hop) || !side_by_side(hop, other)) continue;
            hop.track = std::max(hop.track, other.track + 1);
        }
        for (int k = 0; k < i;) {
            const Hop& other = at(grid_.hops, at(bent, k));
            const bool taken = other.track == hop.track && side_by_side(hop, other);
            hop.track += taken ? 1 : 0;
            k = taken ? 0 : k + 1;
        }
    }
}

// If a wire ends at the height at which a second wire starts, moves the first wire to a later track. If no
// order of tracks separates two wires, returns a cell at the end of one of these wires, otherwise -1.
int Arranger::part_collinear(const std::vector<int>& bent) {
    for (int round = 0; round <= count(bent); ++round) {
        int unparted = -1;
        for (int a : bent)
            for (int b : bent) {
                Hop &ending = at(grid_.hops, a), &starting = at(grid_.hops, b);
                const bool same_height = std::abs(grid_.y2(ending) - grid_.y1(starting)) <= wire_room;
                if (a == b || !same_height || ending.track > starting.track) continue;
                for (int other : bent) ending.track = std::max(ending.track, at(grid_.hops, other).track + 1);
                unparted = ending.to;
            }
        if (unparted < 0 || round == count(bent)) return unparted;
    }
    return -1;
}

// Moves down a cell and all lower cells of the same lane and column.
void Arranger::push_down(int index) {
    const Cell& pushed = at(grid_.cells, index);
    const int least = pushed.y;
    for (int other : at(grid_.columns, pushed.column)) {
        Cell& cell = at(grid_.cells, other);
        if (cell.group == pushed.group && cell.y >= least) cell.y += wire_room + 2;
    }
    lane_extent_ = stack_lanes(grid_);
}

int Arranger::gutter_width(int column) const {
    return std::max(shortest_gutter, 2 * bend + std::max(0, at(tracks_, column) - 1) * track_pitch) +
           at(label_room_, column);
}

// If the width is limited, returns the space for wires that enter a line before its first column. The
// function room_after() returns the space for wires that leave a line after its last column.
int Arranger::room_before(int column) const {
    if (asked_ == 0) return 0;
    const int bands = grid_.has_lanes() ? 2 * band_padding : 0;
    return column == 0 ? bands
                       : bands + bend + at(strands_, column - 1) * return_pitch + at(label_room_, column - 1);
}

int Arranger::room_after(int column) const {
    const bool goes_on = column + 1 < count(grid_.columns);
    return asked_ > 0 && goes_on ? bend + at(strands_, column) * return_pitch : 0;
}

int Arranger::line_width(int first, int last) const {
    int width = room_before(first) + room_after(last);
    for (int c = first; c <= last; ++c) width += at(column_width_, c) + (c < last ? gutter_width(c) : 0);
    return width;
}

int Arranger::strands_after(int column) const {
    int strands = 0;
    for (int h : hops_after(column)) strands += at(grid_.edges, at(grid_.hops, h).edge).back ? 2 : 1;
    return strands;
}

int Arranger::line_of(int column) const {
    int line = 0;
    while (column > at(lines_, line).last) ++line;
    return line;
}

// Returns the last column of each line. Breaks a line at the gutter (the gap between two columns) that the
// fewest wires cross in the later half of the columns that fit. If several wires cross each of these gutters,
// the line may be up to 50% wider to end at a gutter with one wire.
std::vector<int> Arranger::ends_of_lines(int width) const {
    const int end = count(grid_.columns) - 1, one_wire = 2, most = asked_ > 0 ? width : width * 3 / 2;
    std::vector<int> ends;
    for (int first = 0; first <= end; first = ends.back() + 1) {
        int last = first, best = -1, used = room_before(first) + at(column_width_, first);
        for (; last < end; ++last) {
            const int next = used + gutter_width(last) + at(column_width_, last + 1);
            const bool fits = next + room_after(last + 1) <= width;
            if (!fits && best < 0) {
                best = last;
                for (int c = last; c >= first + (last - first) / 2; --c)
                    if (at(strands_, c) < at(strands_, best)) best = c;
            } else if (!fits && at(strands_, last) <= one_wire) {
                best = last;
            }
            if (!fits && (at(strands_, best) <= one_wire || next > most)) break;
            used = next;
        }
        ends.push_back(last < end ? best : end);
    }
    return ends;
}

// Chooses the smallest width that does not increase the number of lines, so that lines have similar widths.
void Arranger::break_lines() {
    column_width_.assign(grid_.columns.size(), 0);
    column_x_.assign(grid_.columns.size(), 0);
    for (const Cell& cell : grid_.cells)
        at(column_width_, cell.column) = std::max(at(column_width_, cell.column), cell.w);
    for (int c = 0; c < count(grid_.columns); ++c) strands_.push_back(strands_after(c));

    const int widest_line = asked_ > 0 ? asked_ : widest;
    std::vector<int> ends = ends_of_lines(widest_line);
    for (int width = widest_line; width > widest_line / 2 && ends.size() > 1; width -= 20) {
        auto narrower = ends_of_lines(width);
        if (narrower.size() > ends.size()) break;
        ends = std::move(narrower);
    }
    // Keeps all columns of the lanes in one line if these columns fit.
    const int first_of_lanes = count(grid_.columns) - grid_.left_layer, end = count(grid_.columns) - 1;
    if (asked_ > 0 && grid_.has_lanes() && ends.size() > 1 && first_of_lanes > 0 &&
        line_width(0, first_of_lanes - 1) <= asked_ && line_width(first_of_lanes, end) <= asked_)
        ends = {first_of_lanes - 1, end};
    place_lines(ends);
}

void Arranger::place_lines(const std::vector<int>& ends) {
    int next_top = 0;
    for (int first = 0; int last : ends) {
        Line line{first, last, 0, 0, 0, INT_MAX, INT_MIN};
        bool with_lanes = false;
        for (int c = first; c <= last; ++c)
            for (int index : at(grid_.columns, c)) {
                const Cell& cell = at(grid_.cells, index);
                line.top = std::min(line.top, cell.y);
                line.bottom = std::max(line.bottom, cell.y + cell.h);
                with_lanes = with_lanes || (grid_.has_lanes() && cell.group < grid_.middle);
            }
        if (with_lanes) {
            line.top = std::min(line.top, lane_extent_.front().top - band_padding - band_title);
            line.bottom = std::max(line.bottom, lane_extent_.back().bottom + band_padding);
        }
        if (first > 0) {
            const int returning = at(strands_, first - 1);
            next_top += 2 * bend + returning * return_pitch;
            line.left = bend + returning * return_pitch + at(label_room_, first - 1);
        }
        if (with_lanes) line.left += band_padding;
        int x = line.left;
        for (int c = first; c <= last; ++c) {
            at(column_x_, c) = x;
            line.right = x + at(column_width_, c);
            x = line.right + gutter_width(c);
        }
        line.shift = next_top - line.top;
        next_top += line.bottom - line.top;
        line.top += line.shift;
        line.bottom += line.shift;
        lines_.push_back(line);
        first = last + 1;
    }
}

// Leads a wire from the end of a line to the start of the next line. Different offsets prevent crossings.
void Arranger::route_return(std::vector<Point>& points, const Hop& hop, int offset) const {
    const int column = at(grid_.cells, hop.from).column;
    const Line& line = at(lines_, line_of(column));
    const Line& next = at(lines_, line_of(column) + 1);
    const int strands = at(strands_, column);
    int above = 0;
    for (int h : hops_after(column)) {
        if (&at(grid_.hops, h) == &hop) break;
        above += at(grid_.edges, at(grid_.hops, h).edge).back ? 2 : 1;
    }
    if (offset > 0) ++above;
    const int padding = grid_.has_lanes() ? band_padding : 0;
    const int outward = (strands - 1 - above) * return_pitch;
    const int right = line.right + padding + bend + outward;
    const int under = line.bottom + bend + outward;
    const int left = next.left - padding - bend - at(label_room_, column) - above * return_pitch;
    points.insert(points.end(), {{right, grid_.y1(hop) + line.shift + offset},
                                 {right, under},
                                 {left, under},
                                 {left, grid_.y2(hop) + next.shift + offset}});
}

std::vector<Point> Arranger::route(const Edge& edge, int offset) const {
    std::vector<Point> points;
    const auto shift = [&](int cell) { return at(lines_, line_of(at(grid_.cells, cell).column)).shift; };
    const auto left_of = [&](int cell) {
        const int column = at(grid_.cells, cell).column;
        return at(column_x_, column) + (at(column_width_, column) - at(grid_.cells, cell).w) / 2;
    };
    const auto inset = [&](int box, int dy) {
        return at(grid_.shapes, box).inset(dy - at(grid_.cells, box).h / 2 + offset);
    };

    const Hop &start = at(grid_.hops, edge.hops.front()), &end = at(grid_.hops, edge.hops.back());
    points.push_back({left_of(edge.from) + at(grid_.cells, edge.from).w - inset(edge.from, start.out_dy),
                      grid_.y1(start) + shift(edge.from) + offset});
    for (int h : edge.hops) {
        const Hop& hop = at(grid_.hops, h);
        const int column = at(grid_.cells, hop.from).column;
        if (line_of(column) != line_of(column + 1)) {
            route_return(points, hop, offset);
        } else if (hop.track >= 0) {
            const int middle =
                at(column_x_, column) + at(column_width_, column) + bend + hop.track * track_pitch;
            // With this sign, the forward and the backward wire have the same distance everywhere.
            const int x = middle + (grid_.y2(hop) > grid_.y1(hop) ? -offset : offset);
            points.push_back({x, grid_.y1(hop) + shift(hop.from) + offset});
            points.push_back({x, grid_.y2(hop) + shift(hop.to) + offset});
        }
    }
    points.push_back({left_of(edge.to) + inset(edge.to, end.in_dy), grid_.y2(end) + shift(edge.to) + offset});
    return points;
}

Layout Arranger::layout() const {
    Layout result;
    result.shapes = grid_.shapes;
    for (int i = 0; i < count(grid_.shapes); ++i) {
        const Cell& cell = at(grid_.cells, i);
        Shape& shape = at(result.shapes, i);
        shape.x = at(column_x_, cell.column) + (at(column_width_, cell.column) - cell.w) / 2;
        shape.y = cell.y + at(lines_, line_of(cell.column)).shift;
    }
    for (const Edge& edge : grid_.edges) {
        Wire wire{edge.from, edge.to, route(edge, edge.back ? -strand : 0), {}, edge.label, {}};
        if (edge.back) {
            wire.backward = route(edge, strand);
            std::reverse(wire.backward.begin(), wire.backward.end());
        }
        const int below = strand + 20;  // from the wire's middle to the base line
        if (edge.label_cell >= 0) {
            const Cell& cell = at(grid_.cells, edge.label_cell);
            wire.label_at = {at(column_x_, cell.column) + at(column_width_, cell.column) / 2,
                             cell.y + port_pitch / 2 + below + at(lines_, line_of(cell.column)).shift};
        } else if (!edge.label.empty()) {
            const int column = at(grid_.cells, edge.to).column;
            wire.label_at = {at(column_x_, column) - (at(label_room_, column - 1) + bend) / 2,
                             wire.forward.back().y + (edge.back ? strand : 0) + below};
        }
        if (!wire.label.empty()) result.height = std::max(result.height, wire.label_at.y + 8);
        result.wires.push_back(wire);
    }
    for (const Line& line : lines_) {
        result.width = std::max(result.width, line.right);
        result.height = std::max(result.height, line.bottom);
        if (line.last + 1 < count(grid_.columns))
            result.width = std::max(result.width, line.right + bend + at(strands_, line.last) * return_pitch);
        add_bands(result, line);
    }
    return result;
}

void Arranger::add_bands(Layout& layout, const Line& line) const {
    int first = -1, last = -1;
    for (int c = line.first; c <= line.last; ++c) {
        const int layer = count(grid_.columns) - 1 - c;
        if (!grid_.has_lanes() || layer < grid_.middle_layer || layer >= grid_.left_layer) continue;
        if (first < 0) first = c;
        last = c;
    }
    if (first < 0) return;
    const int left = at(column_x_, first) - band_padding;
    const int right = at(column_x_, last) + at(column_width_, last) + band_padding;
    layout.width = std::max(layout.width, right);
    for (int lane = 0; lane < count(lane_extent_); ++lane) {
        const Extent& extent = at(lane_extent_, lane);
        const int number = at(grid_.lane_numbers, lane), top = extent.top - band_padding - band_title;
        const std::string name =
            number < count(lane_names_) ? detail::clean_text(at(lane_names_, number), 60) : "";
        layout.bands.push_back(
            {left, top + line.shift, right - left, extent.bottom + band_padding - top, name});
    }
}

}  // namespace

void require_drawable(const detail::Diagram& diagram) {
    const auto& boxes = diagram.boxes;
    detail::require(!boxes.empty(), "picture", "the diagram has no boxes; add at least one");
    detail::require(boxes.size() <= static_cast<std::size_t>(detail::Diagram::max_boxes), "picture",
                    boxes.size(), " boxes are too many to read; draw a part of the graph with at most ",
                    detail::Diagram::max_boxes);
    for (std::size_t i = 0; i < boxes.size(); ++i)
        for (const auto& input : boxes[i].inputs) {
            if (input.from >= 0 && static_cast<std::size_t>(input.from) < i) continue;
            throw Error("picture", "box ", i, " '", detail::clean_text(boxes[i].name, 4000), "' has input ",
                        input.from, "; put each box after its inputs");
        }
}

Layout lay_out(const detail::Diagram& diagram) {
    require_drawable(diagram);
    return Arranger(diagram).layout();
}

}  // namespace tally::drawing
