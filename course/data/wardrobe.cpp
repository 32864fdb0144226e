// Defines the garments. Pullovers, coats and shirts are similar on purpose, as they are in FashionMNIST.
#include "course/data/wardrobe.hpp"

namespace tally::garments {

namespace {

using enum Outline;

// Each line defines one polygon.
// clang-format off

// ---- parts of several garments ----

Patch long_sleeves() { return {pair, 0.92, 1, {{9, 3.5}, {5, 7}, {2, 25}, {6, 25.5}, {9, 11}}}; }
Patch short_sleeves() { return {pair, 0.92, 1, {{8, 3.5}, {2, 9.5}, {5.5, 13}, {9, 9.5}}}; }
Patch torso() { return {halved, 1, 1, {{14, 4.5}, {11, 2.5}, {8, 3.5}, {8.5, 11}, {8, 25.5}, {14, 25.5}}}; }
Patch collar() { return {pair, 0.7, 0.85, {{11, 2}, {14, 5}, {12.5, 7}, {10.3, 4}}}; }
Patch buttons() { return {whole, 0.45, 0.75, {{13.6, 6}, {14.4, 6}, {14.4, 25}, {13.6, 25}}}; }

// ---- clothes ----

Garment t_shirt() {
    return {short_sleeves(), torso(),
            {whole, 0.6, 0.4, {{11, 10}, {17, 10}, {17, 16}, {11, 16}}}};  // print
}
Garment trousers() {
    return {{halved, 1, 1, {{14, 2}, {9, 2}, {7.5, 26.5}, {12, 26.5}, {14, 9}}},
            {halved, 0.7, 0.7, {{14, 2}, {9, 2}, {8.9, 4}, {14, 4}}}};  // waistband
}
Garment pullover() {
    return {long_sleeves(), torso(),
            {halved, 0.65, 0.6, {{14, 4.2}, {11, 2.2}, {10.4, 3.4}, {14, 6}}},     // neckband
            {halved, 0.75, 0.6, {{14, 23.5}, {8, 23.5}, {8, 25.7}, {14, 25.7}}}};  // hem
}
Garment flared_dress() {
    return {{halved, 1, 1, {{14, 4.5}, {11.5, 1.5}, {10, 2}, {10.5, 8}, {11, 12}, {7.5, 27}, {14, 27}}},
            {halved, 0.7, 0.4, {{14, 11}, {10.9, 11}, {11, 12.5}, {14, 12.5}}}};  // belt
}
Garment straight_dress() {
    return {{pair, 0.92, 1, {{10, 2.5}, {7, 8}, {8.5, 9.5}, {10.8, 7}}},  // sleeves
            {halved, 1, 1, {{14, 4}, {11.5, 2}, {9.8, 2.5}, {10.3, 9}, {10.8, 13}, {9, 27}, {14, 27}}}};
}
Garment coat() {
    return {long_sleeves(),
            {halved, 1, 1, {{14, 4.5}, {11, 2}, {8, 3}, {8, 11}, {7, 27}, {14, 27}}},
            {whole, 0.3, 0.8, {{13.5, 5}, {14.5, 5}, {14.5, 27}, {13.5, 27}}},  // opening
            {pair, 0.7, 0.7, {{11, 2}, {14, 9}, {11.8, 10}, {10, 4}}}};         // lapels
}
Garment shirt() { return {long_sleeves(), torso(), collar(), buttons()}; }
Garment summer_shirt() { return {short_sleeves(), torso(), collar(), buttons()}; }

// ---- shoes ----

Garment high_sandal() {
    return {{whole, 1, 1, {{1.5, 21.5}, {9, 21}, {18, 18.5}, {26, 16.5}, {26.5, 23.5}, {23.5, 23.5}, {22.5, 20.5}, {16, 22.5}, {9, 23.8}, {2, 23.5}}},  // sole and heel
            {whole, 0.85, 1, {{4.5, 21.5}, {8, 15}, {10.5, 14.8}, {10, 21}}},
            {whole, 0.85, 0.8, {{16.5, 19.2}, {20.5, 9.5}, {23, 9.5}, {19.8, 18.5}}},
            {whole, 0.85, 0.7, {{21, 9.5}, {26, 12.5}, {26.2, 17}, {24.3, 17}, {23.8, 14}, {21.8, 12}}}};
}
Garment flat_sandal() {
    return {{whole, 1, 1, {{1.5, 21}, {26, 20}, {26.5, 23}, {2, 23.5}}},
            {whole, 0.85, 1, {{4, 21}, {9, 14.5}, {11.5, 14.5}, {7.5, 21}}},
            {whole, 0.85, 1, {{8.5, 14.5}, {11.5, 14.5}, {15.5, 21}, {12.5, 21}}},
            {whole, 0.85, 0.7, {{19, 20.5}, {20, 14}, {26, 13.5}, {26, 20}, {23.8, 20}, {23.6, 16}, {21.8, 16}, {21.5, 20.5}}}};
}
Garment sneaker() {
    return {{whole, 0.8, 1, {{1.8, 20.5}, {3, 17.5}, {9, 16}, {14, 12}, {17, 10.5}, {20, 12.5}, {25, 11}, {26.3, 14}, {26.3, 20.5}}},
            {whole, 1, 1, {{1.5, 20}, {26.5, 20}, {26.5, 22.8}, {2, 22.8}}},       // sole
            {whole, 0.4, 0.6, {{9, 16.5}, {14.5, 12.3}, {16, 13.5}, {11, 17.8}}},  // laces
            {whole, 0.5, 0.5, {{16, 19}, {20, 14.5}, {22, 14.5}, {18, 19}}}};      // stripe
}
Garment ankle_boot() {
    return {{whole, 1, 1, {{1.5, 22.5}, {2.3, 19.5}, {8, 17}, {13, 13.5}, {13.5, 3.5}, {24.5, 3}, {25, 12}, {26.3, 22.5}}},
            {whole, 0.6, 1, {{1.5, 22}, {26.5, 22}, {26.5, 25.5}, {20, 25.5}, {19, 23.6}, {1.5, 24}}},  // sole
            {whole, 0.6, 0.5, {{17, 5}, {21, 5}, {20.5, 13}, {17.5, 13}}}};                             // elastic
}

// ---- bags ----

Garment handbag() {
    return {{whole, 0.8, 1, {{7.5, 12}, {9.5, 4.5}, {18.5, 4.5}, {20.5, 12}}},  // handle
            {whole, 0, 1, {{9.5, 12}, {11, 6.5}, {17, 6.5}, {18.5, 12}}},
            {whole, 1, 1, {{3.5, 11}, {24.5, 11}, {26, 25}, {2, 25}}},
            {whole, 0.7, 0.6, {{3.5, 11}, {24.5, 11}, {22.5, 17}, {5.5, 17}}}};  // flap
}
Garment clutch() {
    return {{whole, 1, 1, {{2, 8}, {26, 8}, {26, 24}, {2, 24}}},
            {whole, 0.7, 0.7, {{2, 8}, {26, 8}, {14, 17}}},                // flap
            {whole, 0.4, 0.6, {{13, 15}, {15, 15}, {15, 18}, {13, 18}}}};  // clasp
}
// clang-format on

}  // namespace

const std::array<std::vector<Garment>, 10>& wardrobe() {
    static const std::array<std::vector<Garment>, 10> classes{{{t_shirt()},
                                                               {trousers()},
                                                               {pullover()},
                                                               {flared_dress(), straight_dress()},
                                                               {coat()},
                                                               {high_sandal(), flat_sandal()},
                                                               {shirt(), summer_shirt()},
                                                               {sneaker()},
                                                               {handbag(), clutch()},
                                                               {ankle_boot()}}};
    return classes;
}

}  // namespace tally::garments
