// Runs a program on the tape of single numbers, from the definitions of its operations.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "programs/program.hpp"
#include "programs/tape.hpp"

namespace programs {

struct Gathered {  // an array on the tape
    Extents shape;
    std::vector<int> at;
    bool recorded = false;  // depends on a parameter
};

// What a request for gradients left behind, to be compared: of a leaf or an inner value; nothing where no
// gradient has arrived.
struct Expected {
    int act, place;
    std::optional<std::vector<Bounded>> gradient;
};

class Evaluator {
public:
    explicit Evaluator(const Program& program) : program_(program), tape_(program.wide, program.special) {}

    // The next step; Invalid when it cannot be done. Nothing has then happened.
    void step();
    void run() {
        while (values_.size() < program_.steps.size()) step();
    }

    void take_back(std::size_t steps) {  // all but the first `steps`
        values_.resize(std::min(steps, values_.size()));
        gradients_.resize(values_.size());
    }

    const std::vector<Gathered>& values() const { return values_; }
    const Gathered& value(int place) const { return values_[static_cast<std::size_t>(place)]; }
    const Bounded& number(int node) const { return tape_[node]; }
    const std::vector<Expected>& expected() const { return expected_; }
    const Tape& tape() const { return tape_; }
    // The steps from which `place` is made, through what is recorded; itself included.
    std::vector<bool> made_of(int place) const;

private:
    Gathered compute(const Step& step);
    void act(const Step& step);

    // Families of operations.
    Gathered elementwise(const Step& step);
    Gathered reduction(const Step& step);
    Gathered moved(const Step& step);
    Gathered product(const Step& step);
    Gathered window(const Step& step);
    Gathered normalised(const Step& step);
    Gathered loss(const Step& step);

    const Gathered& in(const Step& step, std::size_t operand) const { return value(step.in.at(operand)); }
    std::vector<int> normal(const std::vector<int>& group, const std::vector<int>& statistics_of, double eps);

    const Program& program_;
    Tape tape_;
    std::vector<Gathered> values_;
    std::vector<std::optional<std::vector<Bounded>>> gradients_;  // of leaves
    std::vector<Expected> expected_;
};

}  // namespace programs
