// Loads the images of lesson 22, and compares the weights of two networks.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "course/data/fashion.hpp"
#include "course/kit/window_gradient.hpp"

namespace {
using tally::lesson::furthest;

constexpr std::int64_t all_images = 60000;

// Returns FashionMNIST if its four files are present, and generated images otherwise. The environment variable
// TALLY_IMAGES reduces the number of training images, for tests.
inline tally::Fashion<real> images() {
    const char* wanted = std::getenv("TALLY_IMAGES");
    const std::int64_t train = wanted ? std::atoll(wanted) : all_images, test = train / 6;
    if (train < 384 || train > all_images || train % 64 == 0)
        throw tally::Error(
            "[fashion] TALLY_IMAGES must be from 384 to 60000, and not a multiple of 64; it is '" +
            std::string(wanted) + "'");
    const auto root = std::filesystem::path(__FILE__).parent_path().parent_path();
    const auto here = root / tally::fashion_folder;
    const std::string folder = std::filesystem::exists(here) ? here.string() : tally::fashion_folder;
    const std::uint64_t seed = tally::lesson::options().seed;
    tally::Fashion<real> found = tally::has_fashion(folder)
                                     ? tally::load_fashion<real>(folder)
                                     : tally::generated_fashion<real>(seed, train, test);
    const auto some = [](tally::Pictures<real>& from, std::int64_t count) {
        const tally::Items first(0, count);
        from.images = rows(from.images, first).to(tally::lesson::options().device);
        from.labels = rows(from.labels, first).to(tally::lesson::options().device);
    };
    some(found.train, train);
    some(found.test, test);
    return found;
}

// Returns text in the format of printf().
inline std::string text(const char* format, auto... numbers) {
    char line[80];
    std::snprintf(line, sizeof line, format, numbers...);
    return line;
}

using Weights = std::vector<std::vector<real>>;

// Returns the largest distance of a weight in `a` from the same weight in `b`.
inline double distance(const Weights& a, const Weights& b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, furthest(a[i], b[i]));
    return largest;
}
}  // namespace
