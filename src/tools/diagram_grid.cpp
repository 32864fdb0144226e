// make_grid() assigns columns to boxes, counted from the loss, and orders columns so that few wires cross.
#include "tally/tools/diagram_grid.hpp"

#include <algorithm>
#include <map>

#include "tally/base/text.hpp"

namespace tally::drawing {

namespace {

class GridMaker {
public:
    explicit GridMaker(const std::vector<detail::Diagram::Box>& boxes) : boxes_(boxes) {
        choose_groups();
        choose_columns();
        make_boxes();
        for (int edge = 0; edge < count(grid_.edges); ++edge) lead_through(edge);
        order_cells();
        place_ports();
    }
    Grid take() { return std::move(grid_); }

private:
    const std::vector<detail::Diagram::Box>& boxes_;
    Grid grid_;
    std::vector<int> group_, layer_;  // for each box
    std::vector<int> place_;          // for each cell, its index in the column
    std::vector<int> widest_box_;     // for each column, the width of its widest box

    void choose_groups();
    void choose_columns();
    void make_boxes();
    Cell passage(const Edge& edge, int column) const;
    void lead_through(int edge);
    void order_cells();
    long crossings() const;
    void number_places();
    void place_ports();
};

// Makes one group of boxes per lane. Boxes of several lanes are placed before, after or below the lanes.
void GridMaker::choose_groups() {
    for (const auto& box : boxes_)
        if (box.lane >= 0) grid_.lane_numbers.push_back(box.lane);
    std::sort(grid_.lane_numbers.begin(), grid_.lane_numbers.end());
    grid_.lane_numbers.erase(std::unique(grid_.lane_numbers.begin(), grid_.lane_numbers.end()),
                             grid_.lane_numbers.end());
    const int lanes = grid_.has_lanes() ? count(grid_.lane_numbers) : 0;
    grid_.middle = lanes, grid_.left = lanes + 1, grid_.right = lanes + 2;
    group_.assign(boxes_.size(), grid_.middle);
    if (!grid_.has_lanes()) return;

    std::vector<bool> after_lane(boxes_.size()), before_lane(boxes_.size());
    for (std::size_t i = 0; i < boxes_.size(); ++i)
        for (const auto& input : boxes_[i].inputs) {
            const auto from = static_cast<std::size_t>(input.from);
            if (boxes_[from].lane >= 0 || after_lane[from]) after_lane[i] = true;
        }
    for (std::size_t i = boxes_.size(); i-- > 0;)
        for (const auto& input : boxes_[i].inputs) {
            if (boxes_[i].lane >= 0 || before_lane[i])
                before_lane[static_cast<std::size_t>(input.from)] = true;
        }
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
        const auto lane =
            std::lower_bound(grid_.lane_numbers.begin(), grid_.lane_numbers.end(), boxes_[i].lane);
        group_[i] = boxes_[i].lane >= 0 ? static_cast<int>(lane - grid_.lane_numbers.begin())
                    : !before_lane[i]   ? grid_.right
                    : after_lane[i]     ? grid_.middle
                                        : grid_.left;
    }
}

// Assigns boxes to layers by the longest path to a loss, beginning with the boxes after the lanes.
void GridMaker::choose_columns() {
    layer_.assign(boxes_.size(), 0);
    int next_layer = 0;
    const auto place_part = [&](auto belongs) {
        const int base = next_layer;
        for (int i = count(boxes_); i-- > 0;) {
            if (!belongs(at(group_, i))) continue;
            at(layer_, i) = std::max(at(layer_, i), base);
            next_layer = std::max(next_layer, at(layer_, i) + 1);
            for (const auto& input : at(boxes_, i).inputs)
                at(layer_, input.from) = std::max(at(layer_, input.from), at(layer_, i) + 1);
        }
        return base;
    };
    place_part([&](int group) { return group == grid_.right; });
    grid_.middle_layer = place_part([&](int group) { return grid_.in_lanes(group); });
    grid_.left_layer = next_layer;
    place_part([&](int group) { return group == grid_.left; });
    grid_.columns.resize(static_cast<std::size_t>(next_layer));
}

void GridMaker::make_boxes() {
    std::vector<int> consumers(boxes_.size());
    for (int i = 0; i < count(boxes_); ++i)
        for (const auto& input : at(boxes_, i).inputs) {
            ++at(consumers, input.from);
            grid_.edges.push_back(
                {input.from, i, input.back, detail::clean_text(input.gradient, 44), {}, -1});
        }
    widest_box_.assign(grid_.columns.size(), 0);
    for (int i = 0; i < count(boxes_); ++i) {
        const auto& box = at(boxes_, i);
        bool labelled = false;
        for (const auto& input : box.inputs)
            labelled = labelled || (!input.gradient.empty() && at(layer_, input.from) == at(layer_, i) + 1);
        const int ins = (count(box.inputs) - 1) * (labelled ? labelled_pitch : port_pitch);
        grid_.shapes.push_back(
            shape_of(box, std::max({0, ins, (at(consumers, i) - 1) * port_pitch}) + 2 * strand));
        Cell cell;
        cell.is_box = true;
        cell.is_parameter = box.role == detail::Diagram::Role::parameter;
        cell.carries_label = labelled;
        cell.column = count(grid_.columns) - 1 - at(layer_, i);
        cell.group = at(group_, i);
        cell.w = grid_.shapes.back().w, cell.h = grid_.shapes.back().h;
        at(widest_box_, cell.column) = std::max(at(widest_box_, cell.column), cell.w);
        grid_.cells.push_back(cell);
    }
}

// Returns the cell in which a long wire crosses a column.
Cell GridMaker::passage(const Edge& edge, int column) const {
    const int layer = count(grid_.columns) - 1 - column;
    Cell passage;
    passage.column = column;
    passage.h = port_pitch;
    passage.group = layer < grid_.middle_layer              ? grid_.right
                    : layer >= grid_.left_layer             ? grid_.left
                    : grid_.in_lanes(at(group_, edge.to))   ? at(group_, edge.to)
                    : grid_.in_lanes(at(group_, edge.from)) ? at(group_, edge.from)
                                                            : grid_.middle;
    return passage;
}

// Splits an edge into hops from column to column. Puts the label into the widest column of the edge.
void GridMaker::lead_through(int e) {
    Edge& edge = at(grid_.edges, e);
    const int last = at(grid_.cells, edge.to).column;
    int from = edge.from;
    for (int column = at(grid_.cells, from).column + 1; column <= last; ++column) {
        int to = edge.to;
        if (column < last) {
            to = count(grid_.cells);
            grid_.cells.push_back(passage(edge, column));
            const bool better =
                edge.label_cell < 0 ||
                at(widest_box_, column) > at(widest_box_, at(grid_.cells, edge.label_cell).column);
            if (!edge.label.empty() && better) edge.label_cell = to;
        }
        const int hop = count(grid_.hops);
        grid_.hops.push_back({e, from, to, 0, 0, -1});
        edge.hops.push_back(hop);
        at(grid_.cells, from).out.push_back(hop);
        at(grid_.cells, to).in.push_back(hop);
        from = to;
    }
    if (edge.label_cell < 0) return;
    Cell& carrier = at(grid_.cells, edge.label_cell);
    carrier.carries_label = true;
    carrier.h = port_pitch + line_height;
    carrier.w = text_width(edge.label) + 2 * char_width;
}

void GridMaker::number_places() {
    place_.resize(grid_.cells.size());
    for (const auto& column : grid_.columns)
        for (int i = 0; i < count(column); ++i) at(place_, at(column, i)) = i;
}

long GridMaker::crossings() const {
    std::vector<std::vector<std::pair<int, int>>> gutters(grid_.columns.size());
    for (const Hop& hop : grid_.hops)
        at(gutters, at(grid_.cells, hop.from).column).emplace_back(at(place_, hop.from), at(place_, hop.to));
    long found = 0;
    for (auto& gutter : gutters) {
        std::sort(gutter.begin(), gutter.end());
        for (std::size_t i = 0; i < gutter.size(); ++i) {
            for (std::size_t k = 0; k < i; ++k)
                found += gutter[k].first < gutter[i].first && gutter[k].second > gutter[i].second;
        }
    }
    return found;
}

// Orders cells by a depth-first search from the losses, and improves this order by the barycentre method.
void GridMaker::order_cells() {
    std::vector<char> met(grid_.cells.size());
    for (int i = 0; i < count(boxes_); ++i) {
        if (!at(grid_.cells, i).out.empty()) continue;
        std::vector<int> to_visit{i};
        while (!to_visit.empty()) {
            const int cell = to_visit.back();
            to_visit.pop_back();
            if (at(met, cell)) continue;
            at(met, cell) = true;
            at(grid_.columns, at(grid_.cells, cell).column).push_back(cell);
            const auto& in = at(grid_.cells, cell).in;
            for (int k = count(in); k-- > 0;) to_visit.push_back(at(grid_.hops, at(in, k)).from);
        }
    }
    const auto group = [&](int cell) { return at(grid_.cells, cell).group; };
    for (auto& column : grid_.columns) {
        std::stable_sort(column.begin(), column.end(), [&](int a, int b) { return group(a) < group(b); });
    }
    number_places();
    auto best = grid_.columns;
    long fewest = crossings();
    for (int pass = 0; pass < 8 && fewest > 0; ++pass) {
        const bool rightwards = pass % 2 == 0;
        for (int c = 0; c < count(grid_.columns); ++c) {
            auto& column = at(grid_.columns, rightwards ? c : count(grid_.columns) - 1 - c);
            std::map<int, long> centre;
            for (int cell : column) {
                const auto& hops = rightwards ? at(grid_.cells, cell).in : at(grid_.cells, cell).out;
                long sum = 0;
                for (int hop : hops)
                    sum += at(place_, rightwards ? at(grid_.hops, hop).from : at(grid_.hops, hop).to);
                centre[cell] = hops.empty() ? 1024L * at(place_, cell) : 1024L * sum / count(hops);
            }
            std::stable_sort(column.begin(), column.end(), [&](int a, int b) {
                return group(a) != group(b) ? group(a) < group(b) : centre[a] < centre[b];
            });
            number_places();
        }
        if (const long found = crossings(); found < fewest) fewest = found, best = grid_.columns;
    }
    grid_.columns = best;
    number_places();
}

void GridMaker::place_ports() {
    for (Cell& cell : grid_.cells) {
        const auto sort_by = [&](std::vector<int>& hops, int Hop::*end) {
            std::stable_sort(hops.begin(), hops.end(), [&](int a, int b) {
                return at(place_, at(grid_.hops, a).*end) < at(place_, at(grid_.hops, b).*end);
            });
        };
        sort_by(cell.in, &Hop::from);
        sort_by(cell.out, &Hop::to);
        const auto port = [&](int i, int n, int pitch) {
            return cell.is_box ? cell.h / 2 + (2 * i - (n - 1)) * pitch / 2 : port_pitch / 2;
        };
        const int pitch = cell.carries_label ? labelled_pitch : port_pitch;
        for (int i = 0; i < count(cell.in); ++i)
            at(grid_.hops, at(cell.in, i)).in_dy = port(i, count(cell.in), pitch);
        for (int i = 0; i < count(cell.out); ++i)
            at(grid_.hops, at(cell.out, i)).out_dy = port(i, count(cell.out), port_pitch);
    }
}

}  // namespace

Grid make_grid(const detail::Diagram& diagram) { return GridMaker(diagram.boxes).take(); }

}  // namespace tally::drawing
