// Records the numbers of an answer, and describes the wrong ones.
#include "answer_test.hpp"

#include <fmt/format.h>

#include <cmath>

namespace exercise {

namespace {

double largest(const Numbers& values) {
    double most = 0;
    for (const double value : values)
        if (std::isfinite(value)) most = std::max(most, std::abs(value));
    return most;
}

bool close(double a, double b, double tolerance) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b || std::abs(a - b) <= tolerance;
}

bool close(const Numbers& a, const Numbers& b, double tolerance) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!close(a[i], b[i], tolerance)) return false;
    return true;
}

// Returns the factor between the numbers if they have a common one, else 0.
double factor_between(const Numbers& yours, const Numbers& right) {
    double factor = 0;
    for (std::size_t i = 0; i < right.size(); ++i)
        if (std::abs(right[i]) == largest(right) && right[i] != 0) factor = yours[i] / right[i];
    Numbers scaled = right;
    for (double& value : scaled) value *= factor;
    return std::isfinite(factor) && close(yours, scaled, 1e-4 * largest(yours)) ? factor : 0;
}

std::string written(const Numbers& values, int digits) {
    if (values.empty()) return "nothing";
    const auto number = [digits](double value) {  // the sign of NaN depends on the compiler
        return std::isnan(value) ? "nan" : fmt::format("{:.{}f}", value, digits);
    };
    if (values.size() == 1) return number(values[0]);
    std::string text = "[";
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i == 12) return text + fmt::format(" ... {} numbers]", values.size());
        text += (i == 0 ? "" : " ") + number(values[i]);
    }
    return text + "]";
}

bool whole_numbers(const Numbers& values) {
    return std::all_of(values.begin(), values.end(),
                       [](double v) { return v == std::floor(v) && std::abs(v) < 1e15; });
}

}  // namespace

std::string written(const Numbers& values) { return written(values, whole_numbers(values) ? 0 : 4); }

Numbers numbers(const tally::Array<float>& array) { return as_numbers(array.to_vector()); }
Numbers numbers(const tally::Array<double>& array) { return array.to_vector(); }

AnswerTest::AnswerTest(std::uint64_t seed) : state_(seed) {}

void AnswerTest::part(std::string name) { parts_.push_back({std::move(name), noted_.size()}); }

void AnswerTest::with(std::string where) {
    where_ = std::move(where);
    wrong_here_ = false;
    ++cases_;
    if (tell) tell(where_);
}

void AnswerTest::complain(std::vector<std::string> lines) {
    if (!wrong_here_) ++wrong_cases_;
    wrong_here_ = true;
    if (!parts_.empty()) parts_.back().right = false;
    complaints_.push_back({where_, std::move(lines)});
}

bool AnswerTest::equal(const std::string& what, const Numbers& yours, const Numbers& right,
                       double tolerance) {
    note(static_cast<double>(yours.size()));
    for (const double value : yours) note(value);
    if (close(yours, right, tolerance * std::max(largest(right), 1e-30))) return true;
    int digits = whole_numbers(yours) && whole_numbers(right) ? 0 : 4;
    while (digits > 0 && digits < 12 && written(yours, digits) == written(right, digits)) digits += 4;
    const std::string name = "your " + what;
    const std::size_t width = std::max<std::size_t>(16, name.size());
    std::vector<std::string> lines{fmt::format("{:<{}} {}", name, width, written(yours, digits)),
                                   fmt::format("{:<{}} {}", "the right one", width, written(right, digits))};
    if (yours.empty()) {
        lines.push_back("your array is empty");
    } else if (yours.size() != right.size()) {
        lines.push_back(
            fmt::format("your array has {} numbers, and {} are expected", yours.size(), right.size()));
    } else if (const double factor = factor_between(yours, right); factor > 1.0001) {
        lines.push_back(fmt::format("that is {:.4g} times too large", factor));
    } else if (factor > 0 && factor < 0.9999) {
        lines.push_back(fmt::format("that is {:.4g} of what it should be", factor));
    } else if (factor < 0) {
        lines.push_back(fmt::format("that is {:.4g} times the right one: the sign is wrong", factor));
    }
    complain(std::move(lines));
    return false;
}

