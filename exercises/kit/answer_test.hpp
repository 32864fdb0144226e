// Look records the numbers of one answer, case by case, and complains about wrong ones.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "exercise.hpp"

namespace exercise {

using Numbers = std::vector<double>;

// A value must agree with the right one within this tolerance, relative to the largest number.
constexpr double usual_tolerance = 1e-5;

struct Complaint {
    std::string where;
    std::vector<std::string> lines;
};

class AnswerTest {
public:
    explicit AnswerTest(std::uint64_t seed);

    // Begins a case; `where` completes the sentence "wrong with ...". Later results belong to this case.
    void with(std::string where);

    // Records a result, and complains with both values if it is wrong. Returns whether it is right.
    bool equal(const std::string& what, const Numbers& yours, const Numbers& right,
               double tolerance = usual_tolerance);
    bool equal(const std::string& what, double yours, double right, double tolerance = usual_tolerance) {
        return equal(what, Numbers{yours}, Numbers{right}, tolerance);
    }
    // Records a quantity with an upper bound, such as bytes. Answers with similar quantities count as alike.
    bool at_most(const std::string& what, double yours, double bound);
    // Records whether the condition holds; the sentence is the complaint.
    bool holds(bool condition, const std::string& sentence);

    std::function<void(const std::string&)> tell;  // called when a case begins

    // Runs the answer. An exception becomes a complaint, and the next case continues.
    bool runs(const std::function<void()>& answer);

    // Random numbers that are the same for every answer.
    double uniform(double from, double to);
    int whole(int from, int to);  // bounds included
    Numbers uniforms(std::size_t count, double from = -1, double to = 1);

    const std::vector<Complaint>& complaints() const { return complaints_; }
    int cases() const { return cases_; }
    int wrong_cases() const { return wrong_cases_; }
    const std::string& place() const { return where_; }
    // Whether an answer did what another one did.
    bool like(const AnswerTest& other) const;

private:
    void complain(std::vector<std::string> lines);

    std::uint64_t state_;
    std::string where_;
    struct Noted {
        double value, tolerance;  // another answer is alike within this tolerance
    };
    void note(double value, double tolerance = 1e-4) { noted_.push_back({value, tolerance}); }

    std::vector<Noted> noted_;
    std::vector<Complaint> complaints_;
    int cases_ = 0, wrong_cases_ = 0;
    bool wrong_here_ = false;
};

Numbers numbers(const tally::Array<float>& array);
Numbers numbers(const tally::Array<double>& array);
template <class T> Numbers gradient_of(const tally::Var<T>& variable) {  // empty without a gradient
    return variable.has_grad() ? numbers(variable.grad()) : Numbers{};
}
template <class T> Numbers as_numbers(const std::vector<T>& values) {
    return Numbers(values.begin(), values.end());
}

std::string written(const Numbers& values);  // returns "[-0.3536  0.0207 -0.6125]"

}  // namespace exercise
