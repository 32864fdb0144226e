// Compares the pictures of to_svg() and to_dot() with golden copies. Tests properties of every layout,
// escaped characters, and errors.
#include "tally/tools/diagram.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "io/file_testing.hpp"
#include "tally/base/error.hpp"
#include "tally/base/text.hpp"
#include "tally/base/write_file.hpp"
#include "tally/tools/diagram_layout.hpp"
#include "tools/diagram_examples.hpp"
#include "tools/xml_fault.hpp"

using namespace tally;
using namespace tally::test;

namespace {

// To write new golden copies, set TALLY_UPDATE_GOLDEN=1. Review the new copies before you commit.
void compare_with_golden(const std::string& name, const std::string& text) {
    const std::string path = TALLY_SOURCE_DIR "/tests/golden/" + name;
    const char* update = std::getenv("TALLY_UPDATE_GOLDEN");
    if (update != nullptr && std::string(update) == "1") write_file_atomically(path, text);
    const std::string golden = read_bytes(path);
    const auto differ = std::mismatch(golden.begin(), golden.end(), text.begin(), text.end());
    INFO(path << " differs at byte " << differ.first - golden.begin());
    CHECK(golden == text);
}

std::vector<std::string> all_matches(const std::string& text, const char* pattern) {
    const std::regex regex(pattern);
    std::vector<std::string> found;
    for (auto it = std::sregex_iterator(text.begin(), text.end(), regex); it != std::sregex_iterator(); ++it)
        found.push_back((*it)[1]);
    return found;
}

struct Rectangle {
    int left, top, right, bottom;
    bool overlaps(const Rectangle& other, int air = 0) const {
        return left < other.right + air && other.left < right + air && top < other.bottom + air &&
               other.top < bottom + air;
    }
    bool inside(const Rectangle& other) const {
        return left >= other.left && right <= other.right && top >= other.top && bottom <= other.bottom;
    }
};

Rectangle around(const drawing::Shape& s) { return {s.x, s.y, s.x + s.w, s.y + s.h}; }

Rectangle around_label(const drawing::Wire& wire) {
    const int half = drawing::text_width(wire.label) / 2;
    return {wire.label_at.x - half, wire.label_at.y - 16, wire.label_at.x + half, wire.label_at.y + 5};
}

struct Piece {
    Rectangle place;
    std::size_t wire;
};

std::vector<Piece> pieces_of(const drawing::Layout& layout) {
    std::vector<Piece> pieces;
    for (std::size_t w = 0; w < layout.wires.size(); ++w) {
        for (const auto* points : {&layout.wires[w].forward, &layout.wires[w].backward}) {
            for (std::size_t i = 1; i < points->size(); ++i) {
                const auto a = (*points)[i - 1], b = (*points)[i];
                REQUIRE((a.x == b.x || a.y == b.y));
                pieces.push_back(
                    {{std::min(a.x, b.x), std::min(a.y, b.y), std::max(a.x, b.x), std::max(a.y, b.y)}, w});
            }
        }
    }
    return pieces;
}

bool parallel(const Rectangle& a, const Rectangle& b) {
    return (a.top == a.bottom && b.top == b.bottom) || (a.left == a.right && b.left == b.right);
}

// Describes the first rule that a layout violates. Returns an empty string if the layout violates no rule.
std::string layout_fault(const detail::Diagram& diagram) {
    const drawing::Layout layout = drawing::lay_out(diagram);
    const Rectangle page{0, 0, layout.width, layout.height};
    const std::vector<Piece> pieces = pieces_of(layout);
    const auto box = [](std::size_t i) { return "box " + std::to_string(i); };
    for (std::size_t i = 0; i < layout.shapes.size(); ++i) {
        const drawing::Shape& shape = layout.shapes[i];
        if (!around(shape).inside(page)) return box(i) + " leaves the page";
        for (std::size_t k = 0; k < i; ++k) {
            if (around(shape).overlaps(around(layout.shapes[k]), 10)) return box(i) + " touches " + box(k);
        }
        for (const drawing::Row& row : shape.rows) {
            const int width = drawing::text_width(row.name) + drawing::text_width(row.text) +
                              (row.name.empty() || row.text.empty() ? 0 : drawing::char_width);
            const int space = shape.w - 2 * std::max(shape.inset(row.dy - 9), shape.inset(row.dy + 9));
            if (width > row.width || width > space) return "a text leaves " + box(i);
        }
        for (const Piece& piece : pieces) {
            const auto& wire = layout.wires[piece.wire];
            const bool own = wire.from == static_cast<int>(i) || wire.to == static_cast<int>(i);
            if (!own && piece.place.overlaps(around(shape), 4))
                return "wire " + std::to_string(piece.wire) + " runs through " + box(i);
        }
        for (const auto& wire : layout.wires) {
            if (!wire.label.empty() && around_label(wire).overlaps(around(shape)))
                return "label " + wire.label + " touches " + box(i);
        }
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) {
            if (pieces[i].wire != pieces[k].wire && parallel(pieces[i].place, pieces[k].place) &&
                pieces[i].place.overlaps(pieces[k].place, 3)) {
                return "wires " + std::to_string(pieces[i].wire) + " and " + std::to_string(pieces[k].wire) +
                       " run along each other";
            }
        }
        for (const auto& wire : layout.wires) {
            if (!wire.label.empty() && around_label(wire).overlaps(pieces[i].place))
                return "a wire runs through label " + wire.label;
        }
    }
    for (std::size_t i = 0; i < layout.wires.size(); ++i) {
        const auto& wire = layout.wires[i];
        if (!wire.label.empty() && !around_label(wire).inside(page))
            return "label " + wire.label + " leaves the page";
        for (std::size_t k = 0; k < i; ++k) {
            if (wire.label.empty() || layout.wires[k].label.empty()) continue;
            if (around_label(wire).overlaps(around_label(layout.wires[k])))
                return "two labels overlap: " + wire.label;
        }
    }
    return "";
}

