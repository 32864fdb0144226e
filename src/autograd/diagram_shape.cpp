// What stands in a shape and how large that makes it: text cleaned and measured, rows stacked, an outline
// around them.
#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "autograd/diagram_layout.hpp"

namespace tally::drawing {

namespace {

struct Letter {
    std::string bytes;
    char32_t code = 0;
};

const std::string replacement = "\xEF\xBF\xBD";  // U+FFFD, for what is no UTF-8

// The letters of a text; each byte that belongs to none becomes U+FFFD, each control character a blank.
std::vector<Letter> letters_of(const std::string& text) {
    std::vector<Letter> letters;
    for (std::size_t at = 0; at < text.size();) {
        const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
        const unsigned first = byte(at);
        const std::size_t length = first < 0x80   ? 1
                                   : first < 0xC2 ? 0
                                   : first < 0xE0 ? 2
                                   : first < 0xF0 ? 3
                                   : first < 0xF5 ? 4
                                                  : 0;
        char32_t code = length == 1 ? first : first & (0xFFu >> (length + 1));
        bool valid = length > 0 && at + length <= text.size();
        for (std::size_t i = 1; valid && i < length; ++i) {
            valid = (byte(at + i) & 0xC0) == 0x80;
            code = (code << 6) | (byte(at + i) & 0x3Fu);
        }
        valid = valid && !(length == 3 && code < 0x800) &&
                !(length == 4 && (code < 0x10000 || code > 0x10FFFF)) &&
                !(code >= 0xD800 && code <= 0xDFFF) && (code & 0xFFFE) != 0xFFFE;
        if (!valid) {
            letters.push_back({replacement, 0xFFFD});
            ++at;
            continue;
        }
        const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
        letters.push_back(control ? Letter{" ", U' '} : Letter{text.substr(at, length), code});
        at += length;
    }
    return letters;
}

int columns(char32_t code) { return (code >= 0x1100 && code < 0x1160) || code >= 0x2E80 ? 2 : 1; }

int root(int square) {
    int r = 0;
    while ((r + 1) * (r + 1) <= square) ++r;
    return r;
}

int half_letter() { return 11; }  // half the height of a letter with its accents and descenders

// The rows from top to bottom with their distance from the middle; returns their height.
int stack(std::vector<Row>& rows) {
    const int separator = 10;  // room for the dashed line above a gradient
    int height = 0;
    for (Row& row : rows) {
        if (row.kind == Row::Kind::gradient) height += separator;
        row.dy = height + line_height / 2;
        height += line_height;
    }
    for (Row& row : rows) row.dy -= height / 2;
    return height;
}

// The width a shape of this outline and height needs, so that no corner of a row touches its slanted or round
// sides.
int width_around(const Shape& shape, int padding) {
    int width = 0;
    for (const Row& row : shape.rows) {
        width = std::max(width, row.width + 2 * shape.inset(std::abs(row.dy) + half_letter()));
    }
    return width + 2 * padding;
}

int even(int n) { return n + n % 2; }

}  // namespace

int text_width(const std::string& utf8) {
    int width = 0;
    for (const Letter& letter : letters_of(utf8)) width += columns(letter.code) * char_width;
    return width;
}

std::string clean(const std::string& text, int longest) {
    const std::vector<Letter> letters = letters_of(text);
    const auto total = std::ssize(letters);
    std::string result;
    for (std::ptrdiff_t i = 0; i < total; ++i) {
        const bool long_text = total > longest;
        if (long_text && i == longest / 2) {
            result += "..";
            i = total - (longest - longest / 2 - 2);
        }
        result += letters[static_cast<std::size_t>(i)].bytes;
    }
    return result;
}

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

Shape shape_of(const Diagram::Box& box, int port_extent) {
    using Role = Diagram::Role;
    Shape shape;
    Row head{Row::Kind::head, clean(box.name, 24), clean(box.shape, 24), 0, 0};
    if (box.recomputed) head.text += head.text.empty() ? "x2" : " x2";
    head.width = text_width(head.name) + text_width(head.text) + (head.text.empty() ? 0 : char_width);
    shape.rows.push_back(head);
    for (const auto& [kind, text] :
         {std::pair{Row::Kind::value, box.value}, {Row::Kind::gradient, box.gradient}}) {
        if (text.empty()) continue;
        const std::string shown = clean(text, 44);
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
