// to_svg() places boxes in columns by their depth. A wire that crosses a column has a place of its own there.
#include <algorithm>
#include <map>
#include <tuple>

#include "tally/base/text.hpp"
#include "tally/tools/diagram.hpp"
#include "tally/tools/sheet.hpp"
#include "tally/tools/svg.hpp"

namespace tally::detail {

namespace {

using drawing::Sheet, drawing::width_of_words;
using Role = Diagram::Role;

const char* to_string(Role role) {
    constexpr const char* words[] = {"parameter", "data", "operation", "loss"};
    return words[static_cast<int>(role)];
}

constexpr int row_height = 26, wire_height = 28, between_rows = 26, between_columns = 12, band_margin = 14;
constexpr int wires_apart = 12;  // a dashed wire carries a gradient back below the wire of the value

struct Point {
    int x = 0, y = 0;
};
struct Place {  // of a box or a wire
    int column = 0, lane = 0, w = 0, h = wire_height, x = 0, y = 0;
    std::vector<int> before = {}, after = {};  // the neighbours in the columns to the left and to the right
    double middle() const { return y + h / 2.0; }
};
struct Column {
    std::vector<int> places;     // from the top
    int bends = 0, labels = 20;  // to its left: the widths in which wires bend, and in which they have labels
    int left = 0, right = 0;     // wires are horizontal between these ends
};
struct Wire {
    const Diagram::Input& input;
    std::vector<int> path;  // its places, from box to box
    std::string label;
};

std::vector<std::pair<std::string, const char*>> rows_of(const Diagram::Box& box) {
    std::string head = clean_text(box.name, 24);
    if (!box.shape.empty()) head += " " + clean_text(box.shape, 24);
    if (box.recomputed) head += " x2";
    std::vector<std::pair<std::string, const char*>> rows{{head, "t-middle t-name"}};
    if (!box.value.empty()) rows.emplace_back(clean_text(box.value, 44), "t-middle");
    if (!box.gradient.empty()) rows.emplace_back(clean_text(box.gradient, 44), "t-middle t-bad");
    return rows;
}

// Draws an arrow along curves that are horizontal at each point. The line from `gap` to `gap_end` is not drawn.
void draw_arrow(Sheet& sheet, std::vector<Point> points, const std::string& style, int gap = 0,
                int gap_end = 0) {
    const Point tip = points.back();
    const int head = tip.x > points[0].x ? 12 : -12;
    int lowest = tip.y;
    points.back().x -= head;
    std::string path = svg::formatted("M%d,%d", points[0].x, points[0].y);
    if (gap > 0) path += svg::formatted("H%dM%d,%d", gap, gap_end, points[0].y);
    for (std::size_t i = 1; i < points.size(); ++i) {
        const Point a = points[i - 1], b = points[i];
        lowest = std::max(lowest, a.y);
        // Opposite arrows lean to opposite sides, so that they do not touch where they are steep.
        const int middle = (a.x + b.x) / 2 + (b.y > a.y ? 6 : -6);
        path += a.y == b.y ? svg::formatted("H%d", b.x)
                           : svg::formatted("C%d,%d %d,%d %d,%d", middle, a.y, middle, b.y, b.x, b.y);
    }
    sheet.path(path, style, {0, 0, 0, lowest, {}});
    sheet.path(svg::formatted("M%d,%dl%d,-6v12z", tip.x, tip.y, -head), "s-head " + style, {});
}

void draw_outline(Sheet& sheet, Role role, const std::string& fill, int x, int y, int w, int h) {
    const int radius = role == Role::operation || role == Role::loss ? std::min(h / 2, 20) : 3;
    sheet.box(x, y, w, h, std::string("s-box s-") + to_string(role) + fill, radius);
    if (role == Role::parameter) sheet.box(x + 5, y + 5, w - 10, h - 10, "s-inner", 2);
}

// Explains the outlines, fills and arrows that the diagram has.
void draw_legend(Sheet& sheet, const Diagram& diagram) {
    int x = Sheet::margin;
    const int y = sheet.height() + 10;
    const auto box = [&](Role role, const char* fill, const char* text, const auto& like) {
        if (std::none_of(diagram.boxes.begin(), diagram.boxes.end(), like)) return;
        draw_outline(sheet, role, fill, x, y, 44, 28);
        x = sheet.text(x + 52, y + 20, text) + 22;
    };
    for (const Role role : {Role::parameter, Role::data, Role::operation, Role::loss})
        box(role, "", to_string(role), [&](const auto& each) { return each.role == role; });
    box(Role::data, " s-saved", "saved", [](const auto& each) { return each.saved && !each.recomputed; });
    box(Role::data, " s-again", "x2 computed twice", [](const auto& each) { return each.recomputed; });
    draw_arrow(sheet, {{x, y + 14}, {x + 44, y + 14}}, "s-line");
    x = sheet.text(x + 52, y + 20, "value") + 22;
    if (std::all_of(diagram.boxes.begin(), diagram.boxes.end(),
                    [](const auto& each) { return each.gradient.empty(); }))
        return;
    draw_arrow(sheet, {{x + 44, y + 14}, {x, y + 14}}, "s-bad s-dashed");
    sheet.text(x + 52, y + 20, "gradient");
}

class Layers {
public:
    explicit Layers(const Diagram& diagram) : diagram_(diagram) {
        const auto& boxes = diagram.boxes;
        std::vector<int> columns(boxes.size()), before_users(boxes.size(), Diagram::max_boxes);
        for (std::size_t i = 0; i < boxes.size(); ++i) {
            for (const auto& input : boxes[i].inputs)
                columns[i] = std::max(columns[i], columns[static_cast<std::size_t>(input.from)] + 1);
            for (const auto& input : boxes[i].inputs) {
                int& column = before_users[static_cast<std::size_t>(input.from)];
                column = std::min(column, columns[i] - 1);
            }
        }
        for (std::size_t i = 0; i < boxes.size(); ++i) {
            const auto rows = rows_of(boxes[i]);
            int width = 44;
            for (const auto& [text, style] : rows) width = std::max(width, width_of_words(text));
            const bool moves = boxes[i].inputs.empty() && before_users[i] < Diagram::max_boxes;
            add({moves ? before_users[i] : columns[i], std::max(boxes[i].lane, Diagram::no_lane), width + 20,
                 static_cast<int>(rows.size()) * row_height + 20});
        }
        for (std::size_t i = 0; i < boxes.size(); ++i)
            for (const auto& input : boxes[i].inputs) add_wire(input, static_cast<int>(i));
        for (std::size_t i = 0; i < boxes.size(); ++i) {  // space for the ends of all wires
            const std::size_t wires = std::max(places_[i].before.size(), places_[i].after.size());
            places_[i].h = std::max(places_[i].h, 16 + wire_height * static_cast<int>(wires));
        }
        name_height_ = lanes_.size() - lanes_.count(Diagram::no_lane) > 1 ? 34 : 0;
    }

