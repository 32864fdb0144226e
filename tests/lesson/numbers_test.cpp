// Tests the conversion of values to the class Numbers, and how Numbers are printed.
#include "course/kit/numbers.hpp"

#include <cmath>
#include <limits>
#include <optional>

#include "catch.hpp"
#include "course/kit/lesson.hpp"

using namespace tally::lesson;

namespace {

struct Matrix {  // satisfies ArrayLike
    std::vector<std::int64_t> extents;
    std::vector<float> numbers;
    const std::vector<std::int64_t>& shape() const { return extents; }
    const std::vector<float>& to_vector() const { return numbers; }
};

struct Variable {  // satisfies HasValue
    Matrix held;
    std::optional<Matrix> gradient;
    const Matrix& value() const { return held; }
    bool has_grad() const { return gradient.has_value(); }
    const Matrix& grad() const { return gradient.value(); }
};

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("Numbers: converts numbers, ranges, arrays and variables") {
    CHECK(Numbers(2.5).values == std::vector<double>{2.5});
    CHECK(Numbers(2.5).shape.empty());
    CHECK(Numbers(2.5).type == Numbers::Type::float64);
    CHECK(Numbers(2.5F).type == Numbers::Type::float32);
    CHECK(Numbers(7).type == Numbers::Type::integer);
    CHECK(Numbers(std::vector<float>{1, 2}).shape == std::vector<std::int64_t>{2});
    CHECK(Numbers({1.0, 2.0, 3.0}).values.size() == 3);

    const Variable x{{{2, 3}, {1, 2, 3, 4, 5, 6}}, {}};
    CHECK(Numbers(x).shape == std::vector<std::int64_t>{2, 3});
    CHECK(Numbers(x).type == Numbers::Type::float32);
    CHECK(Numbers(x.held).values[5] == 6);
}

TEST_CASE("Numbers: keeps the exact value of a float") {
    CHECK(Numbers(0.1F).values[0] == 0.10000000149011612);
}

TEST_CASE("gradient: a missing gradient is printed as a dash") {
    Variable x{{{1}, {1}}, {}};
    CHECK(lines_of(gradient(x), 4) == Strings{"-"});
    CHECK(row_text(gradient(x), 4) == "-");
    x.gradient = Matrix{{1}, {0}};
    CHECK(lines_of(gradient(x), 4) == Strings{"[ 0.0000]"});
}

TEST_CASE("lines_of: a vector is one line with four digits") {
    CHECK(lines_of(std::vector<double>{-0.3536, 0.02066, -0.6125}, 4) ==
          Strings{"[-0.3536  0.0207 -0.6125]"});
    CHECK(lines_of(std::vector<float>{0.1875F, 0.3125F, -0.625F}, 4) == Strings{"[ 0.1875  0.3125 -0.6250]"});
    CHECK(lines_of(std::vector<double>{-12.5, 1}, 2) == Strings{"[-12.50   1.00]"});
}

TEST_CASE("lines_of: a matrix has a line for each row") {
    const Matrix m{{2, 2}, {1, -2, 3, 4}};
    CHECK(lines_of(m, 1) == Strings{"[ 1.0 -2.0]", "[ 3.0  4.0]"});
}

TEST_CASE("lines_of: all numbers are scientific when four digits would hide the largest") {
    CHECK(lines_of(2.4e-7, 1) == Strings{"2.4e-07"});
    CHECK(lines_of(std::vector<double>{1e-9, -2e-5}, 1) == Strings{"[ 1.0e-09 -2.0e-05]"});
    CHECK(lines_of(std::vector<double>{1e-9, 1}, 1) == Strings{"[ 0.0  1.0]"});
    CHECK(lines_of(3e7, 2) == Strings{"3.00e+07"});
    CHECK(lines_of(0.0, 4) == Strings{" 0.0000"});
}

TEST_CASE("lines_of: integers have no point, and NaN and infinities are words") {
    CHECK(lines_of(3750, 4) == Strings{"3750"});
    CHECK(lines_of(std::vector<int>{3, -12}, 4) == Strings{"[  3 -12]"});
    CHECK(lines_of(std::nan(""), 4) == Strings{"    nan"});
    CHECK(lines_of(-std::nan(""), 4) == Strings{"    nan"});
    CHECK(lines_of(-std::numeric_limits<double>::infinity(), 4) == Strings{"   -inf"});
}

TEST_CASE("lines_of: long rows and columns show both ends") {
    std::vector<int> many(100);
    for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int>(i);
    CHECK(lines_of(many, 4) == Strings{"[ 0  1  2 ... 97 98 99]"});
    const Matrix tall{{20, 1}, std::vector<float>(20, 1)};
    CHECK(lines_of(tall, 1).size() == 7);
    CHECK(lines_of(tall, 1)[3] == "...");
}

TEST_CASE("lines_of: an empty array is a pair of brackets") {
    CHECK(lines_of(std::vector<double>{}, 4) == Strings{"[]"});
    CHECK(lines_of(Matrix{{3, 0}, {}}, 4) == Strings{"[]"});
    CHECK(lines_of(Matrix{{0, 3}, {}}, 4) == Strings{"[]"});
}

TEST_CASE("Cell: holds words, yes or no, or numbers") {
    CHECK(Cell("0-1").words == "0-1");
    CHECK(Cell(true).words == "yes");
    CHECK_FALSE(Cell(2).is_words);
    CHECK(Cell(std::vector<float>{1}).numbers.type == Numbers::Type::float32);
}

TEST_CASE("short_text: has two digits") {
    CHECK(short_text(2.41e-7) == "2.4e-07");
    CHECK(short_text(0) == "0");
    CHECK(short_text(std::nan("")) == "nan");
    CHECK(short_text(std::numeric_limits<double>::infinity()) == "inf");
}
