// Records the events of a lesson and passes them to the viewer.
#include "course/kit/running.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tally::lesson {

namespace {
Running* current = nullptr;
}

Running::Running(const Lesson& lesson, const Options& options, Viewer& viewer, int from, std::string with)
    : lesson_(lesson), options_(options), viewer_(viewer), from_(from) {
    current = this;
    end_.with = std::move(with);
}

Running::~Running() { current = nullptr; }

Running& Running::now() {
    if (current == nullptr)
        throw std::logic_error("[lesson] no lesson is running; tally::lesson::run() starts one");
    return *current;
}

bool Running::settings_changed() const {
    for (const auto& parameter : lesson_.parameters)
        if (options_.settings.at(parameter.name) != parameter.usual) return true;
    return false;
}

void Running::begin_step() {
    close_table();
    emit_shown();
    if (step_ > 0 && on_screen()) viewer_.end_of_step(record_);
    ++step_;
    record_.steps.emplace_back();
}

void Running::emit(decltype(Event::is) what) {
    if (table_ && !table_->rows.empty()) close_table();  // notes may precede the first row of a table
    if (auto* tensor = std::get_if<Tensor>(&what)) return shown_.push_back(std::move(*tensor));
    emit_shown();
    record_.steps.back().push_back({step_, std::move(what)});
    if (on_screen()) viewer_.show(record_.steps.back().back());
}

// Emits values that follow each other together, so that their numbers form one column.
void Running::emit_shown() {
    std::size_t widest = 0;
    for (const auto& tensor : shown_) widest = std::max(widest, tensor.name.size());
    for (auto& tensor : std::exchange(shown_, {})) {
        tensor.name_width = widest;
        record_.steps.back().push_back({step_, std::move(tensor)});
        if (on_screen()) viewer_.show(record_.steps.back().back());
    }
}

void Running::check(Check check) {
    ++end_.checks;
    if (!check.ok && ++end_.failed == 1) {
        end_.detail = check.detail.empty() ? check.name : fmt::format("{}: {}", check.name, check.detail);
        end_.file = check.file;
        end_.line = check.line;
        end_.failed_step = step_;
    }
    emit(std::move(check));
}

void Running::ask(Prediction prediction) {
    begin_step();
    prediction.id = ++asked_;
    shuffle(prediction, options_.seed, lesson_.number);
    emit(prediction);
    auto tries = on_screen() ? viewer_.ask(prediction, record_) : std::vector<Try>();
    Reveal reveal{std::move(prediction), std::move(tries)};
    if (answered && on_screen()) answered(reveal);
    emit(std::move(reveal));
}

// Does not record progress, because the viewer does not show progress again when a learner goes back.
void Running::progress(ProgressMade made, bool another_tenth) {
    emit_shown();
    made.step = step_;
    if (on_screen()) viewer_.progress(made, another_tenth);
}

std::size_t Running::open_table(std::vector<std::string> columns) {
    close_table();
    table_ = TableShown{std::move(columns), {}};
    return ++tables_;
}

void Running::add_row(std::size_t table, std::vector<Cell> cells) {
    if (!table_ || table != tables_)
        throw std::logic_error("[table] a row for a table that was already shown");
    if (cells.size() != table_->columns.size()) {
        throw std::logic_error(
            fmt::format("[table] a row of {} cells for {} columns", cells.size(), table_->columns.size()));
    }
    table_->rows.push_back(std::move(cells));
}

void Running::close_table() {
    if (auto table = std::exchange(table_, std::nullopt)) emit(*std::move(table));
}

void Running::finish(Outcome outcome, const std::string& detail) {
    if (outcome != Outcome::quit) close_table();
    emit_shown();
    end_.steps = step_;
    if (outcome == Outcome::skip && end_.failed > 0) outcome = Outcome::fail;
    if (outcome == Outcome::ok && step_ != lesson_.steps) {
        outcome = Outcome::fail;
        if (end_.detail.empty())
            end_.detail = fmt::format("the lesson declares {} steps and has {}", lesson_.steps, step_);
    } else if (outcome == Outcome::ok && end_.failed > 0) {
        outcome = Outcome::fail;
    } else if (!detail.empty()) {
        end_.detail = detail;
        if (outcome == Outcome::fail && end_.failed == 0) end_.failed_step = step_;
    }
    end_.outcome = outcome;
    step_ = std::max(step_, from_);  // the end is always shown
    emit(end_);
    if (outcome != Outcome::quit) viewer_.end_of_lesson(record_);
}

const Graph* Running::own_graph() const {
    const Graph* own = nullptr;
    for (const auto& step : record_.steps) {
        for (const auto& event : step) {
            const auto* graph = std::get_if<Graph>(&event.is);
            if (graph != nullptr && (own == nullptr || own->name != lesson_.slug || graph->name == own->name))
                own = graph;
        }
    }
    return own;
}

}  // namespace tally::lesson
