// An Evaluator computes a program from the definitions of its operations, on a tape of single numbers.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "programs/program.hpp"
#include "programs/tape.hpp"

namespace programs {

struct TapeArray {  // an array on the tape
    Extents shape;
    std::vector<int> at;
    bool recorded = false;  // depends on a parameter
};

// An Expected stores the gradient of step `place` after step `act`, if there is a gradient.
struct Expected {
    int act, place;
    std::optional<std::vector<Bounded>> gradient;
};

class Evaluator {
public:
    explicit Evaluator(const Program& program) : program_(program), tape_(program.wide, program.special) {}

    // Evaluates the next step. Throws Invalid and changes nothing if the step cannot be evaluated.
    void step();
    void run() {
        while (values_.size() < program_.steps.size()) step();
    }

    void truncate(std::size_t steps) {  // keeps only the first `steps` steps
        values_.resize(std::min(steps, values_.size()));
        gradients_.resize(values_.size());
    }

    const std::vector<TapeArray>& values() const { return values_; }
    const TapeArray& value(int place) const { return values_[static_cast<std::size_t>(place)]; }
    const Bounded& number(int node) const { return tape_[node]; }
    const std::vector<Expected>& expected() const { return expected_; }
    const Tape& tape() const { return tape_; }
    // Returns true for step `place`, and for each step on which step `place` depends through recorded values.
    std::vector<bool> dependencies(int place) const;

private:
    TapeArray compute(const Step& step);
    void act(const Step& step);

    // Each of these member functions evaluates one family of operations.
    TapeArray elementwise(const Step& step);
    TapeArray reduction(const Step& step);
    TapeArray moved(const Step& step);
    TapeArray product(const Step& step);
    TapeArray window(const Step& step);
    TapeArray normalised(const Step& step);
    TapeArray loss(const Step& step);

    const TapeArray& in(const Step& step, std::size_t operand) const { return value(step.in.at(operand)); }
    std::vector<int> normal(const std::vector<int>& group, const std::vector<int>& statistics_of, double eps);

    const Program& program_;
    Tape tape_;
    std::vector<TapeArray> values_;
    std::vector<std::optional<std::vector<Bounded>>> gradients_;  // gradients of leaves
    std::vector<Expected> expected_;
};

}  // namespace programs
