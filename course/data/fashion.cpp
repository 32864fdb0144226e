// Reads the four files of FashionMNIST, or generates pictures in the same format.
#include "course/data/fashion.hpp"

#include <filesystem>
#include <vector>

#include "course/data/garments.hpp"
#include "tally/base/error.hpp"
#include "tally/io/idx.hpp"

namespace tally {
namespace {

constexpr const char* train_images = "train-images-idx3-ubyte";
constexpr const char* train_labels = "train-labels-idx1-ubyte";
constexpr const char* test_images = "t10k-images-idx3-ubyte";
constexpr const char* test_labels = "t10k-labels-idx1-ubyte";
constexpr std::int64_t first_of_test = std::int64_t{1} << 32;  // exceeds the index of any training picture

// Returns the path of the file or of its packed version. Returns an empty string if both files are missing.
std::string find(const std::string& folder, const std::string& name) {
    const auto path = std::filesystem::path(folder) / name;
    for (const std::string& each : {path.string(), path.string() + ".gz"})
        if (std::error_code failed; std::filesystem::exists(each, failed)) return each;
    return "";
}

std::string found(const std::string& folder, const std::string& name) {
    const std::string path = find(folder, name);
    if (path.empty())
        throw Error("[load_fashion] neither '" + name + "' nor '" + name + ".gz' is in '" + folder +
                    "'; download all four files with tools/get-fashion-mnist");
    return path;
}

template <class S> Array<S> zero_to_one(const std::vector<std::uint8_t>& pixels) {
    std::array<S, 256> scaled{};
    for (std::size_t level = 0; level < scaled.size(); ++level)
        scaled[level] = static_cast<S>(level) / static_cast<S>(255);
    const std::int64_t count = static_cast<std::int64_t>(pixels.size()) / fashion_pixels;
    Array<S> images = Array<S>::empty({count, fashion_pixels});
    for (std::size_t i = 0; i < pixels.size(); ++i) images.raw()[i] = scaled[pixels[i]];
    return images;
}

template <class S> Pictures<S> load_pictures(const std::string& images_path, const std::string& labels_path) {
    const Idx images = Idx::load(images_path), labels = Idx::load(labels_path);
    const auto side = static_cast<std::int64_t>(garments::picture_side);
    if (images.shape.rank() != 3 || images.shape[1] != side || images.shape[2] != side)
        throw Error("[load_fashion] '" + images_path + "' contains an array of shape " +
                    to_string(images.shape) + ", but pictures must have 28 x 28 pixels");
    if (labels.shape.rank() != 1 || labels.shape[0] != images.shape[0])
        throw Error("[load_fashion] '" + labels_path + "' contains " + to_string(labels.shape) +
                    " labels for " + std::to_string(images.shape[0]) + " pictures");
    for (std::size_t i = 0; i < labels.values.size(); ++i)
        if (labels.values[i] >= fashion_classes.size())
            throw Error("[load_fashion] '" + labels_path + "', label " + std::to_string(i) + " (byte " +
                        std::to_string(8 + i) + "): " + std::to_string(labels.values[i]) +
                        "; the classes are 0 to 9");
    return {zero_to_one<S>(images.values),
            Array<std::int32_t>(labels.shape,
                                std::vector<std::int32_t>(labels.values.begin(), labels.values.end()))};
}

template <class S> std::string sizes(const Fashion<S>& fashion) {
    return std::to_string(fashion.train.count()) + " pictures to train and " +
           std::to_string(fashion.test.count()) + " to test with";
}

}  // namespace

bool has_fashion(const std::string& folder) {
    for (const char* name : {train_images, train_labels, test_images, test_labels})
        if (!find(folder, name).empty()) return true;
    return false;
}

template <class S> Fashion<S> load_fashion(const std::string& folder) {
    const std::string paths[] = {found(folder, train_images), found(folder, train_labels),
                                 found(folder, test_images), found(folder, test_labels)};
    Fashion<S> fashion{load_pictures<S>(paths[0], paths[1]), load_pictures<S>(paths[2], paths[3]), true, ""};
    fashion.origin = "FashionMNIST by Zalando Research, from '" + folder + "': " + sizes(fashion);
    return fashion;
}

template <class S>
Pictures<S> generated_pictures(std::int64_t count, std::uint64_t seed, std::int64_t first) {
    if (count < 0 || first < 0)
        throw Error("[generated_pictures] the count " + std::to_string(count) + " and the first index " +
                    std::to_string(first) + " must be at least 0");
    constexpr std::size_t size = garments::picture_side * garments::picture_side;
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count) * size);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const std::uint64_t index = static_cast<std::uint64_t>(first) + i;
        labels[i] = garments::class_of(seed, index);
        garments::draw(std::span(pixels).subspan(i * size).template first<size>(), seed, index);
    }
    return {zero_to_one<S>(pixels), Array<std::int32_t>({count}, labels)};
}

template <class S> Fashion<S> generated_fashion(std::uint64_t seed, std::int64_t train, std::int64_t test) {
    Fashion<S> fashion{generated_pictures<S>(train, seed), generated_pictures<S>(test, seed, first_of_test),
                       false, ""};
    fashion.origin =
        "a generated stand-in for FashionMNIST (seed " + std::to_string(seed) + "): " + sizes(fashion);
    return fashion;
}

template Fashion<float> load_fashion(const std::string&);
template Fashion<double> load_fashion(const std::string&);
template Pictures<float> generated_pictures(std::int64_t, std::uint64_t, std::int64_t);
template Pictures<double> generated_pictures(std::int64_t, std::uint64_t, std::int64_t);
template Fashion<float> generated_fashion(std::uint64_t, std::int64_t, std::int64_t);
template Fashion<double> generated_fashion(std::uint64_t, std::int64_t, std::int64_t);

}  // namespace tally
