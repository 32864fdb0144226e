// CRC-64 (ECMA-182, reflected, as in the .xz format): two texts that differ within 64 neighbouring bits, thus
// also in a single byte, never have the same one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tally {

// Row k is a byte's contribution from k places further on: eight bytes are then one step.
constexpr auto crc64_rows = [] {
    std::array<std::array<std::uint64_t, 256>, 8> rows{};
    for (std::uint64_t byte = 0; byte < 256; ++byte) {
        std::uint64_t value = byte;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xC96C5795D7870F42 : 0);
        rows[0][byte] = value;
    }
    for (std::size_t k = 1; k < 8; ++k)
        for (std::size_t byte = 0; byte < 256; ++byte)
            rows[k][byte] = (rows[k - 1][byte] >> 8) ^ rows[0][rows[k - 1][byte] & 255];
    return rows;
}();

// `before` is that of the bytes before these, where a text comes in pieces.
inline std::uint64_t crc64(std::span<const std::byte> bytes, std::uint64_t before = 0) {
    std::uint64_t crc = ~before;
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
        std::uint64_t word;
        std::memcpy(&word, bytes.data(), 8);
        word ^= crc;
        crc = 0;
        for (std::size_t i = 0; i < 8; ++i) crc ^= crc64_rows[7 - i][(word >> (8 * i)) & 255];
    }
    for (const std::byte byte : bytes)
        crc = (crc >> 8) ^ crc64_rows[0][(crc ^ std::to_integer<std::uint64_t>(byte)) & 255];
    return ~crc;
}

}  // namespace tally
