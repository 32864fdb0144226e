// Declares what exercise sixteen-bits provides.
#pragma once
#include <bit>

#include "exercise.hpp"

inline namespace exercise_sixteen_bits {

// Returns the bfloat16 nearest to x, which has 8 bits of precision, as a float.
inline float bf16(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u);
}

struct Sum {  // add() keeps only these two numbers between two calls, with 16 bits each
    float sum = 0, lost = 0;
};

}  // namespace exercise_sixteen_bits

// Adds x, which is a bfloat16. After each call, the check rounds both members to bfloat16.
void add(Sum& to, float x);
HAND_IN(add);
