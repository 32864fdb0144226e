// crc64() computes the CRC-64 of the .xz format (ECMA-182, reflected).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tally {

constexpr auto crc64_bytes = [] {
    std::array<std::uint64_t, 256> values{};
    for (std::uint64_t byte = 0; byte < 256; ++byte) {
        std::uint64_t value = byte;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xC96C5795D7870F42 : 0);
        values[byte] = value;
    }
    return values;
}();

// Returns the CRC-64 of the bytes. Texts that differ only within 64 consecutive bits have different CRCs. To
// process a text in pieces, pass the CRC of the previous pieces as `before`.
inline std::uint64_t crc64(std::span<const std::byte> bytes, std::uint64_t before = 0) {
    std::uint64_t crc = ~before;
    for (const std::byte byte : bytes)
        crc = (crc >> 8) ^ crc64_bytes[(crc ^ std::to_integer<std::uint64_t>(byte)) & 255];
    return ~crc;
}

}  // namespace tally
