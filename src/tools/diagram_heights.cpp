// choose_heights() keeps wires straight where possible, which is the second step of a layout.
#include <algorithm>
#include <climits>

#include "tally/tools/diagram_grid.hpp"

namespace tally::drawing {

namespace {

int gap(const Cell& above, const Cell& below) { return above.is_box && below.is_box ? 30 : 12; }

class Heights {
public:
    explicit Heights(Grid& grid) : grid_(grid), settled_(static_cast<std::size_t>(grid.right) + 1, false) {
        for (int group = 0; group <= grid_.middle; ++group) sweep(group);
        stack_lanes(grid_);
        for (int group = 0; group <= grid_.middle; ++group) at(settled_, group) = true;
        sweep(grid_.left);
        at(settled_, grid_.left) = true;
        sweep(grid_.right);
    }

private:
    Grid& grid_;
    std::vector<char> settled_;  // groups whose heights other groups may follow

    void sweep(int group);
    int wanted(int cell, bool from_left) const;
    void settle(const std::vector<int>& cells, const std::vector<int>& wanted_y);
    void tighten(const std::vector<int>& cells);
};

// Finds a height at which a cell's middle wire is straight. Prefers wires that do not start at parameters.
int Heights::wanted(int index, bool from_left) const {
    const Cell& cell = at(grid_.cells, index);
    std::vector<int> places, of_parameters;
    for (int h : from_left ? cell.in : cell.out) {
        const Hop& hop = at(grid_.hops, h);
        const Cell& other = at(grid_.cells, from_left ? hop.from : hop.to);
        const bool visible = other.group == cell.group || at(settled_, other.group);
        if (!visible || (from_left && !cell.is_box && other.is_box))
            continue;  // a long wire follows its target
        (from_left && other.is_parameter ? of_parameters : places)
            .push_back(from_left ? grid_.y1(hop) - hop.in_dy : grid_.y2(hop) - hop.out_dy);
    }
    if (places.empty()) places = of_parameters;
    if (places.empty()) return cell.y;
    std::sort(places.begin(), places.end());
    return at(places, (count(places) - 1) / 2);
}

// Moves cells close to their wanted heights. Cells that would overlap form a block at the mean height.
void Heights::settle(const std::vector<int>& cells, const std::vector<int>& wanted_y) {
    struct Block {
        long sum, weight;
        int cells;
        long mean() const { return sum >= 0 ? sum / weight : -((-sum + weight - 1) / weight); }
    };
    std::vector<Block> blocks;
    std::vector<int> offsets;
    int offset = 0;
    for (int i = 0; i < count(cells); ++i) {
        const Cell& cell = at(grid_.cells, at(cells, i));
        const long weight = cell.is_box ? 4 : 1;
        blocks.push_back({weight * (at(wanted_y, i) - offset), weight, 1});
        while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
            const Block last = blocks.back();
            blocks.pop_back();
            blocks.back().sum += last.sum, blocks.back().weight += last.weight,
                blocks.back().cells += last.cells;
        }
        offsets.push_back(offset);
        if (i + 1 < count(cells)) offset += cell.h + gap(cell, at(grid_.cells, at(cells, i + 1)));
    }
    int i = 0;
    for (const Block& block : blocks) {
        for (int k = 0; k < block.cells; ++k, ++i)
            at(grid_.cells, at(cells, i)).y = static_cast<int>(block.mean()) + at(offsets, i);
    }
}

void Heights::sweep(int group) {
    std::vector<std::vector<int>> mine(grid_.columns.size());
    for (int c = 0; c < count(grid_.columns); ++c) {
        for (int cell : at(grid_.columns, c))
            if (at(grid_.cells, cell).group == group) at(mine, c).push_back(cell);
    }
    for (int pass = 0; pass < 10; ++pass) {
        const bool from_left = pass % 2 == 1;  // true in the last round, so that the main path is straight
        for (int c = 0; c < count(mine); ++c) {
            const auto& cells = at(mine, from_left ? c : count(mine) - 1 - c);
            std::vector<int> wanted_y;
            for (int cell : cells) wanted_y.push_back(wanted(cell, from_left));
            settle(cells, wanted_y);
        }
    }
    for (int pass = 0; pass < 2; ++pass)
        for (int c = count(mine); c-- > 0;) tighten(at(mine, c));
}

// Moves cells closer to their targets, unless a straight wire on the left side would bend.
void Heights::tighten(const std::vector<int>& cells) {
    for (int i = 0; i < count(cells); ++i) {
        Cell& cell = at(grid_.cells, at(cells, i));
        const bool loose =
            cell.in.empty() || (!cell.is_box && at(grid_.cells, at(grid_.hops, cell.in.front()).from).is_box);
        if (!loose) continue;
        cell.y = wanted(at(cells, i), false);
        if (i + 1 < count(cells)) {
            const Cell& next = at(grid_.cells, at(cells, i + 1));
            cell.y = std::min(cell.y, next.y - gap(cell, next) - cell.h);
        }
        if (i > 0) {
            const Cell& previous = at(grid_.cells, at(cells, i - 1));
            cell.y = std::max(cell.y, previous.y + previous.h + gap(previous, cell));
        }
    }
}

}  // namespace

void choose_heights(Grid& grid) { Heights{grid}; }

std::vector<Extent> stack_lanes(Grid& grid) {
    std::vector<Extent> lanes;
    int top = 0;
    for (int group = 0; group <= grid.middle; ++group) {
        Extent extent{INT_MAX, INT_MIN};
        for (const Cell& cell : grid.cells) {
            if (cell.group != group) continue;
            extent.top = std::min(extent.top, cell.y);
            extent.bottom = std::max(extent.bottom, cell.y + cell.h);
        }
        if (extent.top > extent.bottom) continue;
        if (group < grid.middle) top += band_padding + band_title;
        const int shift = top - extent.top;
        for (Cell& cell : grid.cells)
            if (cell.group == group) cell.y += shift;
        if (group < grid.middle) lanes.push_back({top, extent.bottom + shift});
        top = extent.bottom + shift + band_padding + band_gap;
    }
    return lanes;
}

}  // namespace tally::drawing
