// Draws lesson pictures of random numbers, and tests the geometry and the numbers of the pictures.
#include "course/kit/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <regex>
#include <span>

#include "catch.hpp"
#include "tally/base/text.hpp"
#include "tally/tools/diagram.hpp"
#include "tally/tools/xml.hpp"
#include "tools/xml_fault.hpp"

using namespace tally;
using namespace tally::lesson;
using tally::detail::short_number;

namespace {

std::string fault_of(const Sheet& sheet) {
    const auto& all = sheet.words();
    const std::string svg = sheet.svg();
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto& a = all[i];
        if (a.left < 0 || a.top < 0 || a.right > sheet.width() || a.bottom > sheet.height())
            return fmt::format("'{}' leaves the page", a.text);
        if (svg.find(">" + escape_xml(a.text) + "</text>") == std::string::npos)
            return fmt::format("'{}' is not drawn", a.text);
        for (std::size_t j = 0; j < i; ++j) {
            const auto& b = all[j];
            if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
                return fmt::format("'{}' lies on '{}'", a.text, b.text);
        }
    }
    if (sheet.width() > Sheet::widest) return fmt::format("{} wide", sheet.width());
    if (svg.size() >= 12'000) return fmt::format("{} bytes", svg.size());
    if (svg.find("prefers-color-scheme:dark") == std::string::npos) return "light only";
    const std::regex size("font-size:(\\d+)px");
    for (std::sregex_iterator at(svg.begin(), svg.end(), size), end; at != end; ++at)
        if (std::stoi((*at)[1]) < 18) return "small letters";
    return test::xml_fault(svg);
}

bool says(const Sheet& sheet, const std::string& text) {
    return std::any_of(sheet.words().begin(), sheet.words().end(),
                       [&](const auto& words) { return words.text.find(text) != std::string::npos; });
}

// The class Dice generates random numbers of a random magnitude.
struct Dice {
    explicit Dice(unsigned seed) : bits(seed) {}
    std::mt19937 bits;
    std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(bits); }
    double number(double scale = 1) { return scale * std::normal_distribution<double>()(bits); }
    double scale() { return std::pow(10.0, static_cast<double>(below(7)) - 3); }
    Vector numbers(std::size_t n, double scale = 1) {
        Vector all(n);
        for (double& one : all) one = number(scale);
        return all;
    }
};

Shares shares_of(Dice& dice) {
    Shares shares;
    shares.full = shares.sum = Vector(3);
    for (std::size_t parts = 1 + dice.below(4); parts > 0; --parts) {
        Shares::Part part{"rows of part " + std::to_string(parts), 1 + dice.below(4), Vector(3)};
        for (std::size_t row = 0; row < part.rows; ++row) {
            shares.rows.push_back(dice.numbers(3));
            for (std::size_t i = 0; i < 3; ++i) {
                shares.full[i] += shares.rows.back()[i];
                part.gradient[i] += shares.rows.back()[i] / static_cast<double>(part.rows);
            }
        }
        for (std::size_t i = 0; i < 3; ++i) shares.sum[i] += part.gradient[i];
        shares.parts.push_back(part);
    }
    for (double& one : shares.full) one /= static_cast<double>(shares.rows.size());
    if (dice.below(2) == 0) {
        shares.divided = shares.sum;
        for (double& one : shares.divided) one /= static_cast<double>(shares.parts.size());
    }
    if (dice.below(3) == 0) shares.weighed = shares.full;
    return shares;
}

Plane plane_of(Dice& dice) {
    const double across = dice.scale(), up = dice.scale();
    Plane plane{"first component of the gradient",
                "second component",
                {},
                Plane::Scale::equal,
                "the truth",
                dice.number(across),
                dice.number(up)};
    for (const char* name : {"from 1 item", "from 16 items"})
        plane.series.push_back({name, dice.numbers(60, across), dice.numbers(60, up)});
    if (dice.below(4) == 0) plane.series[0].x[0] = std::nan("");
    const double spread = std::abs(dice.number(std::min(across, up))) + 1e-6;
    plane.circles = {{"spread " + short_number(spread), spread}, {"a quarter", spread / 4}};
    return plane;
}

