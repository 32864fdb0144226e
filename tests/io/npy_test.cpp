// Tests .npy files. tally and NumPy read each other's arrays. Every kind of invalid file throws an Error.
#include "tally/io/npy.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "folder.hpp"
#include "io/file_testing.hpp"
#include "tally/base/error.hpp"

using namespace tally;
using tally::test::Folder;
using tally::test::read_bytes;
using tally::test::write_bytes;
using namespace std::string_literals;

namespace {

// Returns the bytes of a file of version 1.0 with the header `dict`.
std::string npy(const std::string& dict, const std::string& numbers) {
    std::string file = "\x93NUMPY";
    file += {'\1', '\0', static_cast<char>(dict.size() % 256), static_cast<char>(dict.size() / 256)};
    return file + dict + numbers;
}

std::string error_of_loading(const std::string& path) {
    try {
        load_npy<float>(path);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

// Loads a file that contains `bytes`. Returns the error message without "[load_npy] '...', ".
std::string npy_error(const Folder& folder, const std::string& bytes) {
    const std::string path = folder / "bad.npy";
    write_bytes(path, bytes);
    const std::string words = error_of_loading(path), start = "[load_npy] '" + path + "', ";
    return words.rfind(start, 0) == 0 ? words.substr(start.size()) : "(no place) " + words;
}

template <class S> bool same_bits(const Array<S>& a, const Array<S>& b) {
    return a.shape() == b.shape() &&
           std::memcmp(a.span().data(), b.span().data(), a.span().size_bytes()) == 0;
}

const std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
const std::string six(24, '\0');

bool python_has_numpy() { return std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") == 0; }

}  // namespace

TEMPLATE_TEST_CASE("save_npy: arrays are loaded bit by bit", "", float, double, std::int32_t) {
    using S = TestType;
    const Folder folder;
    for (const Shape& shape :
         {Shape{}, Shape{5}, Shape{2, 3}, Shape{1, 2, 3, 1, 2, 2}, Shape{0}, Shape{3, 0, 2}}) {
        std::vector<S> values(shape.size());
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<S>(static_cast<double>(i) * 1.7 - 3);
        const Array<S> array(shape, values);
        save_npy(folder / "a.npy", array);
        const std::string bytes = read_bytes(folder / "a.npy");
        CHECK((bytes.size() - values.size() * sizeof(S)) % 64 == 0);
        const Array<S> back = load_npy<S>(folder / "a.npy");
        CHECK(back.shape() == shape);
        CHECK(back.to_vector() == values);
    }
}

TEST_CASE("save_npy: NaN, infinity and negative zero are preserved") {
    const Folder folder;
    const float inf = std::numeric_limits<float>::infinity();
    const Array<float> array({4}, {-0.0f, std::numeric_limits<float>::quiet_NaN(), inf, -inf});
    save_npy(folder / "a.npy", array);
    CHECK(same_bits(load_npy<float>(folder / "a.npy"), array));
}

TEST_CASE("save_npy: a slice of rows is saved with its own shape") {
    const Folder folder;
    const Array<float> whole({3, 2}, {1, 2, 3, 4, 5, 6});
    save_npy(folder / "rows.npy", whole.slice_rows(1, 3));
    CHECK(load_npy<float>(folder / "rows.npy").to_vector() == std::vector<float>{3, 4, 5, 6});
}

TEST_CASE("load_npy: every layout of the header that Python allows is valid") {
    const Folder folder;
    const std::string path = folder / "a.npy";
    for (const char* variant : {
             "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
             "{\"shape\":(2,3,),\"fortran_order\":False,\"descr\":\"<f4\"}        \n",
             " { 'shape' : ( 2 , 3 ) , 'descr' : '<f4' , 'fortran_order' : False } ",
         }) {
        write_bytes(path, npy(variant, six));
        CHECK(load_npy<float>(path).shape() == Shape{2, 3});
    }
    std::string two = "\x93NUMPY";  // in version 2.0 the length has four bytes
    two += {'\2', '\0', static_cast<char>(dict.size()), '\0', '\0', '\0'};
    write_bytes(path, two + dict + six);
    CHECK(load_npy<float>(path).shape() == Shape{2, 3});
    write_bytes(path, npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "\0\0\x80\x3f"s));
    CHECK(load_npy<float>(path).item() == 1.0f);
}

TEST_CASE("load_npy: an invalid file throws an Error with its name and the byte") {
    const Folder folder;
    CHECK(npy_error(folder, "") == "byte 0: truncated: a .npy file begins with at least 10 bytes");
    CHECK(npy_error(folder, "\x93NUMPY") == "byte 6: truncated: a .npy file begins with at least 10 bytes");
    CHECK(npy_error(folder, "PK\3\4 this is a zip file") ==
          "byte 0: not a .npy file: the magic word is missing");
    std::string other = npy(dict, six);
    other[6] = 9;
    CHECK(npy_error(folder, other) == "byte 6: version 9.0; save the file in version 1.0 or 2.0");
    CHECK(npy_error(folder, "\x93NUMPY\2"s + '\0' + "ab") ==
          "byte 10: truncated in the length of the header");
    CHECK(npy_error(folder, npy(dict, six).substr(0, 30)) == "byte 8: a header of 60 bytes in a file of 30");
    CHECK(npy_error(folder, npy(dict, six).substr(0, 80)) ==
          "byte 80: truncated: (2, 3) needs 24 bytes of numbers, but there are 10");
    CHECK(npy_error(folder, npy(dict, six + "xy")) == "byte 94: 2 bytes too many after (2, 3) of '<f4'");

    const auto header = [&](const std::string& text) { return npy_error(folder, npy(text, six)); };
    CHECK(header("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }") ==
          "byte 19: numbers of type '<f8', but '<f4' was requested; load the type of the file");
    CHECK_THAT(header("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }"),
               test::contains("type '>f4'"));
    CHECK_THAT(header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }"),
               test::contains("Fortran order; save"));
    CHECK_THAT(header("{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3), }"),
               test::contains("True or False expected"));
    CHECK_THAT(header("{'descr': '<f4', 'shape': (2, 3), }"), test::contains("has no"));
    CHECK_THAT(header("{'descr': '<f4', 'fortran_order': False, }"), test::contains("has no"));
    CHECK_THAT(header("{}"), test::contains("has no"));
    CHECK_THAT(header(""), test::contains("byte 10: '{' expected"));
    CHECK_THAT(header("{'descr': '<f4', 'descr': '<f4', "), test::contains("byte 27: 'descr' a second time"));
    CHECK_THAT(header("{'magic': 1}"), test::contains("unknown key 'magic'"));
    CHECK_THAT(header("{'descr"), test::contains("a quote that does not end"));
    CHECK_THAT(header("{'descr' '<f4'}"), test::contains("':' expected"));
    CHECK_THAT(header("{'descr': '<f4' 'shape': (2, 3)}"), test::contains("',' or '}' expected"));
    CHECK_THAT(header(dict + "{}"), test::contains("nothing may follow"));
    CHECK_THAT(header("{'descr': [('a', '<f4')], "), test::contains("a quoted word expected"));

    const auto shape = [&](const std::string& tuple) {
        return header("{'descr': '<f4', 'fortran_order': False, 'shape': " + tuple + ", }");
    };
    CHECK_THAT(shape("(-1, 3)"), test::contains("an extent expected"));
    CHECK_THAT(shape("(2; 3)"), test::contains("',' or ')' expected"));
    CHECK_THAT(shape("(99999999999999999999,)"), test::contains("the extent is too large"));
    CHECK_THAT(shape("(2147483648,)"), test::contains("an axis is too long: (2147483648)"));
    CHECK_THAT(shape("(1073741824, 1073741824)"),
               test::contains("too many elements: (1073741824, 1073741824)"));
    CHECK_THAT(shape("(1, 1, 1, 1, 1, 1, 6)"), test::contains("more than 6 axes"));
    CHECK_THAT(shape("(1073741824, 268435456)"),
               test::contains("truncated"));  // throws before it allocates this much memory
    CHECK_THAT(shape("(2, 3"), test::contains("expected"));
}

TEST_CASE("load_npy, save_npy: a file that cannot be read or written is named, with the reason") {
    const Folder folder;
    CHECK(error_of_loading(folder / "none.npy") ==
          "[load_npy] cannot read '" + folder / "none.npy" + "': No such file or directory");
    CHECK(error_of_loading(folder / ".") ==
          "[load_npy] cannot read '" + folder / "." + "': not a regular file");
    CHECK_THROWS_WITH(save_npy(folder / "none/a.npy", Array<float>({1}, {1})), test::contains("none/a.npy"));
    CHECK_THROWS_AS(save_npy(folder / "a.npy", Array<float>()), Error);
    CHECK_FALSE(std::filesystem::exists(folder / "a.npy"));
}

TEST_CASE("load_npy: int64 numbers are read as int32 if they fit") {
    const Folder folder;
    const auto wide = [&](std::int64_t a, std::int64_t b) {
        std::string numbers(16, '\0');
        std::memcpy(numbers.data(), &a, 8);
        std::memcpy(numbers.data() + 8, &b, 8);
        write_bytes(folder / "wide.npy",
                    npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", numbers));
        return load_npy<std::int32_t>(folder / "wide.npy").to_vector();
    };
    CHECK(wide(-2147483648, 2147483647) == std::vector<std::int32_t>{-2147483647 - 1, 2147483647});
    CHECK_THROWS_WITH(wide(1, 2147483648), test::contains("byte 75: 2147483648 does not fit into int32"));
    CHECK_THROWS_AS(wide(-2147483649, 0), Error);
    CHECK_THROWS_WITH(load_npy<float>(folder / "wide.npy"),
                      test::contains("type '<i8', but '<f4' was requested"));
}

TEST_CASE("load_npy, save_npy: NumPy reads files of tally, and tally reads files of NumPy", "[alone]") {
    if (!python_has_numpy()) TALLY_SKIP("/usr/bin/python3 has no numpy");
    const Folder folder;
    save_npy(folder / "f4.npy", Array<float>({2, 3}, {0.5f, -1.25f, 3, 4, 5, 6e30f}));
    save_npy(folder / "f8.npy", Array<double>({1}, {0.1}));
    save_npy(folder / "i4.npy", Array<std::int32_t>({3}, {-1, 0, 7}));
    save_npy(folder / "scalar.npy", Array<double>(Shape{}, {2.5}));
    save_npy(folder / "empty.npy", Array<float>({0, 4}, std::vector<float>{}));
    write_bytes(folder / "check.py", R"(
import numpy as np, sys
d = sys.argv[1] + '/'
def same(name, expected):
    found = np.load(d + name)
    assert found.dtype == expected.dtype and found.shape == expected.shape and (found == expected).all(), (name, found)
same('f4.npy', np.array([[0.5, -1.25, 3], [4, 5, 6e30]], np.float32))
same('f8.npy', np.array([0.1]))
same('i4.npy', np.array([-1, 0, 7], np.int32))
same('scalar.npy', np.array(2.5))
same('empty.npy', np.zeros((0, 4), np.float32))
np.save(d + 'n4.npy', np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8)
np.save(d + 'n8.npy', np.array(-0.1))
np.save(d + 'labels.npy', np.array([3, 1, 2]))
np.save(d + 'fortran.npy', np.asfortranarray(np.ones((2, 3), np.float32)))
with open(d + 'two.npy', 'wb') as file:
    np.lib.format.write_array(file, np.ones((1, 2), np.float32), version=(2, 0))
)");
    REQUIRE(std::system(("/usr/bin/python3 '" + folder / "check.py" + "' '" + folder / "." + "'").c_str()) ==
            0);
    const Array<float> cube = load_npy<float>(folder / "n4.npy");
    CHECK(cube.shape() == Shape{2, 3, 4});
    CHECK(cube.span()[23] == 23.0f / 8);
    CHECK(load_npy<double>(folder / "n8.npy").item() == -0.1);
    CHECK(load_npy<std::int32_t>(folder / "labels.npy").to_vector() == std::vector<std::int32_t>{3, 1, 2});
    CHECK(load_npy<float>(folder / "two.npy").to_vector() == std::vector<float>{1, 1});
    CHECK_THAT(error_of_loading(folder / "fortran.npy"), test::contains("Fortran order"));
}

TEST_CASE("load_npy: changed, missing and added bytes yield an Error or an array, never a crash") {
    const Folder folder;
    const std::string path = folder / "fuzz.npy";
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 generator(seed);
    const std::string whole = npy(dict, six);
    int rejected = 0, accepted = 0;
    const auto attempt = [&](const std::string& bytes) {
        write_bytes(path, bytes);
        try {
            const Array<float> array = load_npy<float>(path);
            REQUIRE(array.size() * sizeof(float) <= bytes.size());
            ++accepted;
        } catch (const Error& error) {
            REQUIRE(std::string(error.what()).find(path) != std::string::npos);
            ++rejected;
        }
    };
    for (std::size_t at = 0; at < 10 + dict.size(); ++at) {
        for (int bit = 0; bit < 8; ++bit) {
            std::string bytes = whole;
            bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
            attempt(bytes);
        }
        attempt(whole.substr(0, at));
    }
    for (int round = 0; round < 1000; ++round) {
        std::string bytes = whole;
        for (unsigned count = 1 + generator() % 4; count > 0; --count) {
            const std::size_t at = generator() % (10 + dict.size());
            switch (generator() % 3) {
                case 0:
                    bytes[at] = static_cast<char>(generator());
                    break;
                case 1:
                    bytes.erase(at, 1 + generator() % 5);
                    break;
                default:
                    bytes.insert(at, 1, "{}(),:'0123456789<f4"[generator() % 20]);
            }
        }
        attempt(bytes);
    }
    CHECK(rejected > 1000);
    CHECK(accepted > 0);  // some changes are harmless, such as a newline for a space
}
