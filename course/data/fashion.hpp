// FashionMNIST: small pictures of garments in ten classes; and a generated stand-in of the same form, for
// where its files are not.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tally/array/array.hpp"

namespace tally {

// Of one picture, and what is on the pictures.
inline constexpr std::int64_t fashion_pixels = 28 * 28;
inline constexpr std::array<const char*, 10> fashion_classes = {
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};

// Where tools/get-fashion-mnist puts the files, seen from the root of this repository.
inline constexpr const char* fashion_folder = "data/fashion-mnist";

// Some pictures with their labels.
template <class S> struct Pictures {
    Array<S> images;             // (count, 784), from 0, black, to 1, white
    Array<std::int32_t> labels;  // (count), places in fashion_classes
    std::int64_t count() const { return images.shape()[0]; }
};

// FashionMNIST, or what stands in for it.
template <class S> struct Fashion {
    Pictures<S> train, test;
    bool real = false;
    std::string origin;  // the same in words
};

// Whether any of FashionMNIST's four files is there, packed or not.
bool has_fashion(const std::string& folder);

// The four files as they are published, packed (.gz) or not; an Error when they don't fit together.
template <class S> Fashion<S> load_fashion(const std::string& folder);

// Drawn pictures; the one with number i depends on the seed and on i only, and has the same bits everywhere.
template <class S>
Pictures<S> generated_pictures(std::int64_t count, std::uint64_t seed, std::int64_t first = 0);

// Drawn pictures to train and to test with, which have none in common.
template <class S>
Fashion<S> generated_fashion(std::uint64_t seed, std::int64_t train = 60000, std::int64_t test = 10000);

// The real one where its files are, otherwise the generated one.
template <class S> Fashion<S> find_fashion(const std::string& folder, std::uint64_t seed) {
    return has_fashion(folder) ? load_fashion<S>(folder) : generated_fashion<S>(seed);
}

extern template Fashion<float> load_fashion(const std::string&);
extern template Fashion<double> load_fashion(const std::string&);
extern template Pictures<float> generated_pictures(std::int64_t, std::uint64_t, std::int64_t);
extern template Pictures<double> generated_pictures(std::int64_t, std::uint64_t, std::int64_t);
extern template Fashion<float> generated_fashion(std::uint64_t, std::int64_t, std::int64_t);
extern template Fashion<double> generated_fashion(std::uint64_t, std::int64_t, std::int64_t);

}  // namespace tally