#ifdef NDEBUG
constexpr unsigned random_diagrams = 500;
#else
constexpr unsigned random_diagrams = 100;  // fewer graphs with assertions and under the sanitizers
#endif

// Returns a random graph of one to three micro-batches. Most operands are recent results, and the graph is
// the same on every machine.
detail::Diagram random_diagram(unsigned seed) {
    unsigned state = seed * 2654435761u + 12345u;
    const auto below = [&](int n) {
        state = state * 1664525u + 1013904223u;
        return static_cast<int>((state >> 16) % static_cast<unsigned>(n));
    };
    Sketch s;
    const int lanes = 1 + below(3), size = 3 + below(20), shared = below(3);
    for (int i = 0; i < shared; ++i)
        s.parameter("w", "(3)", "[ 0.5000 -1.2500  0.7500]", "1.0000",
                    lanes > 1 ? detail::Diagram::no_lane : 0);
    for (int lane = 0; lane < lanes; ++lane) {
        const int first = static_cast<int>(s.diagram.boxes.size());
        s.data("x", "(4)", below(2) == 0 ? "" : "[ 0.1250 -0.7500 ..]", lane);
        for (int i = 0; i < size; ++i) {
            const int here = static_cast<int>(s.diagram.boxes.size());
            if (below(4) == 0) {
                s.parameter("p", "", "1.0000", "0.5000", lane);
                continue;
            }
            std::vector<int> from;
            std::vector<std::string> parts;
            for (int inputs = 1 + below(3); inputs > 0; --inputs) {
                const int back = below(3) == 0 ? below(here - first) : below(std::min(here - first, 2));
                from.push_back(shared > 0 && below(5) == 0 ? below(shared) : here - 1 - back);
                parts.push_back(below(2) == 0 ? "" : "0.2500");
            }
            s.operation("op", "", "2.0000", "1.0000", from, parts, lane);
        }
        s.diagram.boxes.back().role = Role::loss;
    }
    return s.diagram;
}

}  // namespace

// tests/lesson/printed_test.py compares the pictures of the lessons with their golden copies.
TEST_CASE("to_svg, to_dot: a picture equals its golden copy byte by byte") {
    compare_with_golden("full_and_micro.svg", to_svg(full_and_micro()));
    compare_with_golden("full_and_micro.dot", to_dot(full_and_micro()));
}

