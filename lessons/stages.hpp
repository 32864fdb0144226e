// A model whose layers h = tanh(h W) are the stages of a pipe, and pictures of timetables. Lessons 36 and 37.
#pragma once

#include <set>
#include <sstream>

#include "course/kit/on_ranks.hpp"
#include "course/kit/toy.hpp"
#include "tally/train.hpp"

namespace {
using Order = Timetable::Schedule;

// A formula instead of random numbers, so that a test can compute the gradients without tally.
inline Array<real> matrix(int number) {
    std::vector<real> values;
    for (int i = 0; i < 16 * 16; ++i)
        values.push_back(real((37 * i * i + 11 * number * i + 5 * number) % 127 - 63) / 128);
    return {{16, 16}, values, options().device};
}
inline Tensor layer(int number) { return parameter(matrix(number)); }
inline Array<real> micro_batch(int k) { return matrix(100 + k); }  // 16 items of 16 numbers
inline Tensor loss(const Tensor& h, int) { return sum(h * h) / 2; }

inline Pipe<real>::Stage stage(const Tensor& W) {
    return [W](const Tensor& h, int) { return tanh(matmul(h, W)); };
}
inline Pipe<real> pipe_of(ProcessGroup& here, const Tensor& W, Order order) {
    return {here, {stage(W)}, {order, options().device}};
}

// All layers in one process.
struct WholeModel {
    std::vector<Tensor> layers;

    explicit WholeModel(int p) {
        for (int s = 0; s < p; ++s) layers.push_back(layer(s));
    }
    Tensor operator()(Tensor h) const {
        for (const Tensor& W : layers) h = tanh(matmul(h, W));
        return h;
    }
    std::vector<std::vector<real>> gradients() const {
        return each_layer([](const Tensor& W) { return W.grad().to_vector(); });
    }
    std::vector<std::vector<real>> weights() const {
        return each_layer([](const Tensor& W) { return W.value().to_vector(); });
    }
    std::vector<std::vector<real>> each_layer(const auto& numbers_of) const {
        std::vector<std::vector<real>> all;
        for (const Tensor& W : layers) all.push_back(numbers_of(W));
        return all;
    }
};

inline std::vector<double> joined(const std::vector<std::vector<real>>& stages) {
    std::vector<double> all;
    for (const std::vector<real>& one : stages) all.insert(all.end(), one.begin(), one.end());
    return all;
}

inline double distance(const std::vector<real>& a, const std::vector<real>& b) {
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) squares += std::pow(double(a[i]) - double(b[i]), 2);
    return std::sqrt(squares);
}

// Returns the steps of one process, such as "F0 F1 B0 B1 ".
inline std::string in_words(const std::vector<Timetable::Step>& steps) {
    std::string text;
    for (const Timetable::Step& step : steps) text += step.what + std::to_string(step.micro) + " ";
    return text;
}

// Draws a lane for each stage. In the text form, a letter is a unit of time, and a dot is a unit of waiting.
inline void graph(const std::string& name, const std::string& title, const Timetable& timetable) {
    Lanes lanes{{"F: forward", "B: backward"}, {}};
    if (timetable.stages[0].back().what == 'W')
        lanes.kinds = {"F: forward", "B: gradient of the input", "W: gradient of the weights"};
    std::istringstream drawing(timetable.drawing(1));
    std::string text, lane;
    for (std::size_t s = 0; std::getline(drawing, lane); ++s) {
        text += say("stage {} |{}\n", s, lane);
        lanes.lanes.push_back({say("stage {}", s), say("keeps {}", timetable.max_live[s]), {}});
        for (const Timetable::Step& step : timetable.stages[s])
            lanes.lanes[s].work.push_back({std::string("FBW").find(step.what), step.begin, step.end,
                                           step.what == 'W' ? "" : std::to_string(step.micro)});
    }
    tally::lesson::graph(name, sheet_of(title, lanes).svg(), "", text);
}
}  // namespace
