// Compares the pictures of to_svg() and to_dot() with golden copies. Tests properties of every picture,
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
#include "effort.hpp"
#include "io/file_testing.hpp"
#include "tally/base/error.hpp"
#include "tally/base/text.hpp"
#include "tally/base/write_file.hpp"
#include "tally/tools/sheet.hpp"
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

struct Arrow {
    std::vector<std::pair<int, int>> points;  // corners and the tip
    bool back;
};

// The parts of a picture, read from its text.
struct Drawn {
    Rectangle page{};
    std::vector<Rectangle> boxes, bands, words, lines;
    std::vector<std::string> texts;
    std::vector<Arrow> arrows;  // sorted by target, then by input; the arrow back follows

    explicit Drawn(const detail::Diagram& diagram) {
        const std::string svg = to_svg(diagram);
        std::smatch size;
        REQUIRE(std::regex_search(svg, size, std::regex("viewBox=\"0 0 (\\d+) (\\d+)\"")));
        page = {0, 0, std::stoi(size[1]), std::stoi(size[2])};
        static const std::regex element(
            "<rect x=\"(\\d+)\" y=\"(\\d+)\" width=\"(\\d+)\" height=\"(\\d+)\" rx=\"\\d+\" "
            "class=\"(s-b[^\"]*)\"/>"
            "|<path d=\"([^\"]*)\" class=\"(s-[^\"]*)\"/>"
            "|<text x=\"(\\d+)\" y=\"(\\d+)\" class=\"([^\"]*)\">([^<]*)</text>");
        static const std::regex entity("&[a-z]+;");
        std::smatch part;
        // This is much faster than one search in the whole text.
        for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
            if (!std::regex_search(svg.cbegin() + static_cast<std::ptrdiff_t>(at), svg.cend(), part, element,
                                   std::regex_constants::match_continuous))
                continue;
            const auto number = [&](std::size_t i) { return std::stoi(part[i]); };
            if (part[1].matched) {
                auto& these = part[5] == "s-band" ? bands : boxes;
                these.push_back({number(1), number(2), number(1) + number(3), number(2) + number(4)});
            } else if (part[6].matched) {
                add_path(part[6], part[7]);
            } else {
                texts.push_back(std::regex_replace(std::string(part[11]), entity, "&"));
                const std::string style = part[10];
                const bool large = style.find("t-title") != std::string::npos;
                const int width = detail::text_columns(texts.back()) * (large ? 14 : 11);
                const int left = number(8) - (style.find("t-middle") != std::string::npos ? width / 2 : 0);
                words.push_back({left, number(9) - 15, left + width, number(9) + 4});
            }
        }
        boxes.resize(diagram.boxes.size(), {});  // the legend comes after the boxes
    }

private:
    void add_path(const std::string& commands, const std::string& style) {
        std::vector<std::pair<int, int>> points;
        static const std::regex step("M(\\d+),(\\d+)|H(\\d+)|C[^ ]* [^ ]* (\\d+),(\\d+)");
        for (std::sregex_iterator at(commands.begin(), commands.end(), step), end; at != end; ++at) {
            const auto number = [&](std::size_t i) { return std::stoi((*at)[i]); };
            const auto last = points.empty() ? std::pair(0, 0) : points.back();
            if ((*at)[1].matched)
                points.emplace_back(number(1), number(2));
            else if ((*at)[3].matched)
                points.emplace_back(number(3), points.back().second);
            else
                points.emplace_back(number(4), number(5));
            const auto [x, y] = points.back();
            if (!(*at)[1].matched)
                lines.push_back({std::min(last.first, x), std::min(last.second, y), std::max(last.first, x),
                                 std::max(last.second, y)});
        }
        if (style.starts_with("s-head"))
            arrows.back().points.back() = points[0];  // the line ends where the head begins
        else
            arrows.push_back({points, style == "s-bad s-dashed"});
    }
};

bool on_side(int x, std::pair<int, int> point, const Rectangle& box) {
    return point.first == x && point.second > box.top && point.second < box.bottom;
}

// Describes the first wire that does not connect its boxes or crosses another box.
std::string wire_fault(const detail::Diagram& diagram, const Drawn& drawn) {
    std::size_t next = 0;
    for (std::size_t to = 0; to < diagram.boxes.size(); ++to)
        for (const auto& input : diagram.boxes[to].inputs)
            for (int back = 0; back < (input.back ? 2 : 1); ++back) {
                const std::string name = std::to_string(input.from) + " to " + std::to_string(to);
                Arrow arrow = drawn.arrows.at(next++);
                if (arrow.back != (back == 1)) return "the arrows of " + name + " are mixed up";
                if (arrow.back) std::reverse(arrow.points.begin(), arrow.points.end());
                const Rectangle &source = drawn.boxes[static_cast<std::size_t>(input.from)],
                                &target = drawn.boxes[to];
                if (!on_side(source.right, arrow.points.front(), source)) return name + " begins elsewhere";
                if (!on_side(target.left, arrow.points.back(), target)) return name + " ends elsewhere";
                for (std::size_t i = 1; i < arrow.points.size(); ++i) {
                    const auto [x0, y0] = arrow.points[i - 1];
                    const auto [x1, y1] = arrow.points[i];
                    const Rectangle around{x0, std::min(y0, y1), x1, std::max(y0, y1)};
                    for (const Rectangle& box : drawn.boxes)
                        if (&box != &source && &box != &target && box.overlaps(around, 2))
                            return name + " crosses a box";
                }
            }
    return "";
}