TEST_CASE("to_svg: every picture is well-formed, readable, and the same on every machine") {
    for (const auto& [name, diagram] : example_diagrams()) {
        INFO(name);
        const std::string svg = to_svg(diagram);
        CHECK(xml_fault(svg) == "");
        CHECK(svg.find("<title id=\"t-title\">") != std::string::npos);
        CHECK(svg.find("<desc id=\"t-desc\">") != std::string::npos);
        CHECK(svg.find("prefers-color-scheme:dark") != std::string::npos);
        for (const std::string& size : all_matches(svg, "font-size:(\\d+)px")) CHECK(std::stoi(size) >= 18);
        CHECK(all_matches(svg, "(\\d\\.\\d)[^<>]*/>").empty());  // drawn elements have only whole numbers
        for (const std::string& number : all_matches(svg, "<text x=\"([^\"]*)\"")) {
            CHECK(number.find_first_not_of("-0123456789") == std::string::npos);
        }
        const auto ids = all_matches(svg, "id=\"n(\\d+)\"");
        REQUIRE(ids.size() == diagram.boxes.size());
        for (std::size_t i = 0; i < ids.size(); ++i) CHECK(ids[i] == std::to_string(i));
    }
}

TEST_CASE("lay_out: text is inside its shape, and no wire crosses a box or overlaps another wire") {
    for (const auto& [name, diagram] : example_diagrams()) {
        INFO(name);
        CHECK(layout_fault(diagram) == "");
    }
    for (unsigned seed = 0; seed < random_diagrams; ++seed) {
        INFO("random diagram " << seed);
        CHECK(layout_fault(random_diagram(seed)) == "");
    }
}

TEST_CASE("lay_out: a parameter is drawn once, and each use sends a gradient back to it") {
    const std::string svg = to_svg(micro_batches());
    CHECK(all_matches(svg, "(parameter w \\(3\\): value)").size() == 1);
    CHECK(all_matches(svg, "(class=\"t-operation\")").size() == 6 + 1);  // one of these is in the legend
    const drawing::Layout layout = drawing::lay_out(micro_batches());
    const drawing::Shape& w = layout.shapes.front();
    std::vector<int> arrivals;
    for (const auto& wire : layout.wires) {
        if (wire.from != 0) continue;
        REQUIRE_FALSE(wire.backward.empty());
        CHECK(wire.backward.back().x == w.x + w.w);
        arrivals.push_back(wire.backward.back().y);
    }
    CHECK(arrivals.size() == 3);
    CHECK(std::is_sorted(arrivals.begin(), arrivals.end()));
    REQUIRE(layout.bands.size() == 3);
    CHECK(layout.bands[0].y + layout.bands[0].h < layout.bands[1].y);
}

TEST_CASE("to_svg: the outline shows the role, the fill shows saved and recomputed values") {
    const std::string svg = to_svg(two_layers());
    CHECK(all_matches(svg, "(class=\"t-inner\")").size() == 4 + 1);
    CHECK(all_matches(svg, "(t-operation t-saved)").size() == 1);
    CHECK(all_matches(svg, "(t-operation t-recomputed)").size() == 1);
    CHECK(svg.find("x2</tspan>") != std::string::npos);
    CHECK(all_matches(to_svg(diamond()), "(<pattern)").empty());
}

TEST_CASE("lay_out: a long picture wraps into lines of similar length") {
    const drawing::Layout layout = drawing::lay_out(chain_of(60));
    CHECK(layout.width <= 2200);
    std::vector<int> per_line(1, 1);
    for (std::size_t i = 1; i < layout.shapes.size(); ++i) {
        if (layout.shapes[i].x > layout.shapes[i - 1].x)
            ++per_line.back();
        else
            per_line.push_back(1);
    }
    CHECK(per_line.size() == 7);
    CHECK(*std::min_element(per_line.begin(), per_line.end()) >= 6);
}

TEST_CASE("lay_out: lines are at most as wide as requested, except for a single column") {
    for (unsigned seed = 0; seed < random_diagrams; ++seed) {
        INFO("random diagram " << seed);
        detail::Diagram diagram = random_diagram(seed);
        diagram.widest = 900 + 100 * static_cast<int>(seed % 6);
        CHECK(layout_fault(diagram) == "");
        const drawing::Layout layout = drawing::lay_out(diagram);
        if (layout.width <= diagram.widest) continue;
        diagram.widest = 1;  // puts every column on its own line
        CHECK(drawing::lay_out(diagram).width >= layout.width);
    }
    const int requested = 1336;
    for (const auto& [name, diagram] : example_diagrams()) {
        INFO(name);
        detail::Diagram narrow = diagram;
        narrow.widest = requested;
        CHECK(drawing::lay_out(narrow).width <= requested);
    }
}

