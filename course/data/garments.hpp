// Draws pictures from polygons. The pictures replace FashionMNIST.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tally::garments {

inline constexpr std::size_t picture_side = 28;

// class_of() returns the class of a picture. draw() draws the pixels row by row, from 0 (black) to 255.
std::int32_t class_of(std::uint64_t seed, std::uint64_t index);
void draw(std::span<std::uint8_t, picture_side * picture_side> pixels, std::uint64_t seed,
          std::uint64_t index);

}  // namespace tally::garments
