// Tests load_fashion() and generated_fashion(). A pair of files that do not match throws an Error. A
// generated picture depends only on the seed and on its index.
#include "course/data/fashion.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "folder.hpp"
#include "io/bytes.hpp"
#include "tally/base/error.hpp"

using namespace tally;
using namespace tally::test;

namespace {

constexpr const char* names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                 "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

std::string images_file(std::uint32_t count, std::uint32_t height = 28, std::uint32_t width = 28) {
    std::string file = idx_header({count, height, width});
    for (std::uint32_t i = 0; i < count * height * width; ++i) file += static_cast<char>(i % 256);
    return file;
}
std::string labels_file(const std::string& labels) {
    return idx_header({static_cast<std::uint32_t>(labels.size())}) + labels;
}

// Writes a data set of three training pictures and two test pictures.
void write_all(const Folder& folder) {
    write_bytes(folder / names[0], images_file(3));
    write_bytes(folder / names[1], labels_file("\3\1\11"));
    write_bytes(folder / names[2] + ".gz", gzipped(images_file(2)));
    write_bytes(folder / names[3] + ".gz", gzipped(labels_file("\4\5")));
}

template <class S> bool same(const Pictures<S>& a, const Pictures<S>& b) {
    return a.images.to_vector() == b.images.to_vector() && a.labels.to_vector() == b.labels.to_vector();
}

template <class S> Pictures<S> part(const Pictures<S>& pictures, std::int64_t from, std::int64_t to) {
    return {pictures.images.slice_rows(from, to), pictures.labels.slice_rows(from, to)};
}

// Assigns each picture to the class whose mean picture is closest.
class NearestMean {
public:
    explicit NearestMean(const Pictures<double>& pictures) {
        std::array<double, 10> counts{};
        for (std::int64_t i = 0; i < pictures.count(); ++i) {
            const auto label = static_cast<std::size_t>(pictures.labels.span()[static_cast<std::size_t>(i)]);
            ++counts[label];
            for (std::size_t p = 0; p < size; ++p)
                means_[label][p] += pictures.images.span()[static_cast<std::size_t>(i) * size + p];
        }
        for (std::size_t label = 0; label < 10; ++label)
            for (double& each : means_[label]) each /= counts[label];
    }
    std::size_t operator()(const double* picture) const {
        std::array<double, 10> distances{};
        for (std::size_t label = 0; label < 10; ++label)
            for (std::size_t p = 0; p < size; ++p)
                distances[label] += (means_[label][p] - picture[p]) * (means_[label][p] - picture[p]);
        return static_cast<std::size_t>(std::min_element(distances.begin(), distances.end()) -
                                        distances.begin());
    }

private:
    static constexpr auto size = static_cast<std::size_t>(fashion_pixels);
    std::array<std::array<double, size>, 10> means_{};
};

}  // namespace

TEMPLATE_TEST_CASE("load_fashion: pictures have values from 0 to 1 and labels", "", float, double) {
    using S = TestType;
    const Folder folder;
    write_all(folder);
    const Fashion<S> fashion = load_fashion<S>(folder / ".");
    CHECK(fashion.real);
    CHECK(fashion.train.count() == 3);
    CHECK(fashion.train.images.shape() == Shape{3, 784});
    CHECK(fashion.test.images.shape() == Shape{2, 784});
    CHECK(fashion.train.labels.to_vector() == std::vector<std::int32_t>{3, 1, 9});
    CHECK(fashion.test.labels.to_vector() == std::vector<std::int32_t>{4, 5});
    const auto pixels = fashion.train.images.span();
    for (std::size_t i = 0; i < pixels.size(); ++i)
        // PyTorch's ToTensor() also divides each byte by 255.
        REQUIRE(pixels[i] == static_cast<S>(static_cast<int>(i % 256)) / S(255));
    CHECK(fashion.origin == "FashionMNIST by Zalando Research, from '" + folder / "." +
                                "': 3 pictures to train and 2 to test with");
}

TEST_CASE("load_fashion: files that do not match throw an Error that names the file") {
    const Folder folder;
    const auto loading = [&] { return load_fashion<float>(folder / "."); };
    const auto with = [&](int which, const std::string& bytes) {
        write_all(folder);
        write_bytes(folder / names[which], bytes);
    };
    with(0, images_file(3, 27, 28));
    CHECK_THROWS_WITH(loading(),
                      contains(std::string(names[0]) + "' contains an array of shape (3, 27, 28), but"));
    with(0, images_file(3, 28, 27));
    CHECK_THROWS_WITH(loading(),
                      contains(std::string(names[0]) + "' contains an array of shape (3, 28, 27), but"));
    with(0, labels_file("\1\2\3"));
    CHECK_THROWS_WITH(loading(), contains(std::string(names[0]) + "' contains an array of shape (3), but"));
    with(1, labels_file("\1\2"));
    CHECK_THROWS_WITH(loading(), contains(std::string(names[1]) + "' contains (2) labels for 3 pictures"));
    with(1, labels_file("\1\2\3\4"));
    CHECK_THROWS_WITH(loading(), contains(std::string(names[1]) + "' contains (4) labels for 3 pictures"));
    with(1, images_file(3));
    CHECK_THROWS_WITH(loading(), contains("contains (3, 28, 28) labels for 3 pictures"));
    with(1, labels_file("\1\12\3"));
    CHECK_THROWS_WITH(loading(), contains("label 1 (byte 9): 10; the classes are 0 to 9"));
    with(0, images_file(3).substr(0, 1000));
    CHECK_THROWS_WITH(loading(), contains("byte 1000: truncated"));
}

