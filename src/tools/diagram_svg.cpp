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

constexpr int row_height = 26, wire_height = 28, between_rows = 26, between_columns = 60, band_margin = 14;
constexpr int wires_apart = 12;  // a dashed wire carries a gradient back below the wire of the value

struct Point {
    int x = 0, y = 0;
};
struct Label {
    Point at;  // the middle of the base line
    std::string text, style;
};
struct Place {  // of a box or a wire
    int column = 0, lane = 0, x = 0, y = 0, w = 0, h = wire_height;
    int left = 0, right = 0;                   // the ends of the column, with space for arrowheads
    std::vector<int> before = {}, after = {};  // the neighbours in the columns to the left and to the right
    double middle() const { return y + h / 2.0; }
};
struct Wire {
    const Diagram::Input& input;
    std::vector<int> path;  // its places, from box to box
};

std::vector<Label> rows_of(const Diagram::Box& box) {
    std::string head = clean_text(box.name, 24);
    if (!box.shape.empty()) head += " " + clean_text(box.shape, 24);
    std::vector<Label> rows{{{}, head + (box.recomputed ? " x2" : ""), "t-middle t-name"}};
    if (!box.value.empty()) rows.push_back({{}, clean_text(box.value, 44), "t-middle"});
    if (!box.gradient.empty()) rows.push_back({{}, clean_text(box.gradient, 44), "t-middle t-bad"});
    return rows;
}

// Draws an arrow along curves that are horizontal at each point.
void draw_arrow(Sheet& sheet, std::vector<Point> points, const std::string& style) {
    const Point tip = points.back();
    const int head = tip.x > points[0].x ? 12 : -12;
    points.back().x -= head;
    std::string path = svg::formatted("M%d,%d", points[0].x, points[0].y);
    for (std::size_t i = 1; i < points.size(); ++i) {
        const Point a = points[i - 1], b = points[i];
        // Opposite arrows lean to opposite sides, so that they do not touch where they are steep.
        const int middle = (a.x + b.x) / 2 + (b.y > a.y ? 6 : -6);
        path += a.y == b.y ? svg::formatted("H%d", b.x)
                           : svg::formatted("C%d,%d %d,%d %d,%d", middle, a.y, middle, b.y, b.x, b.y);
    }
    sheet.path(path, style, {});
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
    draw_arrow(sheet, {{x + 44, y + 14}, {x, y + 14}}, "s-bad s-dashed");
    sheet.text(x + 52, y + 20, "gradient");
}