    void draw(Sheet& sheet) {
        stack(sheet.top());
        for (int sweep = 0; sweep < 2; ++sweep)
            for (auto& column : columns_) sort(column.places), stack(sheet.top());
        const int left = Sheet::margin, right = place_columns(left + (name_height_ > 0 ? band_margin : 0));
        for (const auto& [lane, height] : lanes_) {
            if (name_above(lane) == 0) continue;
            sheet.box(left, tops_[lane], right + band_margin - left, height + name_height_);
            sheet.text(left + band_margin, tops_[lane] + 24, name_of(lane), "t-quiet");
        }
        draw_wires(sheet);
        for (std::size_t i = 0; i < diagram_.boxes.size(); ++i) {
            const auto& box = diagram_.boxes[i];
            const auto& [column, lane, w, h, x, y, before, after] = places_[i];
            draw_outline(sheet, box.role,
                         box.recomputed ? " s-again"
                         : box.saved    ? " s-saved"
                                        : "",
                         x, y, w, h);
            const auto rows = rows_of(box);
            int base = y + (h - row_height * static_cast<int>(rows.size())) / 2 - 7;
            for (const auto& [text, style] : rows) sheet.text(x + w / 2, base += row_height, text, style);
        }
    }

private:
    const Diagram& diagram_;
    std::vector<Place> places_;  // the boxes, then the places of wires
    std::vector<Column> columns_;
    std::vector<Wire> wires_;
    std::map<int, int> lanes_, tops_;  // the height and the top of each lane
    int name_height_ = 0;              // of a lane, if there are several lanes

