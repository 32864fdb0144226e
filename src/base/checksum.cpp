// Computes a checksum in four vector registers, as fast as the processor can read the memory.
#include "tally/base/checksum.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace tally::detail {

namespace {

using Word [[gnu::vector_size(64)]] = std::uint32_t;  // the widest vector register
constexpr std::size_t words = 4;

inline void mix_in(Word& sum, const unsigned char* place) {
    Word word;
    std::memcpy(&word, place, sizeof word);
    const Word mixed = (sum ^ word) * 0x9E3779B1u;  // the product moves bits upwards, the shift downwards
    sum = mixed ^ (mixed >> 15);
}

}  // namespace

std::uint64_t checksum_of(const void* data, std::size_t bytes) {
    const auto* place = static_cast<const unsigned char*>(data);
    constexpr std::size_t line = sizeof(Word) * words;
    Word a{}, b{}, c{}, d{};
    std::size_t left = bytes;
    const auto round = [&](const unsigned char* from) {
        mix_in(a, from);
        mix_in(b, from + sizeof(Word));
        mix_in(c, from + 2 * sizeof(Word));
        mix_in(d, from + 3 * sizeof(Word));
    };
    for (; left >= line; left -= line, place += line) round(place);
    std::array<unsigned char, line> tail{};
    if (left > 0) std::memcpy(tail.data(), place, left);
    round(tail.data());
    std::uint64_t all = bytes;
    for (const Word& sum : {a, b, c, d})
        for (std::size_t lane = 0; lane < sizeof(Word) / 4; ++lane)
            all = (all ^ (all >> 29) ^ sum[lane]) * 0x9E3779B97F4A7C15u;
    return all ^ (all >> 32);
}

std::uint64_t sampled_checksum_of(const void* data, std::size_t bytes, unsigned sample) {
    constexpr std::size_t block = 32768;
    if (bytes <= 8 * block) return checksum_of(data, bytes);
    std::uint64_t sum = bytes;
    for (std::size_t from = sample % 8 * block; from < bytes; from += 8 * block)
        sum = (sum ^ checksum_of(static_cast<const char*>(data) + from, std::min(block, bytes - from))) *
              0x9E3779B97F4A7C15u;
    return sum ^ (sum >> 32);
}

}  // namespace tally::detail
