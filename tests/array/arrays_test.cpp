// Tests that several handles share the buffer of an array until one of the handles writes to the buffer. Also
// tests views, printing and error messages.
#include "tally/array/array.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/device/backend.hpp"

using namespace tally;
using namespace tally::test;

namespace {

std::string printed(const auto& array) {
    std::ostringstream out;
    out << array;
    return out.str();
}

}  // namespace

TEST_CASE("Array: holds its numbers in row-major order") {
    const Array<float> x({2, 3}, {1, 2, 3, 4, 5, 6});
    CHECK(x.shape() == Shape{2, 3});
    CHECK(x.size() == 6);
    CHECK(x.span()[4] == 5);
    CHECK(x.span().data() == x.data());  // span() does not copy
    CHECK(x.to_vector() == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(reinterpret_cast<std::uintptr_t>(x.data()) % 64 == 0);
    CHECK(Array<double>{7}.item() == 7);
    CHECK(Array<double>::full({}, 3).item() == 3);
    CHECK(Array<std::int32_t>::full({2}, 9).to_vector() == std::vector<std::int32_t>{9, 9});
    const Array<float> none = Array<float>::zeros({0, 4});
    CHECK(none.span().empty());
    const double plain[] = {1.5, 2.5};
    CHECK(Array<double>({2}, std::span<const double>(plain)).to_vector() == std::vector<double>{1.5, 2.5});
}

TEST_CASE("Array: copies share a buffer until one of them writes") {
    Array<float> a{1, 2, 3};
    Array<float> b = a;
    CHECK(b.data() == a.data());
    b.writable()[0] = 10;
    CHECK(b.data() != a.data());
    CHECK(a.to_vector() == std::vector<float>{1, 2, 3});
    CHECK(b.to_vector() == std::vector<float>{10, 2, 3});
    const float* home = b.data();
    b.writable()[1] = 20;  // b is the only owner, so b writes in place
    CHECK(b.data() == home);
    const Array<float> other = a.clone();
    CHECK(other.data() != a.data());
    a = b;
    CHECK(a.data() == b.data());
    Array<float>& same = a;
    a = same;
    a = std::move(same);
    CHECK(a.to_vector() == std::vector<float>{10, 20, 3});
}

TEST_CASE("Array: every write raises the version, and never changes a saved value") {
    Array<float> a{1, 2};
    CHECK(a.storage()->version == 0);
    a.writable();
    CHECK(a.storage()->version == 1);
    const detail::Saved<Array<float>> saved(&a);
    CHECK(memory::detail::saved_count(a.storage()) == 1);
    CHECK(memory::detail::ref_count(a.storage()) == 2);
    const detail::Saved<Array<float>> once_more(&a);
    CHECK(memory::detail::saved_count(a.storage()) == 2);
    CHECK(memory::detail::ref_count(a.storage()) == 3);
    CHECK(saved.get("op").data() == a.data());
    memory::detail::Storage* shared = a.storage();
    {
        Array<float> copy = a;
        copy.writable();  // writes to a new buffer, so the original is unchanged
        CHECK(copy.storage() != shared);
        CHECK(shared->version == 1);
        CHECK_NOTHROW(saved.get("op"));
    }
    Array<float> apart = a;
    apart = Array<float>();
    a.writable()[0] = 5;  // the saved value is a second owner of the buffer
    CHECK(a.storage() != shared);
    CHECK(a.storage()->version == 2);
    CHECK(saved.get("op").to_vector() == std::vector<float>{1, 2});
    a = saved.get("op");
    detail::before_in_place_update(a);  // copies the shared buffer, and raises the saved version
    CHECK(a.storage() != shared);
    CHECK(a.storage()->version == 1);
    CHECK_THROWS_WITH(
        saved.get("op"),
        contains("[backward] 'op' saved version 1 of an array of (2), which is now at version 2"));
}

TEST_CASE("Array: a copied parameter stays a parameter in the memory account") {
    Array<float> a({16}, std::vector<float>(16, 1));
    detail::account_as(a, MemoryClass::parameter);
    const std::size_t before = in_use(MemoryClass::parameter);
    const Array<float> copy = a;
    a.writable();
    CHECK(in_use(MemoryClass::parameter) == before + 64);
    CHECK(memory::detail::memory_class(a.storage()) == MemoryClass::parameter);
}

TEST_CASE("Array: a moved-from array has its shape and no memory") {
    Array<float> small{1}, big = Array<float>::full({1000}, 2.f);
    const std::size_t before = memory::in_use();
    small = std::move(big);
    CHECK(small.shape() == Shape{1000});
    CHECK(small.to_vector() == std::vector<float>(1000, 2.f));
    CHECK(big.storage() == nullptr);  // NOLINT: the test reads a moved-from array
    CHECK_THROWS_WITH(big.span(), contains("[span] an array has no memory"));
    CHECK_THROWS_WITH(big.to(Device::cuda), contains("[to] an array has no memory"));
    CHECK(memory::in_use() == before - 64);  // the old buffer is freed
    big = small;
    CHECK(big.span().size() == 1000);
}

TEST_CASE("Array: reshaped() and slice_rows() share the buffer") {
    const Array<float> x({3, 2}, {1, 2, 3, 4, 5, 6});
    const Array<float> vector = x.reshaped({6});
    CHECK(vector.data() == x.data());
    CHECK(vector.to_vector() == x.to_vector());
    const Array<float> rows = x.slice_rows(1, 3);
    CHECK(rows.data() == x.data() + 2);
    CHECK(rows.shape() == Shape{2, 2});
    CHECK(rows.to_vector() == std::vector<float>{3, 4, 5, 6});
    CHECK(rows.slice_rows(1, 2).to_vector() == std::vector<float>{5, 6});
    CHECK(rows.clone().to_vector() == rows.to_vector());
    CHECK(x.slice_rows(3, 3).shape() == Shape{0, 2});
    Array<float> written = x.slice_rows(2, 3);
    written.writable()[0] = 50;
    CHECK(x.to_vector() == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(written.to_vector() == std::vector<float>{50, 6});
}

TEST_CASE("to_string: aligns vectors, nests matrices and shortens long axes") {
    CHECK(printed(Array<float>{-0.35360f, 0.02067f, -0.6125f}) == "[-0.3536  0.0207 -0.6125]");
    CHECK(printed(Array<double>({2, 2}, {1, -2, 10, 4})) == "[[ 1.0000 -2.0000]\n [10.0000  4.0000]]");
    CHECK(printed(Array<double>({1, 2, 1}, {1, 2})) == "[[[1.0000]\n  [2.0000]]]");
    CHECK(printed(Array<float>::full({}, 2.5f)) == "2.5000");
    CHECK(printed(Array<std::int32_t>{1, -10}) == "[  1 -10]");
    CHECK(printed(Array<float>::zeros({0})) == "[]");
    CHECK(printed(Array<float>()) == "[no memory]");
    CHECK(printed(Array<Dual<double>>({1}, {Dual<double>(1, 2)})) == "[1.0000+2.0000e]");
    CHECK(to_string(Array<double>{1.0 / 3}, 2) == "[0.33]");
    std::vector<std::int32_t> long_one;
    for (std::int32_t i = 0; i < 13; ++i) long_one.push_back(i);
    CHECK(
        printed(Array<std::int32_t>({12}, std::vector<std::int32_t>(long_one.begin(), long_one.end() - 1))) ==
        "[ 0  1  2  3  4  5  6  7  8  9 10 11]");
    CHECK(printed(Array<std::int32_t>({13}, long_one)) == "[ 0  1  2  3 ...  9 10 11 12]");
}

TEST_CASE("to_string: prints every digit of large numbers") {
    CHECK(printed(Array<double>{1e300}) == "[1.0000e+300]");
    CHECK(printed(Array<double>{-1e300, 1}) == "[-1.0000e+300       1.0000]");
    CHECK(printed(Array<float>{std::numeric_limits<float>::max()}) == "[3.4028e+38]");
    CHECK(printed(Array<Dual<double>>({1}, {Dual<double>(1e300, 2)})) == "[1.0000e+300+2.0000e]");
    CHECK(printed(Array<double>{1e16}) == "[1.0000e+16]");
    CHECK(printed(Array<double>{9999999999999998}) == "[9999999999999998.0000]");
    CHECK(printed(Array<double>{std::numeric_limits<double>::infinity()}) == "[inf]");
    CHECK(to_string(Array<double>{0.5}, 70) == "[0.5" + std::string(69, '0') + "]");
    CHECK(to_string(Array<double>{1.5e300}, 1) == "[1.5e+300]");
    CHECK(to_string(Array<double>{0.5}, -1) == "[0.500000]");
    CHECK(to_string(Array<double>{2.5}, 0) == "[2]");
}

TEST_CASE("to_string: prints ordinary numbers as printf does") {
    Random random(3);
    for (int i = 0; i < 2000; ++i) {
        const double x = random.between(-1, 1) * std::pow(10.0, static_cast<double>(random.whole(-12, 15)));
        const int digits = static_cast<int>(random.whole(0, 12));
        char text[64];
        std::snprintf(text, sizeof text, "[%.*f]", digits, x);
        if (std::string(text).find_first_of("123456789") == std::string::npos)  // shown as 0
            std::snprintf(text, sizeof text, "[%.*e]", digits, x);
        CHECK(to_string(Array<double>{x}, digits) == text);
    }
    CHECK(to_string(Array<double>{1e-6, 0}) == "[1.0000e-06     0.0000]");
    for (const double x : {0.0, -0.0, std::nan(""), -std::nan("")}) {
        char text[64];
        std::snprintf(text, sizeof text, "[%.4f]", x);
        CHECK(printed(Array<double>{x}) == text);
    }
}

TEST_CASE("to_string: columns are as wide as the shown numbers need") {
    std::vector<std::int32_t> numbers(13, 1);
    numbers[6] = 1000000;
    CHECK(printed(Array<std::int32_t>({13}, numbers)) == "[1 1 1 1 ... 1 1 1 1]");
    numbers[3] = -10;
    CHECK(printed(Array<std::int32_t>({13}, numbers)) == "[  1   1   1 -10 ...   1   1   1   1]");
}

TEST_CASE("Array: throws Error when an argument is invalid") {
    CHECK_THROWS_WITH(Array<float>({2, 3}, {1, 2, 3}),
                      "[array] 3 values were given for the shape (2, 3), which has 6 elements");
    CHECK_THROWS_WITH((Array<float>{1, 2}.item()), "[item] requires exactly one element; the array is (2)");
    Array<float> nothing;
    CHECK_THROWS_WITH(nothing.span(),
                      "[span] an array has no memory: nothing was assigned to it, or it was moved away");
    CHECK_THROWS_WITH(Array<float>().item(),
                      "[item] an array has no memory: nothing was assigned to it, or it was moved away");
    CHECK_THROWS_WITH(Array<float>().to_vector(), contains("[to_vector] an array has no memory"));
    CHECK_THROWS_WITH(nothing.writable(), contains("[writable] an array has no memory"));
    CHECK_THROWS_WITH((Array<float>{1, 2}.reshaped({3})), "[reshape] (2) has 2 elements, but (3) has 3");
    CHECK_THROWS_WITH((Array<float>{1, 2}.slice_rows(1, 3)), "[slice] rows 1 to 3 are not within (2)");
    CHECK_THROWS_WITH((Array<float>{1, 2}.slice_rows(-1, 1)), "[slice] rows -1 to 1 are not within (2)");
    CHECK_THROWS_WITH((Array<float>{1, 2}.slice_rows(2, 1)), "[slice] rows 2 to 1 are not within (2)");
    CHECK_THROWS_WITH(Array<float>::zeros({}).slice_rows(0, 0), "[slice] a single number has no rows");
    for (const Device device : {Device::cpu, Device::cuda})
        CHECK_THROWS_WITH(Array<float>().to(device), contains("[to] an array has no memory"));
    if (!available(Device::cuda)) {
        CHECK_THROWS_WITH((Array<float>{1}.to(Device::cuda)), "[to] " + backend::unavailable_reason());
        CHECK_THROWS_AS(Array<float>::zeros({2}, Device::cuda), Error);
    }
    CHECK(Array<float>{1, 2}.to(Device::cpu).to_vector() == std::vector<float>{1, 2});
}