class Layers {
public:
    explicit Layers(const Diagram& diagram) : diagram_(diagram) {
        const auto& boxes = diagram.boxes;
        std::vector<int> columns(boxes.size()), before_users(boxes.size(), Diagram::max_boxes);
        for (std::size_t i = 0; i < boxes.size(); ++i)
            for (const auto& [from, back, gradient] : boxes[i].inputs)
                columns[i] = std::max(columns[i], columns[static_cast<std::size_t>(from)] + 1);
        for (std::size_t i = 0; i < boxes.size(); ++i)
            for (const auto& [from, back, gradient] : boxes[i].inputs) {
                int& latest = before_users[static_cast<std::size_t>(from)];
                latest = std::min(latest, columns[i] - 1);
            }
        for (std::size_t i = 0; i < boxes.size(); ++i) {
            const std::vector<Label> rows = rows_of(boxes[i]);
            int width = 44;
            for (const Label& row : rows) width = std::max(width, width_of_words(row.text));
            const bool moves = boxes[i].inputs.empty() && before_users[i] < Diagram::max_boxes;
            add({moves ? before_users[i] : columns[i], std::max(boxes[i].lane, Diagram::no_lane), 0, 0,
                 width + 20, static_cast<int>(rows.size()) * row_height + 20});
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
            for (auto& column : columns_) sort(column), stack(sheet.top());
        const int left = Sheet::margin, right = place_columns(left + (name_height_ > 0 ? band_margin : 0));
        for (const auto& [lane, height] : lanes_) {
            if (name_above(lane) == 0) continue;
            sheet.box(left, tops_[lane], right + band_margin - left, height + name_height_);
            const auto number = static_cast<std::size_t>(lane);
            const std::string name = number < diagram_.lanes.size() ? diagram_.lanes[number] : "";
            sheet.text(left + band_margin, tops_[lane] + 24, clean_text(name, 40), "t-quiet");
        }
        const std::vector<Label> labels = draw_wires(sheet);
        for (std::size_t i = 0; i < diagram_.boxes.size(); ++i) {
            const Place& place = places_[i];
            const auto& box = diagram_.boxes[i];
            const std::vector<Label> rows = rows_of(box);
            int y = place.y + (place.h - row_height * static_cast<int>(rows.size())) / 2 - 7;
            draw_outline(sheet, box.role,
                         box.recomputed ? " s-again"
                         : box.saved    ? " s-saved"
                                        : "",
                         place.x, place.y, place.w, place.h);
            for (const Label& row : rows)
                sheet.text(place.x + place.w / 2, y += row_height, row.text, row.style);
        }
        for (const Label& label : labels) sheet.text(label.at.x, label.at.y, label.text, label.style);
    }

private:
    const Diagram& diagram_;
    std::vector<Place> places_;              // the boxes, then the places of wires
    std::vector<std::vector<int>> columns_;  // from the top
    std::vector<int> gaps_;                  // to the left of each column
    std::vector<Wire> wires_;
    std::map<int, int> lanes_, tops_;  // the height and the top of each lane
    int name_height_ = 0;              // of a lane, if there are several lanes

    Place& place(int i) { return places_[static_cast<std::size_t>(i)]; }
    int name_above(int lane) const { return lane == Diagram::no_lane ? 0 : name_height_; }

    int add(Place place) {
        const int index = static_cast<int>(places_.size());
        const auto column = static_cast<std::size_t>(place.column);
        if (columns_.size() <= column) columns_.resize(column + 1), gaps_.resize(column + 1, between_columns);
        columns_[column].push_back(index);
        lanes_[place.lane] = 0;
        places_.push_back(std::move(place));
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
        }
        int& gap = gaps_[static_cast<std::size_t>(place(to).column)];
        if (!input.gradient.empty()) gap = std::max(gap, width_of_words(clean_text(input.gradient, 44)) + 32);
        wires_.push_back({input, std::move(path)});
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
            for (const int i : columns_[c]) {
                place(i).y = used[c][place(i).lane];
                used[c][place(i).lane] += place(i).h + between_rows;
            }
        }
    }

    // Returns the right end of the last column.
    int place_columns(int x) {
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            int widest = 0;
            for (const int i : columns_[c]) widest = std::max(widest, place(i).w);
            x += c == 0 ? 0 : gaps_[c];
            for (const int i : columns_[c]) {
                Place& here = place(i);
                here.x = x + (widest - here.w) / 2;
                here.left = x - 12, here.right = x + widest + 12;
            }
            x += widest;
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

    std::vector<Label> draw_wires(Sheet& sheet) {
        const std::vector<int> begins = heights_of_ends(true), ends = heights_of_ends(false);
        std::vector<Label> labels;
        for (std::size_t w = 0; w < wires_.size(); ++w) {
            const auto& [input, path] = wires_[w];
            std::vector<Point> points;
            for (const int i : path) {
                const Place& here = place(i);
                const int y = i == path[0] ? begins[w] : i == path.back() ? ends[w] : here.y + here.h / 2;
                points.push_back({i == path[0] ? here.x + here.w : here.left, y});
                points.push_back({i == path.back() ? here.x : here.right, y});
            }
            const Point end = points[points.size() - 2], before = points[points.size() - 3];
            for (Point& point : points) point.y -= input.back ? wires_apart / 2 : 0;
            draw_arrow(sheet, points, "s-line");
            std::reverse(points.begin(), points.end());
            for (Point& point : points) point.y += wires_apart;
            if (input.back) draw_arrow(sheet, points, "s-bad s-dashed");
            if (input.gradient.empty()) continue;
            // The ends of wires are far enough apart for a label above each of them.
            labels.push_back({{(before.x + end.x) / 2, end.y - 15},
                              clean_text(input.gradient, 44),
                              "t-middle t-bad t-halo"});
        }
        return labels;
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
