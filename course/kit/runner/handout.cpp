// Writes the handouts of lessons for a class.
#include "course/kit/runner/handout.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "course/kit/chart.hpp"
#include "course/kit/child.hpp"
#include "course/kit/files.hpp"
#include "course/kit/open_file.hpp"
#include "course/kit/page.hpp"
#include "course/kit/runner/exit.hpp"
#include "course/kit/text.hpp"
#include "tally/tools/xml.hpp"

namespace tally::lesson {

namespace {
using nlohmann::json;

constexpr const char* toy_lesson = "full-batch";

constexpr const char* style = R"(
body { font: 12pt/1.4 system-ui, sans-serif; color: #000; background: #fff; max-width: 46rem; margin: 1rem auto; padding: 0 1rem; }
h1 { font-size: 1.3em; border-bottom: 1px solid #000; } h2 { font-size: 1.05em; margin: 1em 0 0.2em; } p { margin: 0.3em 0; }
pre { font: 0.85em/1.3 ui-monospace, "DejaVu Sans Mono", monospace; background: #f2f2f2; padding: 0.4em 0.7em; white-space: pre-wrap; }
table { border-collapse: collapse; font-size: 0.9em; margin: 0.4em 0; } th, td { border: 1px solid #888; padding: 0.1em 0.6em; text-align: left; }
td { font-family: ui-monospace, "DejaVu Sans Mono", monospace; } img { max-width: 100%; }
.question { border: 1px solid #000; padding: 0.4em 0.8em; margin: 0.8em 0; break-inside: avoid; } .line { border-bottom: 1px solid #888; height: 1.9em; }
.boxes { font-family: monospace; } .small { color: #444; font-size: 0.85em; } pre, table, img { break-inside: avoid; }
section + section { break-before: page; } @media print { body { margin: 0; max-width: none; font-size: 11pt; } }
)";

std::string text_of(const json& event, const char* name) { return escape_xml(event.value(name, "")); }
std::string tagged(const char* tag, const std::string& inner) {
    return fmt::format("<{0}>{1}</{0}>\n", tag, inner);
}
std::string lines_to_write_on(int count) {
    std::string lines;
    while (count-- > 0) lines += "<div class=\"line\"></div>\n";
    return lines;
}

std::vector<json> events_of(const LessonEvents& told) {
    std::vector<json> events;
    std::istringstream lines(told.events);
    for (std::string line; std::getline(lines, line);) events.push_back(json::parse(line));
    return events;
}

std::string table(const json& event) {
    const auto row = [](const char* cell, const json& cells) {
        std::string all;
        for (const auto& one : cells)
            all += fmt::format("<{0}>{1}</{0}>", cell, escape_xml(one.get<std::string>()));
        return "<tr>" + all + "</tr>\n";
    };
    std::string rows = row("th", event["columns"]);
    for (const auto& cells : event["text"]) rows += row("td", cells);
    return "<table>\n" + rows + "</table>\n";
}

std::string chart(const json& event) {
    Plot plot{.name = event["name"], .bars = event["kind"] == "bars", .series = {}};
    for (const auto& one : event["series"]) plot.series.push_back({one["label"], one["x"], one["y"]});
    std::string lines;
    for (const auto& line : chart_lines(plot, 72, false)) lines += escape_xml(line) + "\n";
    return tagged("p", escape_xml(plot.name)) + tagged("pre", lines);
}

std::string tensor(const json& event) {
    const std::string text = text_of(event, "text");
    return tagged("pre",
                  text_of(event, "name") + (text.find('\n') == std::string::npos ? " = " : " =\n") + text);
}

std::string picture_in_words(const json& event) {
    const std::string svg = event.value("svg", "");
    const std::size_t tag = svg.find("<desc"), begin = svg.find('>', tag), end = svg.find("</desc>", tag);
    if (tag == std::string::npos || end == std::string::npos) return text_of(event, "name");
    return svg.substr(begin + 1, end - begin - 1);
}

std::string shown(const json& event) {
    const std::string kind = event["event"];
    if (kind == "sentence" && event["role"] == "step")
        return tagged("h2", fmt::format("{}. {}", event["step"].get<int>(), text_of(event, "text")));
    if (kind == "sentence") return tagged("p", text_of(event, "text"));
    if (kind == "source") return tagged("pre", text_of(event, "text"));
    if (kind == "tensor") return tensor(event);
    if (kind == "table") return table(event);
    if (kind == "plot") return chart(event);
    if (kind == "graph")
        return fmt::format("<p><img alt=\"{}\" src=\"data:image/svg+xml,{}\"></p>\n", picture_in_words(event),
                           percent_encoded(event.value("svg", "")));
    return "";
}

std::string question(const json& event) {
    std::string box = tagged(
        "p", fmt::format("<b>Question {}.</b> {}", event["id"].get<int>(), text_of(event, "question")));
    if (event["kind"] == "number") {
        box += tagged("p", "Alone: ______________ &nbsp; After talking: ______________");
    } else {
        box += "<p class=\"small\">Tick the first box alone, the second after talking.</p>\n";
        for (const auto& option : event["options"])
            box += tagged("p", "<span class=\"boxes\">☐ ☐</span> " + escape_xml(option.get<std::string>()));
    }
    return fmt::format("<div class=\"question\">\n{}<p class=\"small\">Because</p>\n{}</div>\n", box,
                       lines_to_write_on(2));
}

std::string answer(const json& event) {
    const std::size_t right = event["answer"].get<std::size_t>() - 1;
    std::string box = tagged(
        "p", fmt::format("<b>Question {}.</b> {}", event["id"].get<int>(), text_of(event, "question")));
    std::string options;
    for (std::size_t i = 0; i < event["options"].size(); ++i) {
        const std::string option = escape_xml(event["options"][i].get<std::string>());
        const std::string mistake = escape_xml(event["mistakes"][i].get<std::string>());
        options +=
            tagged("li", i == right ? fmt::format("<b>{} (right)</b> {}", option, text_of(event, "why"))
                                    : fmt::format("{}: {}", option, mistake));
    }
    box += tagged("ul", options);
    const auto& hints = event["hints"];
    for (const auto& hint : hints)
        box += tagged("p", "<span class=\"small\">Hint: " + escape_xml(hint.get<std::string>()) + "</span>");
    return "<div class=\"question\">\n" + box + "</div>\n";
}

std::string heading(const Lesson& lesson, const std::string& kind) {
    return tagged("h1", fmt::format("Lesson {}: {}{}", lesson.number, escape_xml(lesson.title), kind));
}

std::string page(const std::string& title, const std::string& body) {
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta "
        "charset=\"utf-8\">\n<title>{}</title>\n<style>{}</style>\n"
        "</head>\n<body>\n{}</body>\n</html>\n",
        title, style, body);
}

std::string students_part(const LessonEvents& told) {
    std::string opening, questions;
    for (const auto& event : events_of(told)) {
        if (event["event"] == "prediction")
            questions += question(event);
        else if (questions.empty() && event["event"] != "graph")  // pictures show answers
            opening += shown(event);
    }
    return heading(told.lesson, "") + opening + questions + "<p>What I keep of this lesson:</p>\n" +
           lines_to_write_on(3);
}

std::string teachers_part(const LessonEvents& told) {
    const Page* from = told.lesson.page.get();
    std::string body, minutes = fmt::format("{} minutes alone", told.lesson.minutes);
    if (from != nullptr) minutes += fmt::format(", {} in class", from->minutes_in_class);
    int checks = 0;
    for (const auto& event : events_of(told)) {
        const std::string kind = event["event"];
        if (kind == "title") minutes += fmt::format("; seed {}", event["seed"].get<std::uint64_t>());
        if (kind == "check") ++checks;
        body += kind == "prediction" ? answer(event) : shown(event);
    }
    body += tagged("p", fmt::format("{} checks hold.", checks));
    if (from != nullptr) {
        body += tagged("p", "To keep: " + escape_xml(from->rule));
        body += tagged("p", fmt::format("To try: {} <code>{}</code>", escape_xml(from->attempt),
                                        escape_xml(from->command)));
    }
    return heading(told.lesson, ", with answers") + tagged("p", minutes + ".") + body;
}

bool builds_on_toy(const std::vector<Program>& all, const std::string& slug) {
    if (slug == toy_lesson) return true;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Program& one) { return one.lesson.slug == slug; });
    if (found == all.end() || found->lesson.page == nullptr) return false;
    const auto& before = found->lesson.page->before;
    return std::any_of(before.begin(), before.end(),
                       [&](const std::string& each) { return builds_on_toy(all, each); });
}

// Runs a lesson and sets `code` to its exit code. Returns nullopt if the lesson is skipped or fails.
std::optional<LessonEvents> events_of_program(const Program& program, Flags silent, int& code) {
    silent.json = true;
    silent.step = silent.no_step = silent.present = false;
    silent.from = 1;
    std::vector<std::string> command{program.path};
    for (auto& word : arguments(silent)) command.push_back(std::move(word));
    ChildResult finished = run_capturing(command, STDOUT_FILENO);
    if (finished.end_signal != 0) throw AskedToEnd{finished.end_signal};
    code = finished.signal != 0 ? int{check_failed} : finished.code;
    if (code == good) return LessonEvents{program.lesson, std::move(finished.captured)};
    if (code == usage) return std::nullopt;  // the lesson has printed the error
    const char* why =
        code == Exit::skipped ? "cannot run here and is left out" : "does not pass: no sheet was written";
    print_error("learn", fmt::format("lesson {0} {1} (./learn run {0} says why)", program.lesson.slug, why));
    return std::nullopt;
}
}  // namespace

std::string students_sheet(const std::vector<LessonEvents>& lessons, const LessonEvents* toy) {
    std::string body = "<p>Name: ______________________________</p>\n";
    if (toy != nullptr) {
        std::string numbers;
        for (const auto& event : events_of(*toy))
            if (event["event"] == "tensor" && event["step"] == 1 && event.contains("shape"))
                numbers += tensor(event);
        body +=
            tagged(
                "h2",
                "The toy: six rows x, three weights w; the loss is the mean of the rows' products with w") +
            numbers;
    }
    for (const auto& told : lessons) body += "<section>\n" + students_part(told) + "</section>\n";
    return page("tally: questions", body);
}

std::string teachers_sheet(const std::vector<LessonEvents>& lessons) {
    std::string body;
    for (const auto& told : lessons) body += "<section>\n" + teachers_part(told) + "</section>\n";
    return page("tally: questions with answers", body);
}

int write_handout(const std::vector<Program>& all, const std::vector<const Program*>& chosen,
                  const Flags& flags, std::string file, const std::string& work) {
    if (file.empty())
        file = fmt::format("{}/handouts/{}.html", work,
                           chosen.size() == 1 ? chosen.front()->lesson.slug : "lessons");
    std::filesystem::path students = file, teachers = file;
    if (students.extension() != ".html") {
        print_error("learn", fmt::format("handout -o {}: the name must end in .html", file));
        return usage;
    }
    teachers.replace_extension(".answers.html");

    std::vector<LessonEvents> lessons;
    int worst = good;
    bool toys = false, shows_toy = false;
    for (const Program* program : chosen) {
        int code = good;
        if (auto told = events_of_program(*program, flags, code)) lessons.push_back(std::move(*told));
        if (code == usage) return usage;
        if (code != good && worst != check_failed) worst = code == Exit::skipped ? code : int{check_failed};
        toys = toys || (code == good && builds_on_toy(all, program->lesson.slug));
        shows_toy = shows_toy || program->lesson.slug == toy_lesson;
    }
    if (lessons.empty() || worst == check_failed) return worst;  // a sheet must not show wrong numbers

    std::optional<LessonEvents> toy;
    Flags default_flags = flags;
    default_flags.settings.clear();  // parameters apply to the chosen lessons only
    for (const Program& program : all)
        if (int code = good; toys && !shows_toy && program.lesson.slug == toy_lesson) {
            toy = events_of_program(program, default_flags, code);
            if (!toy) return code;
        }
    if (!students.parent_path().empty()) make_folder(students.parent_path().string());
    write_whole(students.string(), students_sheet(lessons, toy ? &*toy : nullptr));
    write_whole(teachers.string(), teachers_sheet(lessons));
    if (!flags.quiet && !flags.json)
        write_to(STDOUT_FILENO, fmt::format("wrote {}\nwrote {}\n", students.string(), teachers.string()));
    return good;
}

}  // namespace tally::lesson