    Place& place(int i) { return places_[static_cast<std::size_t>(i)]; }
    Column& column_of(int i) { return columns_[static_cast<std::size_t>(place(i).column)]; }
    int name_above(int lane) const { return lane == Diagram::no_lane ? 0 : name_height_; }

    std::string name_of(int lane) const {
        const auto number = static_cast<std::size_t>(lane);
        return number < diagram_.lanes.size() ? clean_text(diagram_.lanes[number], 40) : "";
    }

    int add(Place place) {
        const int index = static_cast<int>(places_.size());
        lanes_[place.lane] = 0;
        columns_.resize(std::max(columns_.size(), static_cast<std::size_t>(place.column) + 1));
        places_.push_back(std::move(place));
        column_of(index).places.push_back(index);
        return index;
    }

    void add_wire(const Diagram::Input& input, int to) {
        const int lane = place(to).lane == Diagram::no_lane ? place(input.from).lane : place(to).lane;
        std::vector<int> path{input.from};
        for (int column = place(input.from).column + 1; column < place(to).column; ++column)
            path.push_back(add({column, lane}));
        path.push_back(to);
        for (std::size_t k = 1; k < path.size(); ++k) {
            place(path[k]).before.push_back(path[k - 1]);
            place(path[k - 1]).after.push_back(path[k]);
            int& bends = column_of(path[k]).bends;
            bends = std::max(bends, 36 * static_cast<int>(place(path[k - 1]).after.size()) - 8);
        }
        std::string label;  // without the blanks that align numbers with those of other rows
        for (const char c : input.back ? clean_text(input.gradient, 44) : "")
            if (c != ' ' || (!label.empty() && label.back() != ' ' && label.back() != '[')) label += c;
        int& labels = column_of(to).labels;
        if (!label.empty()) labels = std::max(labels, width_of_words(label) + 36);
        wires_.push_back({input, std::move(path), std::move(label)});
    }

    // Sorts a column by lane, and in each lane by the mean height of the inputs, or of the users of an input.
    void sort(std::vector<int>& column) {
        std::map<int, std::pair<int, double>> keys;
        for (const int i : column) {
            const Place& here = place(i);
            const auto& near = here.before.empty() ? here.after : here.before;
            double sum = near.empty() ? here.middle() : 0;
            for (const int other : near) sum += place(other).middle() / static_cast<double>(near.size());
            keys[i] = {here.lane, sum};
        }
        std::stable_sort(column.begin(), column.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    }

    // Sets the height of each place. A column is in the vertical middle of each lane.
    void stack(int top) {
        std::vector<std::map<int, int>> used(columns_.size());
        for (const Place& here : places_) {
            int& sum = used[static_cast<std::size_t>(here.column)][here.lane];
            sum += here.h + between_rows;
            lanes_[here.lane] = std::max(lanes_[here.lane], sum);
        }
        for (const auto& [lane, height] : lanes_) {
            tops_[lane] = top;
            top += height + (name_above(lane) > 0 ? name_height_ + 12 : 0);
        }
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            for (auto& [lane, sum] : used[c])  // becomes the top of the next box
                sum = tops_[lane] + name_above(lane) + (lanes_[lane] - sum) / 2 + between_rows / 4;
            for (const int i : columns_[c].places) {
                int& next = used[c][place(i).lane];
                place(i).y = next;
                next += place(i).h + between_rows;
            }
        }
    }