TEST_CASE("find_fashion: real pictures are loaded if any file exists, and a missing file is named") {
    const Folder folder;
    CHECK_FALSE(has_fashion(folder / "."));
    CHECK_FALSE(has_fashion(folder / "none"));
    CHECK_THROWS_WITH(load_fashion<float>(folder / "."), contains("neither 'train-images-idx3-ubyte' nor "
                                                                  "'train-images-idx3-ubyte.gz' is in '"));
    write_all(folder);
    CHECK(find_fashion<float>(folder / ".", 1).real);
    std::filesystem::remove(folder / names[3] + ".gz");
    CHECK(has_fashion(folder / "."));
    CHECK_THROWS_WITH(find_fashion<float>(folder / ".", 1), contains(names[3]));
    for (int i : {0, 1}) std::filesystem::remove(folder / names[i]);
    CHECK(has_fashion(folder / "."));
}

TEST_CASE("generated_pictures: a picture depends only on the seed and its number") {
    const Pictures<float> all = generated_pictures<float>(60, 5);
    CHECK(same(generated_pictures<float>(60, 5), all));
    CHECK(same(generated_pictures<float>(20, 5, 30), part(all, 30, 50)));
    CHECK_FALSE(same(generated_pictures<float>(60, 6), all));
    const Fashion<float> fashion = generated_fashion<float>(5, 60, 40);
    CHECK(same(fashion.train, all));
    CHECK(fashion.test.count() == 40);
    std::set<std::vector<float>> different;
    for (const Pictures<float>& some : {fashion.train, fashion.test})
        for (std::int64_t i = 0; i < some.count(); ++i)
            different.insert(some.images.slice_rows(i, i + 1).to_vector());
    CHECK(different.size() == 100);
    CHECK_THROWS_WITH(generated_pictures<float>(-1, 5), contains("must be at least 0"));
    CHECK_THROWS_WITH(generated_pictures<float>(1, 5, -1), contains("must be at least 0"));
}

TEST_CASE("generated_fashion: the origin says that the pictures are generated") {
    const Fashion<double> fashion = generated_fashion<double>(9, 3000, 10);
    CHECK_FALSE(fashion.real);
    CHECK(fashion.origin ==
          "a generated stand-in for FashionMNIST (seed 9): 3000 pictures to train and 10 to test with");
    CHECK(fashion.train.images.shape() == Shape{3000, 784});
    std::array<int, 10> counts{};
    for (const std::int32_t label : fashion.train.labels.span()) ++counts.at(static_cast<std::size_t>(label));
    // Each count may deviate from 300 by five standard deviations of 16.5.
    for (const int count : counts) CHECK(std::abs(count - 300) < 5 * 16.5);
    std::set<double> levels;
    for (const double pixel : fashion.train.images.span()) levels.insert(pixel);
    CHECK(levels.size() == 256);
    CHECK((*levels.begin() == 0 && *levels.rbegin() == 1));
    for (const double level : levels) CHECK(level == std::round(level * 255) / 255);
    const Pictures<float> in_float = generated_pictures<float>(3000, 9);
    for (std::size_t i = 0; i < in_float.images.size(); ++i)
        REQUIRE(std::round(in_float.images.span()[i] * 255) ==
                std::round(fashion.train.images.span()[i] * 255));
}

TEST_CASE("generated_pictures: every compiler yields the same bits") {
    const Pictures<double> pictures = generated_pictures<double>(500, 1);
    std::vector<Bytef> levels;
    for (const double pixel : pictures.images.span())
        levels.push_back(static_cast<Bytef>(std::lround(pixel * 255)));
    // This checksum was recorded with g++ 12 and clang 14, with and without optimisation. Update the checksum
    // if you change the generator.
    CHECK(crc32(0, levels.data(), static_cast<uInt>(levels.size())) == 0x0d614d62);
}

TEST_CASE("generated_fashion: classes can be distinguished, and similar classes are confused") {
    const Fashion<double> fashion = generated_fashion<double>(4, 3000, 1000);
    const NearestMean nearest(fashion.train);
    const std::set<std::size_t> tops{0, 2, 3, 4, 6};  // t-shirt, pullover, dress, coat and shirt
    int right = 0, among_tops = 0, elsewhere = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
        const auto shown = static_cast<std::size_t>(fashion.test.labels.span()[i]);
        const std::size_t guess = nearest(fashion.test.images.data() + i * 784);
        if (guess == shown)
            ++right;
        else
            ++(tops.count(shown) && tops.count(guess) ? among_tops : elsewhere);
    }
    INFO(right << " of 1000 right, " << among_tops << " tops confused with each other, " << elsewhere
               << " others");
    CHECK(right > 500);
    CHECK(right < 900);
    CHECK(among_tops > elsewhere);
}
