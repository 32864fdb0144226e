// AnswerTest records the numbers of one answer, case by case, and complains about wrong ones.
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

    // Begins a part of the answer, such as one of its functions. The check judges each part separately.
    void part(std::string name);

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

    // Records whether two arrays have the same bits. The complaint shows the first number that differs with all
    // of its digits, then the sentence.
    bool same_bits(const std::string& what, const std::vector<float>& yours, const std::vector<float>& right,
                   const std::string& sentence);

    // Reports a result of a training with the learner's code. The runner prints it after a pass.
    void trained(std::string sentence) { trainings_.push_back(std::move(sentence)); }

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
    const std::vector<std::string>& trainings() const { return trainings_; }
    // Whether an answer did what another one did.
    bool like(const AnswerTest& other) const;

    std::size_t parts() const { return parts_.size(); }
    const std::string& part_name(std::size_t part) const { return parts_[part].name; }
    bool part_is_right(std::size_t part) const { return parts_[part].right; }
    // Whether one part of an answer did what the same part of another one did.
    bool part_is_like(const AnswerTest& other, std::size_t part) const;

private:
    void complain(std::vector<std::string> lines);

    std::uint64_t state_;
    std::string where_;
    struct Noted {
        double value, tolerance;  // another answer is alike within this tolerance
    };
    void note(double value, double tolerance = 1e-4) { noted_.push_back({value, tolerance}); }

    static bool alike(const std::vector<Noted>& a, const std::vector<Noted>& b);

    struct Part {
        std::string name;
        std::size_t first_note;
        bool right = true;
    };
    std::vector<Noted> notes_of(std::size_t part) const;

    std::vector<Noted> noted_;
    std::vector<Part> parts_;
    std::vector<std::string> trainings_;
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
