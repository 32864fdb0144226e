// shape_of() cleans and measures the text of a box, stacks the rows of text, and chooses an outline.
#include "tally/tools/diagram_shape.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "tally/base/text.hpp"

namespace tally::drawing {

namespace {

int root(int square) {
    int r = 0;
    while ((r + 1) * (r + 1) <= square) ++r;
    return r;
}

int half_letter() { return 11; }  // half the height of a letter with its accents and descenders

// Sets the distance of each row of text from the middle of the shape, and returns the total height.
int stack(std::vector<Row>& rows) {
    const int separator = 10;  // space for the dashed line above a gradient
    int height = 0;
    for (Row& row : rows) {
        if (row.kind == Row::Kind::gradient) height += separator;
        row.dy = height + line_height / 2;
        height += line_height;
    }
    for (Row& row : rows) row.dy -= height / 2;
    return height;
}

// Returns the width of a shape at which no row of text touches its slanted or round sides.
int width_around(const Shape& shape, int padding) {
    int width = 0;
    for (const Row& row : shape.rows)
        width = std::max(width, row.width + 2 * shape.inset(std::abs(row.dy) + half_letter()));
    return width + 2 * padding;
}

int even(int n) { return n + n % 2; }

}  // namespace

int text_width(const std::string& utf8) { return detail::text_columns(utf8) * char_width; }

int Shape::inset(int dy) const {
    const int off = std::min(std::abs(dy), h / 2);
    const int radius = h / 2;
    switch (outline) {
        case Outline::circle:
        case Outline::pill:
            return radius - root(radius * radius - off * off);
        case Outline::hexagon:
            return radius == 0 ? 0 : std::min(26, h / 4) * off / radius;
        default:
            return 0;
    }
}

Shape shape_of(const detail::Diagram::Box& box, int port_extent) {
    using Role = detail::Diagram::Role;
    Shape shape;
    Row head{Row::Kind::head, detail::clean_text(box.name, 24), detail::clean_text(box.shape, 24), 0, 0};
    if (box.recomputed) head.text += head.text.empty() ? "x2" : " x2";
    head.width = text_width(head.name) + text_width(head.text) + (head.text.empty() ? 0 : char_width);
    shape.rows.push_back(head);
    for (const auto& [kind, text] :
         {std::pair{Row::Kind::value, box.value}, {Row::Kind::gradient, box.gradient}}) {
        if (text.empty()) continue;
        const std::string shown = detail::clean_text(text, 44);
        shape.rows.push_back({kind, "", shown, 0, text_width(shown)});
    }
    const int text_height = stack(shape.rows);

    if (box.role == Role::operation) {
        const int largest_radius = 66;  // a wider text makes a pill
        int radius = std::max(34, port_extent * 5 / 8);
        for (const Row& row : shape.rows) {
            const int dx = row.width / 2, dy = std::abs(row.dy) + half_letter();
            radius = std::max(radius, root(dx * dx + dy * dy) + 7);
        }
        if (radius <= largest_radius) {
            shape.outline = Outline::circle;
            shape.w = shape.h = 2 * radius;
            return shape;
        }
    }
    shape.outline = box.role == Role::parameter   ? Outline::double_box
                    : box.role == Role::data      ? Outline::box
                    : box.role == Role::operation ? Outline::pill
                                                  : Outline::hexagon;
    const int frame = shape.outline == Outline::double_box ? 6 : 0;
    shape.h = even(std::max(text_height + 26 + 2 * frame, port_extent + 30));
    shape.w = even(std::max(width_around(shape, 14 + frame), shape.outline == Outline::pill ? shape.h : 70));
    return shape;
}

}  // namespace tally::drawing
