// A `Running` executes a lesson, records its events, counts its checks and calls the viewer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "course/kit/event.hpp"
#include "course/kit/viewer.hpp"

namespace tally::lesson {

struct Skipped {  // thrown by skip()
    std::string reason;
};

class Running {
public:
    Running(const Lesson& lesson, const Options& options, Viewer& viewer, int from, std::string with = {});
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    static Running& now();  // throws if no lesson is running

    std::function<void(const Reveal&)> answered;  // called after each question

    const Lesson& lesson() const { return lesson_; }
    const Options& options() const { return options_; }
    bool settings_changed() const;
    int step() const { return step_; }
    void begin_step();
    void emit(decltype(Event::is) what);
    void check(Check check);
    void ask(Prediction prediction);
    void progress(ProgressMade made, bool another_tenth);

    std::size_t open_table(std::vector<std::string> columns);
    void add_row(std::size_t table, std::vector<Cell> cells);

    void finish(Outcome outcome, const std::string& detail);
    const End& end() const { return end_; }
    const Graph* own_graph() const;  // the last graph that has the lesson's name, or else the last graph

private:
    bool on_screen() const { return step_ == 0 || step_ >= from_; }
    void close_table();
    void emit_shown();

    const Lesson& lesson_;
    const Options& options_;
    Viewer& viewer_;
    int from_;
    int step_ = 0;
    int asked_ = 0;
    Record record_{{{}}};
    std::optional<TableShown> table_;
    std::size_t tables_ = 0;
    std::vector<Tensor> shown_;  // values that are not emitted yet
    End end_;
};

}  // namespace tally::lesson
