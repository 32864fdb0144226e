// Converts events to lines of JSON as described in docs/lesson-events.schema.json.
#include "course/kit/json.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "course/kit/layout.hpp"
#include "course/kit/text.hpp"

namespace tally::lesson {

namespace {
using Json = nlohmann::ordered_json;

// JSON has no infinities and no NaN, so these values are written as strings.
Json number(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
}

Json number(double value, Numbers::Type type) {
    const bool whole = type == Numbers::Type::integer && std::abs(value) <= 9007199254740992.0;
    return whole ? Json(static_cast<std::int64_t>(value)) : number(value);
}

Json nested(const Numbers& numbers, std::size_t axis, std::size_t& at) {
    if (axis == numbers.shape.size()) return number(numbers.values[at++], numbers.type);
    Json list = Json::array();
    for (std::int64_t i = 0; i < numbers.shape[axis]; ++i) list.push_back(nested(numbers, axis + 1, at));
    return list;
}

Json values_of(const Cell& cell) {
    if (cell.is_words) return cell.words;
    if (cell.numbers.missing) return nullptr;
    std::size_t at = 0;
    return nested(cell.numbers, 0, at);
}

std::string text_of(const Cell& cell, int digits) {
    if (cell.is_words) return cell.words;
    const std::string text = joined(lines_of(cell.numbers, digits), "\n");
    return text.substr(
        std::min(text.find_first_not_of(' '), text.size()));  // a single number is padded only on screen
}

Json numbers_in(const std::vector<double>& list) {
    Json values = Json::array();
    for (double value : list) values.push_back(number(value));
    return values;
}

Json head(const Lesson& lesson, const char* event) {
    return {{"v", 1}, {"lesson", lesson.number}, {"slug", lesson.slug}, {"event", event}};
}

class Fields {
public:
    Fields(const Lesson& lesson, int step, int digits) : lesson_(lesson), step_(step), digits_(digits) {}

