// Converts events to lines of JSON as described in docs/lesson-events.schema.json.
#include "course/kit/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <utility>

#include "course/kit/layout.hpp"
#include "course/kit/text.hpp"
#include "tally/base/text.hpp"
#include "tally/base/utf8.hpp"

namespace tally::lesson {

namespace {
// ---- values as JSON ----

// Invalid bytes become U+FFFD instead of an error, so that invalid text does not stop a lesson.
std::string json_of(std::string_view text) {
    std::string json = "\"";
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const char first = text.front();
        if (length == 0)
            json += "\xEF\xBF\xBD";
        else if (first == '"' || first == '\\')
            json += {'\\', first};
        else if (first == '\n')
            json += "\\n";
        else if (static_cast<unsigned char>(first) < 0x20)
            json += fmt::format("\\u{:04x}", static_cast<int>(first));
        else
            json += text.substr(0, length);
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return json + '"';
}
std::string json_of(const std::string& text) { return json_of(std::string_view(text)); }
std::string json_of(const char* text) { return json_of(std::string_view(text)); }
template <std::integral T> std::string json_of(T number) {
    if constexpr (std::same_as<T, bool>)
        return number ? "true" : "false";
    else
        return std::to_string(number);
}
std::string json_of(double number) {  // JSON has no infinities and no NaN, so these numbers are texts
    if (std::isnan(number)) return "\"nan\"";
    if (std::isinf(number)) return number > 0 ? "\"inf\"" : "\"-inf\"";
    const std::string text = detail::shortest(number);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}
struct Written {  // a value that is JSON already
    std::string json;
};
std::string json_of(const Written& value) { return value.json; }

template <class List, class F> Written array_of(const List& list, F value_of) {
    std::string json;
    for (const auto& each : list) json += (json.empty() ? "" : ",") + json_of(value_of(each));
    return {"[" + json + "]"};
}
template <class T> std::string json_of(const std::vector<T>& list) {
    return array_of(list, [](const T& each) { return each; }).json;
}

// The fields of an object, in the order of their addition.
class Object {
public:
    template <class T> Object& add(const char* name, const T& value) {
        fields_ += fmt::format("{}\"{}\":{}", fields_.empty() ? "" : ",", name, json_of(value));
        return *this;
    }
    std::string json() const { return "{" + fields_ + "}"; }

private:
    std::string fields_;
};
std::string json_of(const Object& object) { return object.json(); }

std::string json_of(double value, Numbers::Type type) {
    const bool whole = type == Numbers::Type::integer && std::abs(value) <= 9007199254740992.0;
    return whole ? json_of(static_cast<std::int64_t>(value)) : json_of(value);
}

std::string nested(const Numbers& numbers, std::size_t axis, std::size_t& at) {
    if (axis == numbers.shape.size()) return json_of(numbers.values[at++], numbers.type);
    std::string list;
    for (std::int64_t i = 0; i < numbers.shape[axis]; ++i)
        list += (list.empty() ? "" : ",") + nested(numbers, axis + 1, at);
    return "[" + list + "]";
}

Written values_of(const Cell& cell) {
    if (cell.is_words) return {json_of(cell.words)};
    if (cell.numbers.missing) return {"null"};
    std::size_t at = 0;
    return {nested(cell.numbers, 0, at)};
}

std::string text_of(const Cell& cell, int digits) {
    if (cell.is_words) return cell.words;
    const std::string text = joined(lines_of(cell.numbers, digits), "\n");
    return text.substr(
        std::min(text.find_first_not_of(' '), text.size()));  // a single number is padded only on screen
}

// ---- events ----

Object head(const Lesson& lesson, const char* event) {
    return Object().add("v", 1).add("lesson", lesson.number).add("slug", lesson.slug).add("event", event);
}

class Fields {
public:
    Fields(const Lesson& lesson, int step, int digits) : lesson_(lesson), step_(step), digits_(digits) {}