Plane curves_of(Dice& dice) {
    std::vector<std::pair<std::string, Vector>> all;
    const std::size_t updates = 2 + dice.below(60);
    for (std::size_t c = 1 + dice.below(4); c > 0; --c) {
        Vector heights{2.5};
        const double factor = std::exp(dice.number());
        while (heights.size() < updates) heights.push_back(heights.back() * factor);
        all.emplace_back("curve number " + std::to_string(c), heights);
    }
    if (dice.below(2) == 0)
        return curves("updates", "loss, by powers of ten", all, Plane::Scale::logarithmic);
    all[0].second[1] = -all[0].second[1];
    return curves("updates", "loss", all);
}

// Returns random work of several workers. Each piece of work takes one or two units of time.
Lanes lanes_of(Dice& dice) {
    Lanes lanes{{"forward", "backward", "weights"}, {}};
    for (std::size_t lane = 1 + dice.below(6), pieces = 1 + dice.below(16); lane > 0; --lane) {
        lanes.lanes.push_back({"stage " + std::to_string(lane), "keeps 12", {}});
        double time = static_cast<double>(dice.below(3));
        for (std::size_t i = 0; i < pieces; ++i) {
            const double takes = 1 + static_cast<double>(dice.below(2));
            lanes.lanes.back().work.push_back({dice.below(3), time, time + takes, std::to_string(i)});
            time += takes + static_cast<double>(dice.below(2));
        }
    }
    return lanes;
}

}  // namespace

TEST_CASE("sheet_of: with random numbers nothing leaves the page, overlaps or is too small") {
    for (unsigned seed = 0; seed < 200; ++seed) {
        INFO("seed " << seed);
        Dice dice(seed);
        CHECK(fault_of(sheet_of("Shares", shares_of(dice))) == "");
        CHECK(fault_of(sheet_of("A plane", plane_of(dice))) == "");
        CHECK(fault_of(sheet_of("Curves", curves_of(dice))) == "");
        CHECK(fault_of(sheet_of("Lanes", lanes_of(dice))) == "");
    }
}

TEST_CASE("Shares: shows each row, its weight, and the ratio to the full batch's gradient") {
    for (unsigned seed = 0; seed < 50; ++seed) {
        INFO("seed " << seed);
        Dice dice(seed);
        const Shares shares = shares_of(dice);
        const Sheet sheet = sheet_of("Shares", shares);
        for (const Vector& row : shares.rows)
            CHECK(says(sheet, detail::short_values(std::span<const double>(row))));
        CHECK(says(sheet, fmt::format("1/{}", shares.rows.size())));
        const bool mended = !shares.divided.empty(), weighed = !shares.weighed.empty();
        for (const auto& part : shares.parts) {
            const std::string own = part.rows == 1 ? "1" : fmt::format("1/{}", part.rows);
            CHECK(says(sheet, weighed  ? fmt::format("{} x {}/{} = 1/{}", own, part.rows, shares.rows.size(),
                                                     shares.rows.size())
                              : mended ? fmt::format("{} / {} = 1/{}", own, shares.parts.size(),
                                                     part.rows * shares.parts.size())
                                       : own));
        }
        const bool equal = std::all_of(shares.parts.begin(), shares.parts.end(),
                                       [&](const auto& part) { return part.rows == shares.parts[0].rows; });
        CHECK(says(sheet, fmt::format("{:.2f} times", static_cast<double>(shares.parts.size()))) == equal);
        CHECK(says(sheet, "1.00 times") == (weighed || (equal && (mended || shares.parts.size() == 1))));
        CHECK(says(sheet, "not the full batch's") == !equal);
    }
}

TEST_CASE("Plane: has one scale for both axes") {
    const std::regex circle("<circle[^>]* r=\"(\\d+)\""),
        rule("M(-?\\d+),(-?\\d+) L(-?\\d+),(-?\\d+)\" class=\"t-rule\"");
    for (unsigned seed = 0; seed < 50; ++seed) {
        INFO("seed " << seed);
        Dice dice(seed);
        Plane plane = plane_of(dice);
        const double scale = dice.scale();
        for (auto& points : plane.series)
            points.x = dice.numbers(60, scale), points.y = dice.numbers(60, scale);
        plane.middle_x = plane.middle_y = 0;
        plane.circles = {{"around", scale}};
        const std::string svg = sheet_of("A plane", plane).svg();
        std::vector<int> across, up;
        for (std::sregex_iterator at(svg.begin(), svg.end(), rule), end; at != end; ++at)
            if ((*at)[1] == (*at)[3])
                across.push_back(std::stoi((*at)[1]));
            else
                up.push_back(std::stoi((*at)[2]));
        REQUIRE(across.size() >= 2);
        REQUIRE(up.size() >= 2);
        CHECK(std::abs((across[1] - across[0]) - (up[0] - up[1])) <= 1);
        std::smatch found;
        REQUIRE(std::regex_search(svg, found, circle));
        // Two neighbouring ticks of an axis differ by 1, 2 or 5 times a power of ten.
        const double ticks = std::stod(found[1]) / (across[1] - across[0]), power = std::log10(scale / ticks);
        const double mantissa = std::pow(10, power - std::floor(power + 0.02));
        CHECK(std::min({std::abs(mantissa - 1), std::abs(mantissa - 2), std::abs(mantissa - 5)}) < 0.1);
    }
}

