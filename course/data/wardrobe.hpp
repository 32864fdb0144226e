// Declares the polygons of the generated garments. Each picture changes the polygons at random.
#pragma once

#include <array>
#include <vector>

namespace tally::garments {

struct Point {
    double x, y;  // in pixels from the left upper corner of a picture of 28 x 28
};

enum class Outline {
    whole,   // the corners are the whole outline
    halved,  // the corners are the left half from top to bottom; the right half is mirrored
    pair     // the polygon and its mirror image
};

struct Patch {
    Outline outline;
    double shade;        // factor of the fabric's brightness; 0 is a hole
    double probability;  // the probability that a picture of the garment has the patch
    std::vector<Point> corners;
};

using Garment = std::vector<Patch>;  // later patches cover earlier ones

// Returns the kinds of garments for each class in fashion_classes. All kinds of a class are equally frequent.
const std::array<std::vector<Garment>, 10>& wardrobe();

}  // namespace tally::garments
