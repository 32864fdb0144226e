// A garment is a few polygons, of which corners, size, place, cloth and light vary from picture to picture.
#include "train/garments.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

#include "autograd/random.hpp"

namespace tally {
namespace {

// Only + - * / and sqrt from here on, and no libm: the pixels have the same bits everywhere.
constexpr std::uint64_t class_stream = std::uint64_t{0x77656172} << 32;  // "wear"
constexpr std::uint64_t form_stream = class_stream + 1, noise_stream = class_stream + 2;
constexpr double side = picture_side;

struct Point {
    double x, y;
};

enum class Outline {
    whole,   // as it is given
    halved,  // the left half, from top to bottom; the right half mirrors it
    pair     // twice: as it is given, and mirrored
};

struct Patch {
    Outline outline;
    double shade;   // of the cloth's brightness; 0 is a hole
    double likely;  // how often it is there
    std::vector<Point> corners;
};
using Garment = std::vector<Patch>;

// What differs little between these is on purpose: pullover, coat and shirt are hard to tell apart, too, when
// real.
const Patch long_sleeves{Outline::pair, 0.92, 1, {{9, 3.5}, {5, 7}, {2, 25}, {6, 25.5}, {9, 11}}};
const Patch short_sleeves{Outline::pair, 0.92, 1, {{8, 3.5}, {2, 9.5}, {5.5, 13}, {9, 9.5}}};
const Patch torso{Outline::halved, 1, 1, {{14, 4.5}, {11, 2.5}, {8, 3.5}, {8.5, 11}, {8, 25.5}, {14, 25.5}}};
const Patch buttons{Outline::whole, 0.45, 0.6, {{13.6, 6}, {14.4, 6}, {14.4, 25}, {13.6, 25}}};
const Patch collar{Outline::pair, 0.7, 0.7, {{11, 2}, {14, 5}, {12.5, 7}, {10.3, 4}}};

const std::vector<Garment> t_shirts{
    {short_sleeves, torso, {Outline::whole, 0.6, 0.4, {{11, 10}, {17, 10}, {17, 16}, {11, 16}}}},
};
const std::vector<Garment> trousers{
    {{Outline::halved, 1, 1, {{14, 2}, {9, 2}, {7.5, 26.5}, {12, 26.5}, {14, 9}}},
     {Outline::halved, 0.7, 0.7, {{14, 2}, {9, 2}, {8.9, 4}, {14, 4}}}},
};
const std::vector<Garment> pullovers{
    {long_sleeves,
     torso,
     {Outline::halved, 0.65, 0.6, {{14, 4.2}, {11, 2.2}, {10.4, 3.4}, {14, 6}}},
     {Outline::halved, 0.75, 0.6, {{14, 23.5}, {8, 23.5}, {8, 25.7}, {14, 25.7}}}},
};
const std::vector<Garment> dresses{
    {{Outline::halved, 1, 1, {{14, 4.5}, {11.5, 1.5}, {10, 2}, {10.5, 8}, {11, 12}, {7.5, 27}, {14, 27}}},
     {Outline::halved, 0.7, 0.4, {{14, 11}, {10.9, 11}, {11, 12.5}, {14, 12.5}}}},
    {{Outline::pair, 0.92, 1, {{10, 2.5}, {7, 8}, {8.5, 9.5}, {10.8, 7}}},
     {Outline::halved, 1, 1, {{14, 4}, {11.5, 2}, {9.8, 2.5}, {10.3, 9}, {10.8, 13}, {9, 27}, {14, 27}}}},
};
const std::vector<Garment> coats{
    {long_sleeves,
     {Outline::halved, 1, 1, {{14, 4.5}, {11, 2}, {8, 3}, {8, 11}, {7, 27}, {14, 27}}},
     {Outline::whole, 0.3, 0.8, {{13.5, 5}, {14.5, 5}, {14.5, 27}, {13.5, 27}}},
     {Outline::pair, 0.7, 0.7, {{11, 2}, {14, 9}, {11.8, 10}, {10, 4}}}},
};
const std::vector<Garment> sandals{
    {{Outline::whole,
      1,
      1,
      {{1.5, 21.5},
       {9, 21},
       {18, 18.5},
       {26, 16.5},
       {26.5, 23.5},
       {23.5, 23.5},
       {22.5, 20.5},
       {16, 22.5},
       {9, 23.8},
       {2, 23.5}}},
     {Outline::whole, 0.85, 1, {{4.5, 21.5}, {8, 15}, {10.5, 14.8}, {10, 21}}},
     {Outline::whole, 0.85, 0.8, {{16.5, 19.2}, {20.5, 9.5}, {23, 9.5}, {19.8, 18.5}}},
     {Outline::whole, 0.85, 0.7, {{21, 9.5}, {26, 12.5}, {26.2, 17}, {24.3, 17}, {23.8, 14}, {21.8, 12}}}},
    {{Outline::whole, 1, 1, {{1.5, 21}, {26, 20}, {26.5, 23}, {2, 23.5}}},
     {Outline::whole, 0.85, 1, {{4, 21}, {9, 14.5}, {11.5, 14.5}, {7.5, 21}}},
     {Outline::whole, 0.85, 1, {{8.5, 14.5}, {11.5, 14.5}, {15.5, 21}, {12.5, 21}}},
     {Outline::whole,
      0.85,
      0.7,
      {{19, 20.5}, {20, 14}, {26, 13.5}, {26, 20}, {23.8, 20}, {23.6, 16}, {21.8, 16}, {21.5, 20.5}}}},
};
const std::vector<Garment> shirts{
    {long_sleeves, torso, collar, buttons},
    {short_sleeves, torso, collar, buttons},
};
const std::vector<Garment> sneakers{
    {{Outline::whole,
      0.8,
      1,
      {{1.8, 20.5},
       {3, 17.5},
       {9, 16},
       {14, 12},
       {17, 10.5},
       {20, 12.5},
       {25, 11},
       {26.3, 14},
       {26.3, 20.5}}},
     {Outline::whole, 1, 1, {{1.5, 20}, {26.5, 20}, {26.5, 22.8}, {2, 22.8}}},
     {Outline::whole, 0.4, 0.6, {{9, 16.5}, {14.5, 12.3}, {16, 13.5}, {11, 17.8}}},
     {Outline::whole, 0.5, 0.5, {{16, 19}, {20, 14.5}, {22, 14.5}, {18, 19}}}},
};
const std::vector<Garment> bags{
    {{Outline::whole, 0.8, 1, {{7.5, 12}, {9.5, 4.5}, {18.5, 4.5}, {20.5, 12}}},
     {Outline::whole, 0, 1, {{9.5, 12}, {11, 6.5}, {17, 6.5}, {18.5, 12}}},
     {Outline::whole, 1, 1, {{3.5, 11}, {24.5, 11}, {26, 25}, {2, 25}}},
     {Outline::whole, 0.7, 0.6, {{3.5, 11}, {24.5, 11}, {22.5, 17}, {5.5, 17}}}},
    {{Outline::whole, 1, 1, {{2, 8}, {26, 8}, {26, 24}, {2, 24}}},
     {Outline::whole, 0.7, 0.7, {{2, 8}, {26, 8}, {14, 17}}},
     {Outline::whole, 0.4, 0.6, {{13, 15}, {15, 15}, {15, 18}, {13, 18}}}},
};
const std::vector<Garment> ankle_boots{
    {{Outline::whole,
      1,
      1,
      {{1.5, 22.5}, {2.3, 19.5}, {8, 17}, {13, 13.5}, {13.5, 3.5}, {24.5, 3}, {25, 12}, {26.3, 22.5}}},
     {Outline::whole, 0.6, 1, {{1.5, 22}, {26.5, 22}, {26.5, 25.5}, {20, 25.5}, {19, 23.6}, {1.5, 24}}},
     {Outline::whole, 0.6, 0.5, {{17, 5}, {21, 5}, {20.5, 13}, {17.5, 13}}}},
};
// In the order of fashion_classes.
const std::array<const std::vector<Garment>*, 10> wardrobe{
    &t_shirts, &trousers, &pullovers, &dresses, &coats, &sandals, &shirts, &sneakers, &bags, &ankle_boots};

// The draws of one picture, one after the other; between pictures there is room for 2^16.
class Dice {
public:
    Dice(std::uint64_t seed, std::uint64_t picture) : seed_(seed), next_(picture << 16) {}
    double operator()(double low, double high) {
        return random::uniform<double>(seed_, form_stream, next_++, low, high);
    }
    bool happens(double likely) { return (*this)(0, 1) < likely; }
    std::size_t below(std::size_t n) {
        return static_cast<std::size_t>((*this)(0, 1) * static_cast<double>(n));
    }

private:
    std::uint64_t seed_, next_;
};

// How a garment lies in its picture.
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

// Adds to `covered` how much of each pixel of a row lies between two places.
void cover(std::array<float, picture_side>& covered, double from, double to, float share) {
    from = std::clamp(from, 0.0, side);
    to = std::clamp(to, 0.0, side);
    for (auto x = static_cast<std::size_t>(from); static_cast<double>(x) < to; ++x) {
        const double left = std::max(from, static_cast<double>(x)),
                     right = std::min(to, static_cast<double>(x + 1));
        covered[x] += share * static_cast<float>(right - left);
    }
}

// Paints a polygon: four lines through each row of pixels, each filled between every other crossing.
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

// Between -1 and 1, with period 1.
double wave(double x) {
    const double phase = x - std::floor(x);
    return 4 * std::abs(phase - 0.5) - 1;
}

// How bright the cloth is at each place: its colour, light from one side, stripes or checks.
struct Cloth {
    explicit Cloth(Dice& dice)
        : brightness(dice(0.35, 1)), light_x(dice(-0.3, 0.3)), light_y(dice(-0.2, 0.2)) {
        if (dice.happens(0.25)) across = dice(0.1, 0.45);
        if (dice.happens(0.25)) along = dice(0.1, 0.45);
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

std::int32_t garment_class(std::uint64_t seed, std::uint64_t index) {
    return static_cast<std::int32_t>(random::below(seed, class_stream, index, wardrobe.size()));
}

void draw_garment(std::span<std::uint8_t, picture_side * picture_side> pixels, std::uint64_t seed,
                  std::uint64_t index) {
    Dice dice(seed, index);
    const std::vector<Garment>& choice = *wardrobe[static_cast<std::size_t>(garment_class(seed, index))];
    const Garment& garment = choice[dice.below(choice.size())];
    const Placement place(dice);
    const Cloth cloth(dice);
    Canvas canvas{}, noise;
    for (const Patch& patch : garment)
        if (dice.happens(patch.likely)) paint(canvas, patch, place, dice);
    random::fill_normal<float>(noise, seed, noise_stream, 0.0f, static_cast<float>(dice(0.02, 0.12)),
                               index * noise.size());
    for (std::size_t i = 0; i < pixels.size(); ++i) {
        const double light =
            canvas[i] * cloth(i % picture_side, i / picture_side) + static_cast<double>(noise[i]);
        pixels[i] = static_cast<std::uint8_t>(std::clamp(light, 0.0, 1.0) * 255 + 0.5);
    }
}

}  // namespace tally