// Describes the first rule that a picture violates. Returns an empty string if it violates no rule.
std::string picture_fault(const detail::Diagram& diagram) {
    const Drawn drawn(diagram);
    for (std::size_t i = 0; i < drawn.boxes.size(); ++i) {
        if (!drawn.boxes[i].inside(drawn.page)) return "box " + std::to_string(i) + " leaves the page";
        for (std::size_t k = 0; k < i; ++k)
            if (drawn.boxes[i].overlaps(drawn.boxes[k], 10))
                return "box " + std::to_string(i) + " touches " + std::to_string(k);
    }
    for (std::size_t i = 0; i < drawn.words.size(); ++i) {
        const Rectangle& words = drawn.words[i];
        if (!words.inside(drawn.page)) return "'" + drawn.texts[i] + "' leaves the page";
        for (std::size_t k = 0; k < i; ++k)
            if (words.overlaps(drawn.words[k])) return drawn.texts[i] + " lies on " + drawn.texts[k];
        for (const Rectangle& box : drawn.boxes)
            if (words.overlaps(box) && !words.inside(box)) return "'" + drawn.texts[i] + "' crosses a box";
        for (const Rectangle& line : drawn.lines)
            if (words.overlaps(line)) return "a wire crosses '" + drawn.texts[i] + "'";
    }
    for (std::size_t i = 0; i < drawn.bands.size(); ++i)
        for (std::size_t k = 0; k < diagram.boxes.size(); ++k) {
            const bool belongs = diagram.boxes[k].lane == static_cast<int>(i);
            if (belongs ? !drawn.boxes[k].inside(drawn.bands[i]) : drawn.boxes[k].overlaps(drawn.bands[i]))
                return "box " + std::to_string(k) + " is in another lane";
        }
    return wire_fault(diagram, drawn);
}

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
        CHECK(svg == to_svg(diagram));
        CHECK(svg.find("<title id=\"t-title\">") != std::string::npos);
        CHECK(svg.find("<desc id=\"t-desc\">") != std::string::npos);
        CHECK(svg.find("prefers-color-scheme:dark") != std::string::npos);
        for (const std::string& size : all_matches(svg, "font-size:(\\d+)px")) CHECK(std::stoi(size) >= 18);
        CHECK(all_matches(svg, "(\\d\\.\\d)[^<>]*/>").empty());  // drawn elements have only whole numbers
        for (const std::string& number : all_matches(svg, "<text x=\"([^\"]*)\""))
            CHECK(number.find_first_not_of("-0123456789") == std::string::npos);
    }
}

TEST_CASE("to_svg: no boxes or texts overlap, and every wire connects its boxes and crosses no other box") {
    for (const auto& [name, diagram] : example_diagrams()) {
        INFO(name);
        CHECK(picture_fault(diagram) == "");
    }
    for (int seed = 0; seed < cases_of(300); ++seed) {
        INFO("random diagram " << seed);
        CHECK(picture_fault(random_diagram(static_cast<unsigned>(seed))) == "");
    }
    detail::Diagram single;
    single.boxes.emplace_back();
    CHECK(picture_fault(single) == "");
}

TEST_CASE("to_svg: a parameter is drawn once, and each use sends a gradient back to it") {
    const Drawn drawn(micro_batches());
    CHECK(std::count(drawn.texts.begin(), drawn.texts.end(), "w (3)") == 1);
    CHECK(std::count_if(drawn.arrows.begin(), drawn.arrows.end(), [&](const Arrow& arrow) {
              return arrow.back && arrow.points.back().first == drawn.boxes[0].right;
          }) == 3);
    REQUIRE(drawn.bands.size() == 3);
    CHECK(drawn.bands[0].bottom < drawn.bands[1].top);
}

TEST_CASE("to_svg: the outline shows the role, the fill shows saved and recomputed values") {
    const std::string svg = to_svg(two_layers());
    CHECK(all_matches(svg, "(class=\"s-inner\")").size() == 4 + 1);  // one of these is in the legend
    CHECK(all_matches(svg, "(s-operation s-saved)").size() == 1);
    CHECK(all_matches(svg, "(s-operation s-again)").size() == 1);
    CHECK(svg.find("matmul (16, 8) x2</text>") != std::string::npos);
    CHECK(all_matches(to_svg(diamond()), "class=\"(s-box [^\"]*s-again)").empty());
}

TEST_CASE("to_svg: each depth has its own column") {
    const Drawn drawn(chain_of(60));
    for (std::size_t i = 1; i < drawn.boxes.size(); ++i) {
        CHECK(drawn.boxes[i - 1].right < drawn.boxes[i].left);
        CHECK(drawn.boxes[i].top == drawn.boxes[1].top);
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
    CHECK(svg.find("&lt;w&gt; &amp; &quot;quote..nd broken\\ (3)</text>") != std::string::npos);
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
    CHECK(drawing::width_of_words("ab") == 2 * 11);
    CHECK(drawing::width_of_words("\xE6\xBC\xA2") == 2 * 11);
}

TEST_CASE("to_svg: invalid diagrams throw an Error") {
    CHECK_THROWS_WITH(detail::to_svg({}), "[picture] the diagram has no boxes; add at least one");
    CHECK_THROWS_AS(detail::to_dot({}), Error);
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
    CHECK(detail::short_values(std::vector<double>{-0.35356, 0.0207, -0.6125}) ==
          "[-0.3536  0.0207 -0.6125]");
    CHECK(detail::short_values(std::vector<double>{0.5, -1.25, 0.75}) == "[ 0.5000 -1.2500  0.7500]");
    CHECK(detail::short_values(std::vector<double>{0.5, -1.25, 0.75, 1, 2}) == "[ 0.5000 -1.2500 ..]");
    CHECK(detail::short_values(std::vector<double>{1e-9, infinity}) == "[1.000e-09     inf]");
    CHECK(detail::short_values(std::vector<double>{}) == "[]");
}
