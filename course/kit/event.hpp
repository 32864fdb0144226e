// Defines the events that a lesson emits. Viewers receive only events, so they cannot show numbers of an earlier run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "course/kit/lesson.hpp"

namespace tally::lesson {

struct Title {
    Lesson lesson;
    std::string device;
    std::uint64_t seed = 0;
    std::string settings = {};  // "--micro 6"; empty if every parameter has its default value
};

struct Sentence {
    enum class Role : std::uint8_t { step, note };
    Role role = Role::step;
    std::string text;
};

struct Source {
    std::string file;  // the last two components: lessons/07_divide.cpp
    std::size_t line = 0;
    std::vector<std::string> lines;
};

struct Tensor {
    std::string name;
    Cell value;
    std::size_t name_width = 0;  // of the longest name among the values that follow each other
};

struct TableShown {
    std::vector<std::string> columns;
    std::vector<std::vector<Cell>> rows;
};

// A lesson emits a Reveal after each Prediction (prediction.hpp).
struct Reveal {
    Prediction prediction;
    std::vector<Try> tries;  // empty: the learner skipped the question, or the viewer does not ask
};

struct Check {
    std::string name = {};
    bool ok = false;
    std::string detail = {};
    std::string file = {};
    std::size_t line = 0;
    std::optional<bool> exact = {}, close = {};  // set by comparisons only
    std::optional<double> max_diff = {}, bound = {};
};

struct Graph {
    std::string name, svg, dot, text;
};

struct Plot {
    std::string name;
    bool bars = false;  // heights over 1, 2, 3, ... rather than points
    std::vector<Series> series;
};

struct ProgressMade {
    std::string name = {};
    int step = 0;
    std::int64_t done = 0, total = 0;
    double seconds = 0;  // since the work began; not in the JSON stream, which the seed determines
};

enum class Outcome : std::uint8_t { ok, fail, skip, quit };
inline const char* to_string(Outcome outcome) {
    constexpr const char* words[] = {"ok", "FAIL", "skip", "quit"};
    return words[static_cast<int>(outcome)];
}

struct End {
    Outcome outcome = Outcome::ok;
    int steps = 0, checks = 0, failed = 0;
    std::string detail = {};  // why it failed, was skipped, or stopped
    std::string file = {};    // the place of the first failure
    std::size_t line = 0;
    int failed_step = 0;
    std::string with = {};  // the flags that reproduce the failure
};

struct Event {
    int step = 0;  // 0: before the first step
    std::variant<Title, Sentence, Source, Tensor, TableShown, Prediction, Reveal, Check, Graph, Plot,
                 ProgressMade, End>
        is;
};

// Stores the events of each step. The key "back" shows recorded events again.
struct Record {
    std::vector<std::vector<Event>> steps;  // steps[0] holds the title
};

}  // namespace tally::lesson