TEST_CASE("curves: the heights of a curve have one scale, and the legend tells its ends") {
    const std::regex point("[ML](\\d+),(\\d+)");
    for (unsigned seed = 0; seed < 50; ++seed) {
        INFO("seed " << seed);
        Dice dice(seed);
        const Plane plane = curves_of(dice);
        const Sheet sheet = sheet_of("Curves", plane);
        const std::string svg = sheet.svg();
        const auto& heights = plane.series[0].y;
        CHECK(says(sheet, fmt::format("{}: {:.4g} to {:.4g}", plane.series[0].label, heights.front(),
                                      heights.back())));
        const std::size_t begin = svg.find("<path d=\"M", svg.find("t-axis\"/>")),
                          line = svg.find("s-line\"/>", begin);
        std::vector<Vector> drawn;
        const std::string first = svg.substr(svg.rfind("<path", line), line - svg.rfind("<path", line));
        for (std::sregex_iterator at(first.begin(), first.end(), point), end; at != end; ++at)
            drawn.push_back({std::stod((*at)[1]), std::stod((*at)[2])});
        REQUIRE(drawn.size() == heights.size());
        for (std::size_t i = 2; i < drawn.size(); ++i) {  // three points determine the scale
            const auto value = [&](std::size_t k) {
                return plane.scale == Plane::Scale::linear ? heights[k] : std::log10(heights[k]);
            };
            const double wide = value(i) - value(0), part = value(1) - value(0);
            CHECK(std::abs((drawn[i][1] - drawn[0][1]) * part - (drawn[1][1] - drawn[0][1]) * wide) <=
                  1.01 * (std::abs(part) + std::abs(wide)));
            CHECK(std::abs((drawn[i][0] - drawn[0][0]) -
                           (drawn[1][0] - drawn[0][0]) * static_cast<double>(i)) <=
                  static_cast<double>(i) + 1);
        }
    }
}

TEST_CASE("Lanes: each piece of work is a box, and all lanes have one scale of time") {
    for (unsigned seed = 0; seed < 100; ++seed) {
        INFO("seed " << seed);
        Dice dice(seed);
        const Lanes lanes = lanes_of(dice);
        const std::string svg = sheet_of("Lanes", lanes).svg();
        std::vector<Vector> wanted, drawn;  // lane, from, until
        for (std::size_t lane = 0; lane < lanes.lanes.size(); ++lane)
            for (const auto& work : lanes.lanes[lane].work)
                wanted.push_back({static_cast<double>(lane), work.from, work.until});
        const std::regex box("M(\\d+),(\\d+)H(\\d+)V\\d+H\\d+Z");
        for (std::sregex_iterator at(svg.begin(), svg.end(), box), end; at != end; ++at)
            drawn.push_back({std::stod((*at)[2]), std::stod((*at)[1]), std::stod((*at)[3])});
        REQUIRE(drawn.size() == wanted.size());
        std::sort(drawn.begin(), drawn.end());
        const auto range = [](const std::vector<Vector>& boxes) {
            double from = boxes[0][1], until = boxes[0][2];
            for (const Vector& each : boxes) from = std::min(from, each[1]), until = std::max(until, each[2]);
            return std::pair(from, until);
        };
        const auto [begin, end] = range(wanted);
        const auto [left, right] = range(drawn);
        const double unit = (right - left) / (end - begin), top = drawn[0][0];
        for (std::size_t i = 0; i < drawn.size(); ++i) {
            CHECK(drawn[i][0] == top + 48 * wanted[i][0]);
            CHECK(std::abs(drawn[i][1] - left - (wanted[i][1] - begin) * unit) <= 1.5);
            CHECK(std::abs(drawn[i][2] - left - (wanted[i][2] - begin) * unit) <= 1.5);
        }
    }
}