    Json operator()(const Title& e) const {
        Json json = head(lesson_, "title");
        json.update({{"title", lesson_.title},
                     {"minutes", lesson_.minutes},
                     {"steps", lesson_.steps},
                     {"device", e.device},
                     {"seed", e.seed}});
        if (!e.settings.empty()) json["settings"] = e.settings;
        return json;
    }
    Json operator()(const Sentence& e) const {
        return with("sentence",
                    {{"role", e.role == Sentence::Role::step ? "step" : "note"}, {"text", e.text}});
    }
    Json operator()(const Source& e) const {
        return with("source", {{"file", e.file}, {"line", e.line}, {"text", joined(e.lines, "\n")}});
    }
    Json operator()(const Tensor& e) const {
        Json json = with("tensor", {{"name", e.name}});
        if (!e.value.is_words && !e.value.numbers.missing) {
            json.update({{"dtype", to_string(e.value.numbers.type)}, {"shape", e.value.numbers.shape}});
        }
        json.update({{"values", values_of(e.value)}, {"text", text_of(e.value, digits_)}});
        return json;
    }
    Json operator()(const TableShown& e) const {
        Json values = Json::array(), text = Json::array();
        for (const auto& row : e.rows) {
            Json row_values = Json::array(), row_text = Json::array();
            for (const auto& cell : row) {
                row_values.push_back(values_of(cell));
                row_text.push_back(text_of(cell, digits_));
            }
            values.push_back(row_values);
            text.push_back(row_text);
        }
        return with("table", {{"columns", e.columns}, {"values", values}, {"text", text}});
    }
    Json operator()(const Prediction& e) const {
        Json options = Json::array(), ids = Json::array(), mistakes = Json::array();
        for (const auto& option : e.options) {
            options.push_back(option.text);
            ids.push_back(std::string(1, option.id));
            mistakes.push_back(option.mistake);
        }
        Json json = with("prediction", {{"id", e.id},
                                        {"kind", e.is_typed ? "number" : "choice"},
                                        {"question", e.question},
                                        {"options", options},
                                        {"ids", ids},
                                        {"mistakes", mistakes},
                                        {"answer", e.answer + 1},
                                        {"hints", {e.hints.question, e.hints.pointer}},
                                        {"why", e.why}});
        if (e.is_typed) json["within"] = number(e.within);
        return json;
    }
    Json operator()(const Reveal& e) const {
        const auto& prediction = e.prediction;
        Json tries = Json::array();
        for (const auto& one : e.tries) {
            const auto id = one.choice ? std::string(1, prediction.options[*one.choice].id) : "";
            tries.push_back({{"id", id}, {"typed", one.typed}, {"right", prediction.is_right(one)}});
        }
        return with("reveal", {{"id", prediction.id},
                               {"answer", prediction.answer + 1},
                               {"text", prediction.options[prediction.answer].text},
                               {"why", prediction.why},
                               {"tries", tries}});
    }
    Json operator()(const Check& e) const {
        Json json = with("check", {{"name", e.name}, {"ok", e.ok}});
        if (e.exact) json["exact"] = *e.exact;
        if (e.close) json["close"] = *e.close;
        if (e.max_diff) json["max_diff"] = number(*e.max_diff);
        if (e.bound) json["bound"] = number(*e.bound);
        json.update({{"detail", e.detail}, {"file", e.file}, {"line", e.line}});
        return json;
    }
    Json operator()(const Graph& e) const {
        return with("graph", {{"name", e.name}, {"svg", e.svg}, {"dot", e.dot}, {"text", e.text}});
    }
    Json operator()(const Plot& e) const {
        Json series = Json::array();
        for (const auto& s : e.series) {
            series.push_back({{"label", s.label}, {"x", numbers_in(s.x)}, {"y", numbers_in(s.y)}});
        }
        return with("plot", {{"name", e.name}, {"kind", e.bars ? "bars" : "points"}, {"series", series}});
    }
    Json operator()(const ProgressMade& e) const {
        return with("progress", {{"name", e.name}, {"done", e.done}, {"total", e.total}});
    }
    Json operator()(const End& e) const {
        Json json = head(lesson_, "end");
        json.update({{"outcome", to_string(e.outcome)},
                     {"steps", e.steps},
                     {"checks", e.checks},
                     {"failed", e.failed},
                     {"detail", e.detail}});
        if (e.outcome == Outcome::fail)
            json.update(
                {{"file", e.file}, {"line", e.line}, {"failed_step", e.failed_step}, {"with", e.with}});
        return json;
    }

private:
    Json with(const char* event, const Json& fields) const {
        Json json = head(lesson_, event);
        json["step"] = step_;
        json.update(fields);
        return json;
    }

    const Lesson& lesson_;
    int step_;
    int digits_;
};

// Replaces invalid UTF-8 instead of throwing, so that invalid text does not stop a lesson.
std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }
}  // namespace

std::string json_line(const Event& event, const Lesson& lesson, int digits) {
    return dumped(std::visit(Fields(lesson, event.step, digits), event.is));
}

namespace {
const char* const kinds[] = {"whole", "real", "several"};

Json parameters_of(const Lesson& lesson) {
    Json all = Json::array();
    for (const auto& one : lesson.parameters)
        all.push_back({{"name", one.name},
                       {"meaning", one.meaning},
                       {"kind", kinds[static_cast<std::size_t>(one.kind)]},
                       {"usual", one.usual},
                       {"least", one.least},
                       {"most", one.most},
                       {"among", one.among}});
    return all;
}
}  // namespace

std::string description(const Lesson& lesson) {
    Json json = head(lesson, "lesson");
    json.update({{"title", lesson.title}, {"minutes", lesson.minutes}, {"steps", lesson.steps}});
    if (!lesson.parameters.empty()) json["parameters"] = parameters_of(lesson);
    return dumped(json);
}

}  // namespace tally::lesson