TEST_CASE("lanes_from_losses: each box gets the lane of its loss") {
    detail::Diagram diagram = full_and_micro();
    for (auto& box : diagram.boxes) box.lane = 0;
    detail::lanes_from_losses(diagram);
    const detail::Diagram expected = full_and_micro();
    for (std::size_t i = 0; i < diagram.boxes.size(); ++i)
        CHECK(diagram.boxes[i].lane == expected.boxes[i].lane);

    diagram.boxes.push_back({Role::data, "unused", "", "", "", 7, false, false, {}});
    detail::lanes_from_losses(diagram);
    CHECK(diagram.boxes.back().lane == detail::Diagram::no_lane);
}

TEST_CASE("to_svg, to_dot: names may contain all characters") {
    const std::string svg = to_svg(odd_names()), dot = to_dot(odd_names());
    CHECK(svg.find("&lt;w&gt; &amp; &quot;quoted&quot; and broken\\") != std::string::npos);
    CHECK(svg.find("line one line two  &amp; \xEF\xBF\xBD</desc>") != std::string::npos);
    CHECK(dot.find("<w> & \\\"quoted\\\" and broken\\\\") != std::string::npos);
    CHECK(detail::clean_text("a\nb\tc\x7F"
                             "d",
                             99) == "a b c d");
    CHECK(detail::clean_text("\xC0\xAF|\xED\xA0\x80|\xF4\x90\x80\x80|\xE2\x82", 99) ==
          "\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|"
          "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD");
    CHECK(detail::clean_text("0123456789", 10) == "0123456789");
    CHECK(detail::clean_text("0123456789a", 10) == "01234..89a");
    CHECK(drawing::text_width("ab") == 2 * drawing::char_width);
    CHECK(drawing::text_width("\xE6\xBC\xA2") == 2 * drawing::char_width);
}

TEST_CASE("to_svg: invalid diagrams throw an Error") {
    CHECK_THROWS_WITH(detail::to_svg({}), "[picture] the diagram has no boxes; add at least one");
    CHECK_THROWS_AS(detail::to_dot({}), Error);
    CHECK_THROWS_AS(drawing::lay_out({}), Error);
    for (int from : {-1, 1, 2, 7}) {
        detail::Diagram diagram = diamond();
        diagram.boxes[1].inputs[0].from = from;
        CHECK_THROWS_WITH(to_svg(diagram), contains("box 1 'square' has input " + std::to_string(from)));
        CHECK_THROWS_AS(to_dot(diagram), Error);
    }
    detail::Diagram large;
    large.boxes.resize(static_cast<std::size_t>(detail::Diagram::max_boxes));
    CHECK_NOTHROW(to_dot(large));
    large.boxes.emplace_back();
    CHECK_THROWS_WITH(to_svg(large), contains("1001 boxes are too many to read"));
}

TEST_CASE("short_values: numbers are shortened correctly") {
    const double infinity = std::numeric_limits<double>::infinity();
    CHECK(detail::short_number(0.5) == "0.5000");
    CHECK(detail::short_number(-0.0) == "-0.0000");
    CHECK(detail::short_number(99999.0) == "99999.0000");
    CHECK(detail::short_number(1e5) == "1.000e+05");
    CHECK(detail::short_number(1e-4) == "0.0001");
    CHECK(detail::short_number(-0.00004) == "-4.000e-05");
    CHECK(detail::short_number(std::numeric_limits<double>::quiet_NaN()) == "nan");
    CHECK(detail::short_number(-infinity) == "-inf");
    CHECK(detail::short_values(std::vector<float>{-0.35356f, 0.0207f, -0.6125f}) ==
          "[-0.3536  0.0207 -0.6125]");
    CHECK(detail::short_values(std::vector<double>{0.5, -1.25, 0.75}) == "[ 0.5000 -1.2500  0.7500]");
    CHECK(detail::short_values(std::vector<double>{0.5, -1.25, 0.75, 1, 2}) == "[ 0.5000 -1.2500 ..]");
    CHECK(detail::short_values(std::vector<double>{1e-9, infinity}) == "[1.000e-09     inf]");
    CHECK(detail::short_values(std::vector<double>{}) == "[]");
}
