// A look at one answer: which numbers it gave, case by case, and what is wrong with them.
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

// An upper bound, or a value to be met, within a tolerance relative to the largest number.
constexpr double usual_tolerance = 1e-5;

struct Complaint {
    std::string where;
    std::vector<std::string> lines;
};

class Look {
public:
    explicit Look(std::uint64_t seed);

    // The case at hand, in words that finish the sentence "wrong with ...". What follows belongs to it.
    void with(std::string where);

    // Notes what the answer gave; complains, with both, where it is not the right one. Says whether it was.
    bool equal(const std::string& what, const Numbers& yours, const Numbers& right,
               double tolerance = usual_tolerance);
    bool equal(const std::string& what, double yours, double right, double tolerance = usual_tolerance) {
        return equal(what, Numbers{yours}, Numbers{right}, tolerance);
    }
    // A quantity with a target, such as bytes. Answers that differ little in it did alike.
    bool at_most(const std::string& what, double yours, double bound);
    // Notes whether it holds; the sentence is the complaint.
    bool holds(bool condition, const std::string& sentence);

    std::function<void(const std::string&)> tell;  // of each case as it begins

    // Runs the answer. What it throws is noted and complained about, and the next case goes on.
    bool runs(const std::function<void()>& answer);

    // Random numbers, the same for every answer.
    double uniform(double from, double to);
    int whole(int from, int to);  // both included
    Numbers uniforms(std::size_t count, double from = -1, double to = 1);

    const std::vector<Complaint>& complaints() const { return complaints_; }
    int cases() const { return cases_; }
    int wrong_cases() const { return wrong_cases_; }
    const std::string& place() const { return where_; }
    // Whether an answer did what another one did.
    bool like(const Look& other) const;

private:
    void complain(std::vector<std::string> lines);

    std::uint64_t state_;
    std::string where_;
    struct Noted {
        double value, tolerance;  // within which another answer has given the same
    };
    void note(double value, double tolerance = 1e-4) { noted_.push_back({value, tolerance}); }

    std::vector<Noted> noted_;
    std::vector<Complaint> complaints_;
    int cases_ = 0, wrong_cases_ = 0;
    bool wrong_here_ = false;
};

Numbers numbers(const tally::Array<float>& array);
Numbers numbers(const tally::Array<double>& array);
template <class T> Numbers gradient_of(const tally::Var<T>& variable) {  // empty where there is none
    return variable.has_grad() ? numbers(variable.grad()) : Numbers{};
}
template <class T> Numbers as_numbers(const std::vector<T>& values) {
    return Numbers(values.begin(), values.end());
}

std::string written(const Numbers& values);  // [-0.3536  0.0207 -0.6125]

}  // namespace exercise