    // Returns the right end of the last column. The first column is as wide as the names of the lanes.
    int place_columns(int x) {
        for (Column& column : columns_) {
            int widest = 0;
            for (const auto& [lane, height] : lanes_)
                if (&column == &columns_[0] && name_above(lane) > 0)
                    widest = std::max(widest, width_of_words(name_of(lane)));
            for (const int i : column.places) widest = std::max(widest, place(i).w);
            x += &column == &columns_[0] ? 0 : between_columns + column.bends + column.labels;
            for (const int i : column.places) place(i).x = x + (widest - place(i).w) / 2;
            column.left = x - column.labels;
            x += widest;
            column.right = x + between_columns;
        }
        return x;
    }

    // Returns the heights of one end of all wires. The ends at a box are sorted by the next places.
    std::vector<int> heights_of_ends(bool at_source) {
        std::vector<std::tuple<int, double, std::size_t>> ends;
        for (std::size_t w = 0; w < wires_.size(); ++w) {
            const auto& path = wires_[w].path;
            const std::size_t last = path.size() - 1;
            ends.emplace_back(path[at_source ? 0 : last], place(path[at_source ? 1 : last - 1]).middle(), w);
        }
        std::sort(ends.begin(), ends.end());
        std::vector<int> heights(wires_.size()), seen(places_.size());
        for (const auto& [box, next, wire] : ends) {
            const auto count = static_cast<int>((at_source ? place(box).after : place(box).before).size());
            const int index = seen[static_cast<std::size_t>(box)]++;
            heights[wire] = place(box).y + place(box).h / 2 + (2 * index + 1 - count) * wire_height / 2;
        }
        return heights;
    }

    void draw_wires(Sheet& sheet) {
        const std::vector<int> begins = heights_of_ends(true), ends = heights_of_ends(false);
        for (std::size_t w = 0; w < wires_.size(); ++w) {
            const auto& [input, path, label] = wires_[w];
            const int shift = input.back ? wires_apart / 2 : 0, right = place(path[0]).x + place(path[0]).w;
            std::vector<Point> points{{right, begins[w]}, {column_of(path[0]).right, begins[w]}};
            for (std::size_t k = 1; k + 1 < path.size(); ++k) {
                const int y = place(path[k]).y + place(path[k]).h / 2;
                points.insert(points.end(), {{column_of(path[k]).left, y}, {column_of(path[k]).right, y}});
            }
            const int left = column_of(path.back()).left, middle = left + column_of(path.back()).labels / 2;
            points.insert(points.end(), {{left, ends[w]}, {place(path.back()).x, ends[w]}});
            for (Point& point : points) point.y -= shift;
            draw_arrow(sheet, points, "s-line");
            if (!input.back) continue;
            std::reverse(points.begin(), points.end());
            for (Point& point : points) point.y += 2 * shift;
            const int gap = label.empty() ? 0 : width_of_words(label) / 2 + 6;
            draw_arrow(sheet, points, "s-bad s-dashed", gap == 0 ? 0 : middle + gap, middle - gap);
            if (gap > 0) sheet.text(middle, points[0].y + 6, label, "t-middle t-bad");
        }
    }
};

}  // namespace

std::string to_svg(const Diagram& diagram) {
    require_drawable(diagram);
    Sheet sheet(diagram.title.empty() ? "Computation graph" : clean_text(diagram.title, 80),
                clean_text(diagram.description, 4000));
    Layers(diagram).draw(sheet);
    draw_legend(sheet, diagram);
    return sheet.svg();
}

}  // namespace tally::detail
