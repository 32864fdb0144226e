// The class Numbers stores any value that a lesson shows. This file includes no header of the library.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <string>
#include <type_traits>
#include <vector>

namespace tally::lesson {

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;

template <class T>
concept ArrayLike = requires(const T& a) {
    { *a.shape().begin() } -> std::convertible_to<std::int64_t>;
    { a.to_vector()[0] } -> std::convertible_to<double>;
};

template <class T>
concept HasValue = !ArrayLike<T> && requires(const T& v) {
    v.value();
};

template <class T>
concept NumberRange = !ArrayLike<T> && !HasValue<T> && std::ranges::input_range<T> &&
                      Number<std::remove_cvref_t<std::ranges::range_reference_t<T>>>;

struct Numbers {
    enum class Type : std::uint8_t { float32, float64, integer };

    std::vector<std::int64_t> shape;  // empty: one number
    std::vector<double> values;       // a float is stored exactly
    Type type = Type::float64;
    bool missing = false;  // a gradient that does not exist yet; printed as "-", not as 0

    Numbers() = default;

    template <Number T> Numbers(T number) : values{static_cast<double>(number)}, type(type_of<T>) {}

    template <Number T> Numbers(std::initializer_list<T> list) : Numbers(std::vector<T>(list)) {}

    template <NumberRange R> Numbers(const R& range)
        : type(type_of<std::remove_cvref_t<std::ranges::range_reference_t<R>>>) {
        for (auto number : range) values.push_back(static_cast<double>(number));
        shape = {static_cast<std::int64_t>(values.size())};
    }

    template <ArrayLike A> Numbers(const A& array)
        : type(type_of<std::remove_cvref_t<decltype(array.to_vector()[0])>>) {
        for (auto extent : array.shape()) shape.push_back(static_cast<std::int64_t>(extent));
        for (auto number : array.to_vector()) values.push_back(static_cast<double>(number));
    }

    template <HasValue V> Numbers(const V& var) : Numbers(var.value()) {}

    static Numbers not_there() {
        Numbers none;
        none.missing = true;
        return none;
    }

private:
    template <class T> static constexpr Type type_of = std::is_integral_v<T>    ? Type::integer
                                                       : std::same_as<T, float> ? Type::float32
                                                                                : Type::float64;
};

// Returns the gradient of a variable. A missing gradient is printed as "-".
template <class V>
requires requires(const V& v) {
    { v.has_grad() } -> std::convertible_to<bool>;
    v.grad();
}
Numbers gradient(const V& variable) {
    return variable.has_grad() ? Numbers(variable.grad()) : Numbers::not_there();
}

std::vector<double> ratios(const Numbers& a, const Numbers& b);     // a / b, number by number
std::vector<double> scaled(const Numbers& numbers, double factor);  // each number times the factor
double mean_of(const std::vector<double>& numbers);
double furthest(const Numbers& a, const Numbers& b);  // the largest distance between two numbers at one index
bool same_bits(const Numbers& a, const Numbers& b);   // 0 and -0 differ; two NaN do not

const char* to_string(Numbers::Type type);                       // "float32", "float64", "integer"
std::string shape_text(const std::vector<std::int64_t>& shape);  // "(6, 3)"

std::string row_text(const Numbers& numbers, int digits);  // "-0.3536  0.0207 -0.6125", one number, or "-"
std::string short_text(double number);                     // "1.1e-06", for differences and bounds
std::vector<std::string> lines_of(const Numbers& numbers,
                                  int digits);  // "[-0.3536  0.0207 -0.6125]", a line per row

}  // namespace tally::lesson
