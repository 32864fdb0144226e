// Garments drawn by plain geometry: what the generated stand-in for FashionMNIST consists of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tally {

inline constexpr std::size_t picture_side = 28;

// Picture number `index` of its seed: the class it shows, and its pixels, row by row, 0 (black) to 255.
std::int32_t garment_class(std::uint64_t seed, std::uint64_t index);
void draw_garment(std::span<std::uint8_t, picture_side * picture_side> pixels, std::uint64_t seed,
                  std::uint64_t index);

}  // namespace tally
