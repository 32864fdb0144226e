// Draws each garment as a few polygons. Corners, size, position, fabric and light differ between pictures.
#include "course/data/garments.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "course/data/wardrobe.hpp"
#include "tally/base/random.hpp"

namespace tally::garments {
namespace {

// This file does not use libm, so that all machines with IEEE 754 arithmetic draw the same pictures.
constexpr std::uint64_t class_stream = std::uint64_t{0x77656172} << 32;  // "wear"
constexpr std::uint64_t form_stream = class_stream + 1, noise_stream = class_stream + 2;
constexpr double side = picture_side;

// Generates the random numbers of one picture. Each picture uses at most 2^16 random numbers.
class Dice {
public:
    Dice(std::uint64_t seed, std::uint64_t picture) : seed_(seed), next_(picture << 16) {}
    double operator()(double low, double high) {
        return random::detail::uniform<double>(seed_, form_stream, next_++, low, high);
    }
    bool bernoulli(double probability) { return (*this)(0, 1) < probability; }
    std::size_t below(std::size_t n) {
        return static_cast<std::size_t>((*this)(0, 1) * static_cast<double>(n));
    }

private:
    std::uint64_t seed_, next_;
};

// Scales, slants and shifts a garment within its picture by random amounts.
struct Placement {
    explicit Placement(Dice& dice)
        : width(dice(0.8, 1.08)),
          height(dice(0.8, 1.06)),
          slant(dice(-0.1, 0.1)),
          right(dice(-1.8, 1.8)),
          down(dice(-1.8, 1.8)) {}
    Point operator()(Point p) const {
        const double x = p.x - side / 2, y = p.y - side / 2;
        return {side / 2 + right + width * x + slant * y, side / 2 + down + height * y};
    }
    double width, height, slant, right, down;
};

using Canvas = std::array<float, picture_side * picture_side>;

// For each pixel, adds `share` times the fraction of the pixel between the x coordinates `from` and `to`.
void cover(std::array<float, picture_side>& covered, double from, double to, float share) {
    from = std::clamp(from, 0.0, side);
    to = std::clamp(to, 0.0, side);
    for (auto x = static_cast<std::size_t>(from); static_cast<double>(x) < to; ++x) {
        const double left = std::max(from, static_cast<double>(x)),
                     right = std::min(to, static_cast<double>(x + 1));
        covered[x] += share * static_cast<float>(right - left);
    }
}

// Fills a polygon by the even-odd rule, with four scan lines per row of pixels.
void paint(Canvas& canvas, const std::vector<Point>& corners, float shade) {
    constexpr int lines = 4;
    double top = side, bottom = 0;
    for (const Point& corner : corners) {
        top = std::min(top, corner.y);
        bottom = std::max(bottom, corner.y);
    }
    std::vector<double> crossings;
    for (auto y = static_cast<std::size_t>(std::max(top, 0.0));
         static_cast<double>(y) < std::min(bottom, side); ++y) {
        std::array<float, picture_side> covered{};
        for (int line = 0; line < lines; ++line) {
            const double at = static_cast<double>(y) + (line + 0.5) / lines;
            crossings.clear();
            for (std::size_t i = 0; i < corners.size(); ++i) {
                const Point a = corners[i], b = corners[(i + 1) % corners.size()];
                if ((a.y <= at) != (b.y <= at))
                    crossings.push_back(a.x + (at - a.y) / (b.y - a.y) * (b.x - a.x));
            }
            std::sort(crossings.begin(), crossings.end());
            for (std::size_t i = 0; i + 1 < crossings.size(); i += 2)
                cover(covered, crossings[i], crossings[i + 1], 1.0f / lines);
        }
        for (std::size_t x = 0; x < picture_side; ++x) {
            float& pixel = canvas[y * picture_side + x];
            pixel += (shade - pixel) * std::min(covered[x], 1.0f);
        }
    }
}

std::vector<Point> mirrored(const std::vector<Point>& corners) {
    std::vector<Point> others(corners.rbegin(), corners.rend());
    for (Point& corner : others) corner.x = side - corner.x;
    return others;
}

void paint(Canvas& canvas, const Patch& patch, const Placement& place, Dice& dice) {
    std::vector<Point> corners = patch.corners;
    for (Point& corner : corners) {
        corner.x += dice(-0.8, 0.8);
        corner.y += dice(-0.8, 0.8);
    }
    const std::vector<Point> others = mirrored(corners);
    if (patch.outline == Outline::halved) corners.insert(corners.end(), others.begin(), others.end());
    const auto put = [&](std::vector<Point> outline) {
        for (Point& corner : outline) corner = place(corner);
        paint(canvas, outline, static_cast<float>(patch.shade));
    };
    put(corners);
    if (patch.outline == Outline::pair) put(others);
}

// Returns a triangle wave between -1 and 1 with period 1.
double wave(double x) {
    const double phase = x - std::floor(x);
    return 4 * std::abs(phase - 0.5) - 1;
}

// Computes the brightness of each pixel of a fabric from the colour, light from one side and stripes.
struct FabricPattern {
    explicit FabricPattern(Dice& dice)
        : brightness(dice(0.35, 1)), light_x(dice(-0.3, 0.3)), light_y(dice(-0.2, 0.2)) {
        if (dice.bernoulli(0.25)) across = dice(0.1, 0.45);
        if (dice.bernoulli(0.25)) along = dice(0.1, 0.45);
        frequency = dice(0.12, 0.4);
    }
    double operator()(std::size_t x, std::size_t y) const {
        const auto u = static_cast<double>(x), v = static_cast<double>(y);
        return brightness * (1 + light_x * (u / side - 0.5) + light_y * (v / side - 0.5)) *
               (1 + across * wave(v * frequency)) * (1 + along * wave(u * frequency));
    }
    double brightness, light_x, light_y, across = 0, along = 0, frequency;
};

}  // namespace

std::int32_t class_of(std::uint64_t seed, std::uint64_t index) {
    return static_cast<std::int32_t>(random::detail::below(seed, class_stream, index, wardrobe().size()));
}

void draw(std::span<std::uint8_t, picture_side * picture_side> pixels, std::uint64_t seed,
          std::uint64_t index) {
    Dice dice(seed, index);
    const std::vector<Garment>& choice = wardrobe()[static_cast<std::size_t>(class_of(seed, index))];
    const Garment& garment = choice[dice.below(choice.size())];
    const Placement place(dice);
    const FabricPattern cloth(dice);
    Canvas canvas{}, noise;
    for (const Patch& patch : garment)
        if (dice.bernoulli(patch.probability)) paint(canvas, patch, place, dice);
    random::detail::fill_normal<float>(noise, seed, noise_stream, 0.0f, static_cast<float>(dice(0.02, 0.12)),
                                       index * noise.size());
    for (std::size_t i = 0; i < pixels.size(); ++i) {
        const double light =
            canvas[i] * cloth(i % picture_side, i / picture_side) + static_cast<double>(noise[i]);
        pixels[i] = static_cast<std::uint8_t>(std::clamp(light, 0.0, 1.0) * 255 + 0.5);
    }
}

}  // namespace tally::garments
