// Garments drawn by plain geometry: what the generated stand-in for FashionMNIST consists of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tally::garments {

inline constexpr std::size_t picture_side = 28;

// Picture number `index` of its seed: the class it shows, and its pixels, row by row, 0 (black) to 255.
std::int32_t class_of(std::uint64_t seed, std::uint64_t index);
void draw(std::span<std::uint8_t, picture_side * picture_side> pixels, std::uint64_t seed,
          std::uint64_t index);

}  // namespace tally::garments
