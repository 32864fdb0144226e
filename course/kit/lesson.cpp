// Defines the free functions that a lesson calls.
#include "course/kit/lesson.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "course/kit/compare.hpp"
#include "course/kit/page.hpp"
#include "course/kit/running.hpp"

namespace tally::lesson {

namespace {
// Returns only the last two components of a path, such as lessons/07_divide.cpp.
std::string short_path(const char* file) {
    const std::filesystem::path path(file);
    const auto folder = path.parent_path().filename();
    return (folder.empty() ? path.filename() : folder / path.filename()).generic_string();
}

Check placed(Check check, const Where& where) {
    check.file = short_path(where.file);
    check.line = where.line;
    return check;
}

bool check_against(std::string_view name, const Numbers& got, const Numbers& expected, const Numbers* bound,
                   const Where& where) {
    auto& running = Running::now();
    Check result = placed(compared(std::string(name), got, expected, bound, running.options().digits), where);
    const bool ok = result.ok;
    running.check(std::move(result));
    return ok;
}

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool blank(const std::string& line) { return line.find_first_not_of(" \t\r") == std::string::npos; }
}  // namespace

const Options& options() { return Running::now().options(); }

void skip(std::string_view reason) { throw Skipped{std::string(reason)}; }

void step(std::string_view sentence) {
    auto& running = Running::now();
    running.begin_step();
    running.emit(Sentence{Sentence::Role::step, std::string(sentence)});
}

void note(std::string_view sentence) {
    Running::now().emit(Sentence{Sentence::Role::note, std::string(sentence)});
}

void code(int lines, Where where) {
    if (lines < 1 || lines > 3)
        throw std::logic_error(fmt::format("[code] {} lines; a step shows 1 to 3", lines));
    Source source{short_path(where.file), where.line + 1, {}};
    std::ifstream file(where.file);
    if (!file) file.open(source.file);  // if the lesson was built elsewhere, but runs in the repository
    std::string line;
    for (std::size_t number = 1; static_cast<int>(source.lines.size()) < lines && std::getline(file, line);
         ++number) {
        if (number <= where.line) continue;
        if (blank(line) && source.lines.empty()) {
            ++source.line;
            continue;
        }
        source.lines.push_back(line.substr(0, line.find_last_not_of(" \t\r") + 1));
    }
    if (source.lines.empty()) source.lines.emplace_back("(the source file was not found)");

    std::size_t margin = std::string::npos;
    for (const auto& text : source.lines) {
        if (!blank(text)) margin = std::min(margin, text.find_first_not_of(' '));
    }
    for (auto& text : source.lines) text.erase(0, std::min(margin, text.size()));
    Running::now().emit(std::move(source));
}

void show(std::string_view name, const Cell& value) { Running::now().emit(Tensor{std::string(name), value}); }

void Table::add(std::vector<Cell> cells) {
    Running::now().add_row(id_, cells);
    rows_.push_back(std::move(cells));
}

std::size_t Table::place(std::string_view name) const {
    const auto found = std::find(columns_.begin(), columns_.end(), name);
    if (found == columns_.end()) throw std::logic_error(fmt::format("[table] has no column '{}'", name));
    return static_cast<std::size_t>(found - columns_.begin());
}

Numbers Table::column(std::string_view name) const {
    Numbers all;
    for (const auto& row : rows_) {
        const Numbers& numbers = row[place(name)].numbers;
        if (all.values.empty()) all.type = numbers.type;
        all.values.insert(all.values.end(), numbers.values.begin(), numbers.values.end());
    }
    all.shape = {static_cast<std::int64_t>(all.values.size())};
    return all;
}

bool Table::all(std::string_view name, std::string_view words) const {
    return !rows_.empty() && std::all_of(rows_.begin(), rows_.end(), [&, at = place(name)](const auto& row) {
        return row[at].words == words;
    });
}

Table table(std::vector<std::string> columns) {
    const std::size_t id = Running::now().open_table(columns);
    return Table(id, std::move(columns));
}

void ask(std::string_view id, const std::vector<Filling>& names_and_values) {
    auto& running = Running::now();
    if (!running.lesson().page) throw std::logic_error("[ask] this lesson has no page");
    Values texts;
    for (std::size_t k = 0; k < names_and_values.size(); k += 2)
        texts.emplace_back(names_and_values[k].text, names_and_values[k + 1].text);
    running.ask(prediction_of(*running.lesson().page, id, texts, running.settings_changed()));
}

bool check(std::string_view name, bool holds, std::string_view detail, Where where) {
    Running::now().check(
        placed({.name = std::string(name), .ok = holds, .detail = std::string(detail)}, where));
    return holds;
}

bool check_equal(std::string_view name, const Numbers& got, const Numbers& expected, Where where) {
    return check_against(name, got, expected, nullptr, where);
}

bool check_close(std::string_view name, const Numbers& got, const Numbers& expected, const Numbers& bound,
                 Where where) {
    return check_against(name, got, expected, &bound, where);
}

void graph(std::string_view name, std::string svg, std::string dot, std::string text) {
    Running::now().emit(Graph{std::string(name), std::move(svg), std::move(dot), std::move(text)});
}

void plot(std::string_view name, const Numbers& heights) {
    Series series{std::string(name), {}, heights.values};
    for (std::size_t i = 1; i <= series.y.size(); ++i) series.x.push_back(static_cast<double>(i));
    Running::now().emit(Plot{std::string(name), true, {std::move(series)}});
}

void plot(std::string_view name, const std::vector<Series>& points) {
    for (const auto& series : points) {
        if (series.x.size() != series.y.size()) {
            throw std::logic_error(
                fmt::format("[plot] '{}' has {} x and {} y", series.label, series.x.size(), series.y.size()));
        }
    }
    Running::now().emit(Plot{std::string(name), false, points});
}

Progress::Progress(std::string_view name, std::int64_t total)
    : name_(name), total_(std::max<std::int64_t>(total, 0)), started_(seconds_now()) {}

void Progress::report(std::int64_t done) {
    const bool another_tenth = done * 10 / total_ > reported_ * 10 / total_;
    reported_ = done;
    Running::now().progress(
        {.name = name_, .done = done, .total = total_, .seconds = seconds_now() - started_}, another_tenth);
    // 1000 reports suffice for a smooth bar. More progress reports would slow down a short loop.
    next_report_ = std::min(total_, done + std::max<std::int64_t>(total_ / 1000, 1));
}

Progress progress(std::string_view name, std::int64_t total) { return Progress(name, total); }

}  // namespace tally::lesson