bool AnswerTest::at_most(const std::string& what, double yours, double bound) {
    note(yours, 0.08);
    if (yours <= bound) return true;
    complain({fmt::format("{}: {}, and at most {} is the target", what, written({yours}), written({bound}))});
    return false;
}

bool AnswerTest::holds(bool condition, const std::string& sentence) {
    note(condition ? 1 : 0);
    if (!condition) complain({sentence});
    return condition;
}

bool AnswerTest::same_bits(const std::string& what, const std::vector<float>& yours,
                           const std::vector<float>& right, const std::string& sentence) {
    const bool same = yours == right;
    note(same ? 1 : 0);
    if (same) return true;
    if (yours.size() != right.size()) {
        complain({fmt::format("your {} has {} numbers instead of {}", what, yours.size(), right.size())});
        return false;
    }
    std::size_t first = yours.size(), equal = 0;
    for (std::size_t i = 0; i < yours.size(); ++i) {
        if (yours[i] == right[i]) {
            ++equal;
        } else {
            first = std::min(first, i);
        }
    }
    // Nine digits and the hexadecimal form each identify a float.
    const auto in_full = [](float value) { return fmt::format("{:<17.9g} {:a}", value, value); };
    const std::string name = yours.size() == 1 ? "your " + what : fmt::format("your {}[{}]", what, first);
    const std::size_t width = std::max<std::size_t>(16, name.size());
    std::vector<std::string> lines{fmt::format("{:<{}} {}", name, width, in_full(yours[first])),
                                   fmt::format("{:<{}} {}", "the right one", width, in_full(right[first])),
                                   fmt::format("{} of {} numbers have the right bits", equal, yours.size())};
    for (std::size_t from = 0; from < sentence.size();) {  // each sentence gets a line
        const std::size_t blank = std::min(sentence.size(), sentence.find(". ", from));
        lines.push_back(sentence.substr(from, blank + 1 - from));
        from = blank + 2;
    }
    complain(std::move(lines));
    return false;
}

bool AnswerTest::runs(const std::function<void()>& answer) {
    try {
        answer();
        note(1);
        return true;
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        note(0);
        complain({fmt::format("it ended in an error: {}", error.what())});
        return false;
    }
}

double AnswerTest::uniform(double from, double to) {  // splitmix64: the same numbers with every C++ library
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    mixed ^= mixed >> 31;
    return from + (to - from) * static_cast<double>(mixed >> 11) * 0x1p-53;
}

int AnswerTest::whole(int from, int to) { return from + static_cast<int>(uniform(0, 1) * (to - from + 1)); }

Numbers AnswerTest::uniforms(std::size_t count, double from, double to) {
    Numbers values(count);
    for (double& value : values) value = uniform(from, to);
    return values;
}

bool AnswerTest::alike(const std::vector<Noted>& a, const std::vector<Noted>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double mine = a[i].value, theirs = b[i].value;
        const double size = std::max({1e-3, std::abs(mine), std::abs(theirs)});
        if (!close(mine, theirs, std::isfinite(size) ? a[i].tolerance * size : 0)) return false;
    }
    return true;
}

bool AnswerTest::like(const AnswerTest& other) const { return alike(noted_, other.noted_); }

std::vector<AnswerTest::Noted> AnswerTest::notes_of(std::size_t part) const {
    const auto at = [this](std::size_t note) { return noted_.begin() + static_cast<std::ptrdiff_t>(note); };
    return {at(parts_[part].first_note),
            part + 1 < parts_.size() ? at(parts_[part + 1].first_note) : noted_.end()};
}

bool AnswerTest::part_is_like(const AnswerTest& other, std::size_t part) const {
    return part < other.parts_.size() && alike(notes_of(part), other.notes_of(part));
}

}  // namespace exercise