    Object operator()(const Title& e) const {
        Object json = head(lesson_, "title");
        json.add("title", lesson_.title).add("minutes", lesson_.minutes).add("steps", lesson_.steps);
        json.add("device", e.device).add("seed", e.seed);
        if (!e.settings.empty()) json.add("settings", e.settings);
        return json;
    }
    Object operator()(const Sentence& e) const {
        return with("sentence")
            .add("role", e.role == Sentence::Role::step ? "step" : "note")
            .add("text", e.text);
    }
    Object operator()(const Source& e) const {
        return with("source").add("file", e.file).add("line", e.line).add("text", joined(e.lines, "\n"));
    }
    Object operator()(const Tensor& e) const {
        Object json = with("tensor").add("name", e.name);
        if (!e.value.is_words && !e.value.numbers.missing)
            json.add("dtype", to_string(e.value.numbers.type)).add("shape", e.value.numbers.shape);
        return json.add("values", values_of(e.value)).add("text", text_of(e.value, digits_));
    }
    Object operator()(const TableShown& e) const {
        const auto cells = [&](auto value_of) {
            return array_of(e.rows, [&](const std::vector<Cell>& row) { return array_of(row, value_of); });
        };
        return with("table")
            .add("columns", e.columns)
            .add("values", cells(values_of))
            .add("text", cells([&](const Cell& cell) { return text_of(cell, digits_); }));
    }
    Object operator()(const Prediction& e) const {
        Object json = with("prediction").add("id", e.id).add("kind", e.is_typed ? "number" : "choice");
        json.add("question", e.question)
            .add("options", array_of(e.options, [](const auto& option) { return option.text; }))
            .add("ids", array_of(e.options, [](const auto& option) { return std::string(1, option.id); }))
            .add("mistakes", array_of(e.options, [](const auto& option) { return option.mistake; }))
            .add("answer", e.answer + 1)
            .add("hints", std::vector{e.hints.question, e.hints.pointer})
            .add("why", e.why);
        if (e.is_typed) json.add("within", e.within);
        return json;
    }
    Object operator()(const Reveal& e) const {
        const Prediction& asked = e.prediction;
        const auto tried = [&](const Try& one) {
            return Object()
                .add("id", one.choice ? std::string(1, asked.options[*one.choice].id) : "")
                .add("typed", one.typed)
                .add("right", asked.is_right(one));
        };
        return with("reveal")
            .add("id", asked.id)
            .add("answer", asked.answer + 1)
            .add("text", asked.options[asked.answer].text)
            .add("why", asked.why)
            .add("tries", array_of(e.tries, tried));
    }
    Object operator()(const Check& e) const {
        Object json = with("check").add("name", e.name).add("ok", e.ok);
        if (e.exact) json.add("exact", *e.exact);
        if (e.close) json.add("close", *e.close);
        if (e.max_diff) json.add("max_diff", *e.max_diff);
        if (e.bound) json.add("bound", *e.bound);
        return json.add("detail", e.detail).add("file", e.file).add("line", e.line);
    }
    Object operator()(const Graph& e) const {
        return with("graph").add("name", e.name).add("svg", e.svg).add("dot", e.dot).add("text", e.text);
    }
    Object operator()(const Plot& e) const {
        const auto series = [](const Series& each) {
            return Object().add("label", each.label).add("x", each.x).add("y", each.y);
        };
        return with("plot")
            .add("name", e.name)
            .add("kind", e.bars ? "bars" : "points")
            .add("series", array_of(e.series, series));
    }
    Object operator()(const ProgressMade& e) const {
        return with("progress").add("name", e.name).add("done", e.done).add("total", e.total);
    }
    Object operator()(const End& e) const {
        Object json = head(lesson_, "end").add("outcome", to_string(e.outcome)).add("steps", e.steps);
        json.add("checks", e.checks).add("failed", e.failed).add("detail", e.detail);
        if (e.outcome == Outcome::fail)
            json.add("file", e.file)
                .add("line", e.line)
                .add("failed_step", e.failed_step)
                .add("with", e.with);
        return json;
    }

private:
    Object with(const char* event) const { return head(lesson_, event).add("step", step_); }

    const Lesson& lesson_;
    int step_;
    int digits_;
};
}  // namespace

std::string json_line(const Event& event, const Lesson& lesson, int digits) {
    return std::visit(Fields(lesson, event.step, digits), event.is).json();
}

std::string description(const Lesson& lesson) {
    static constexpr const char* kinds[] = {"whole", "real", "several"};
    const auto parameter = [](const LessonParameter& one) {
        return Object()
            .add("name", one.name)
            .add("meaning", one.meaning)
            .add("kind", kinds[static_cast<std::size_t>(one.kind)])
            .add("usual", one.usual)
            .add("least", one.least)
            .add("most", one.most)
            .add("among", one.among);
    };
    Object json = head(lesson, "lesson")
                      .add("title", lesson.title)
                      .add("minutes", lesson.minutes)
                      .add("steps", lesson.steps);
    if (!lesson.parameters.empty()) json.add("parameters", array_of(lesson.parameters, parameter));
    return json.json();
}

}  // namespace tally::lesson
