// The garments of the generated pictures, as they look before anything varies: a table of polygons.
#pragma once

#include <array>
#include <vector>

namespace tally::garments {

struct Point {
    double x, y;  // in pixels from the left upper corner of a picture of 28 x 28
};

enum class Outline {
    whole,   // as it is given
    halved,  // the left half, from top to bottom; the right half mirrors it
    pair     // twice: as it is given, and mirrored
};

struct Patch {
    Outline outline;
    double shade;        // of the cloth's brightness; 0 is a hole
    double probability;  // how often it is there
    std::vector<Point> corners;
};

using Garment = std::vector<Patch>;  // later patches lie over earlier ones

// The kinds of garment of each class, in the order of fashion_classes; each kind is equally frequent.
const std::array<std::vector<Garment>, 10>& wardrobe();

}  // namespace tally::garments
