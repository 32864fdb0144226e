// Declares the functions that a lesson calls. These functions act on the running lesson.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "course/kit/numbers.hpp"
#include "course/kit/parameters.hpp"
#include "course/kit/prediction.hpp"
#include "course/kit/wording.hpp"
#include "tally/kernels/device.hpp"

namespace tally::lesson {

// Stores the file and the line of a call, because clang 14 has no std::source_location.
struct Where {
    const char* file;
    std::size_t line;
    static constexpr Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
        return {file, static_cast<std::size_t>(line)};
    }
};

struct Page;

// ---- A lesson and its main() -------------------------------------------------------------------

struct Lesson {
    int number;
    std::string slug;
    std::string title;
    int minutes;
    int steps;  // the number of calls of step() and ask(); a lesson fails if it makes more or fewer
    std::string device = "cpu";                    // the default of --device
    std::vector<LessonParameter> parameters = {};  // numbers that the learner may change
    std::shared_ptr<const Page> page = {};         // in the runner without questions; tests may have none
    std::string page_path = {};
};

// Parses the flags, runs the lesson, and returns the exit code of the program.
int run(int argc, const char* const* argv, const Lesson& lesson, void (*talk)());

struct Options {
    std::uint64_t seed = 0;
    Device device = Device::cpu;
    int threads = 1;
    int digits = 4;
    Settings settings = {};  // read by setting("micro")
};
const Options& options();  // of the running lesson

[[noreturn]] void skip(std::string_view reason);  // ends the lesson as skipped, with exit code 77

// ---- Steps -------------------------------------------------------------------------------------

void step(std::string_view sentence);  // ends the previous step; step mode waits for a key there
void note(std::string_view sentence);  // one more sentence in the same step
template <class... T>
requires(sizeof...(T) > 0) void step(std::string_view pattern,
                                     const T&... values) {  // each {} of the pattern is replaced by a value
    step(say(pattern, values...));
}
template <class... T>
requires(sizeof...(T) > 0) void note(std::string_view pattern, const T&... values) {
    note(say(pattern, values...));
}

// Shows the 1 to 3 source lines that follow this call, with their file and line numbers.
void code(int lines, Where where = Where::here());

// ---- Values ------------------------------------------------------------------------------------

// A Cell stores words, yes or no, or numbers, for a table or for the function show().
struct Cell {
    std::string words;
    Numbers numbers;
    bool is_words = false;

    Cell(const char* text) : words(text), is_words(true) {}
    Cell(std::string text) : words(std::move(text)), is_words(true) {}
    Cell(std::string_view text) : words(text), is_words(true) {}
    template <std::same_as<bool> B> Cell(B yes) : words(yes ? "yes" : "no"), is_words(true) {}
    template <class T>
    requires(std::constructible_from<Numbers, const T&> && !std::convertible_to<const T&, std::string_view>)
        Cell(const T& value)
        : numbers(value) {}
    template <Number T> Cell(std::initializer_list<T> list) : numbers(list) {}
};

void show(std::string_view name, const Cell& value);
template <class... More>  // show("w", w, "loss", loss) shows two values
requires(sizeof...(More) > 0) void show(std::string_view name, const Cell& value, const More&... more) {
    show(name, value), show(more...);
}

// Shows a table when the next event, step or table begins. row() adds rows to the table.
class Table {
public:
    template <class... Cells> void row(const Cells&... cells) { add({Cell(cells)...}); }

    // Returns the numbers of a column, row by row, so that a lesson can check them.
    Numbers column(std::string_view name) const;
    bool all(std::string_view name, std::string_view words) const;  // has each row these words?

private:
    friend Table table(std::vector<std::string> columns);
    explicit Table(std::size_t id, std::vector<std::string> columns)
        : id_(id), columns_(std::move(columns)) {}
    void add(std::vector<Cell> cells);
    std::size_t place(std::string_view name) const;
    std::size_t id_;  // adding a row to a table that has ended is an error
    std::vector<std::string> columns_;
    std::vector<std::vector<Cell>> rows_;
};
[[nodiscard]] Table table(std::vector<std::string> columns);

// ---- Predict, then reveal ----------------------------------------------------------------------

// Begins a step and asks a question of the lesson's page. ask("few-words", "n", n) replaces {n} in its texts.
void ask(std::string_view id, const std::vector<Filling>& names_and_values);
template <class... T>
requires(sizeof...(T) % 2 == 0) void ask(std::string_view id, const T&... names_and_values) {
    ask(id, std::vector<Filling>{Filling(names_and_values)...});
}

// ---- Checks ------------------------------------------------------------------------------------
// Each check returns whether it holds. After a failed check the lesson continues, and later exits with 1.

bool check(std::string_view name, bool holds, std::string_view detail = {}, Where where = Where::here());
bool check_equal(std::string_view name, const Numbers& got, const Numbers& expected,
                 Where where = Where::here());
// Checks that |got - expected| <= bound. `bound` has one number, or one number for each element.
bool check_close(std::string_view name, const Numbers& got, const Numbers& expected, const Numbers& bound,
                 Where where = Where::here());

// Returns the bound n u / (1 - n u) for the error of a sum with n successive roundings. The error is relative
// to the sum of the magnitudes of the terms, and u is half the distance from 1 to the next number.
template <class S> constexpr double gamma_bound(int n) {
    const double nu = n * static_cast<double>(std::numeric_limits<S>::epsilon()) / 2;
    return nu / (1 - nu);
}

// ---- Pictures ----------------------------------------------------------------------------------

void graph(std::string_view name, std::string svg, std::string dot, std::string text = {});

struct Series {
    std::string label;
    std::vector<double> x, y;
};
void plot(std::string_view name, const Numbers& heights);  // a block chart over 1, 2, 3, ...
void plot(std::string_view name,
          const std::vector<Series>& points);  // points in the plane, with one mark per series

// ---- Long work: for (auto i : progress("draws", 3000)) ... -------------------------------------

class Progress {
public:
    class Iterator {
    public:
        Iterator(Progress* owner, std::int64_t at) : owner_(owner), at_(at) {}
        std::int64_t operator*() const { return at_; }
        Iterator& operator++() {
            if (++at_ >= owner_->next_report_) owner_->report(at_);
            return *this;
        }
        bool operator!=(const Iterator& other) const { return at_ != other.at_; }

    private:
        Progress* owner_;
        std::int64_t at_;
    };

    Iterator begin() { return {this, 0}; }
    Iterator end() { return {this, total_}; }

private:
    friend Progress progress(std::string_view name, std::int64_t total);
    Progress(std::string_view name, std::int64_t total);
    void report(std::int64_t done);

    std::string name_;
    std::int64_t total_, next_report_ = 1, reported_ = 0;
    double started_;
};
[[nodiscard]] Progress progress(std::string_view name, std::int64_t total);

}  // namespace tally::lesson
