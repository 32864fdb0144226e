// Loads FashionMNIST, a data set of small pictures of garments, or generates similar pictures.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tally/array/array.hpp"

namespace tally {

// A picture has 28 x 28 pixels and belongs to one of ten classes.
inline constexpr std::int64_t fashion_pixels = 28 * 28;
inline constexpr std::array<const char*, 10> fashion_classes = {
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};

// tools/get-fashion-mnist saves the files in this folder. The path is relative to the root of the repository.
inline constexpr const char* fashion_folder = "data/fashion-mnist";

template <class S> struct Pictures {
    Array<S> images;             // (count, 784), from 0 (black) to 1 (white)
    Array<std::int32_t> labels;  // (count), indices into fashion_classes
    std::int64_t count() const { return images.shape()[0]; }
};

template <class S> struct Fashion {
    Pictures<S> train, test;
    bool real = false;
    std::string origin;  // describes where the pictures come from and how many there are
};

// Returns true if the folder contains any of the four files of FashionMNIST, packed (.gz) or not.
bool has_fashion(const std::string& folder);

// Loads the four files, packed (.gz) or not. Throws Error if a file is missing or if the files do not match.
template <class S> Fashion<S> load_fashion(const std::string& folder);

// Generates pictures. Picture i depends only on i and the seed, and has the same bits on all machines.
template <class S>
Pictures<S> generated_pictures(std::int64_t count, std::uint64_t seed, std::int64_t first = 0);

// Generates pictures for training and for testing. The two sets have no picture in common.
template <class S>
Fashion<S> generated_fashion(std::uint64_t seed, std::int64_t train = 60000, std::int64_t test = 10000);

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
