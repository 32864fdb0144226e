// The card at the end of a lesson.
#include "tally/lesson/runner/end_card.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tally/lesson/runner/syllabus.hpp"
#include "tally/lesson/text.hpp"

namespace tally::lesson {

namespace {

// "2 of 3 at once, 1 more at the second try". Nothing where nobody was asked.
std::string predicted(const std::vector<Noted>& answers) {
    std::map<std::string, std::vector<std::string>> tries;  // by question
    for (const auto& answer : answers)
        if (answer.what == "question") tries[answer.number].push_back(answer.how);
    if (tries.empty()) return {};
    int at_once = 0, later = 0, skipped = 0;
    for (const auto& [number, how] : tries) {
        at_once += how.front() == "right" ? 1 : 0;
        later += how.front() == "wrong" && how.back() == "right" ? 1 : 0;
        skipped += how.front() == "skipped" ? 1 : 0;
    }
    std::string text = fmt::format("{} of {} at once", at_once, tries.size());
    if (later > 0) text += fmt::format(", {} more at the second try", later);
    if (skipped > 0) text += fmt::format(", {} skipped", skipped);
    return text;
}

}  // namespace

std::vector<std::string> end_card(const Ending& ending, const Style& style) {
    std::vector<std::string> lines{""};
    const auto add = [&](std::string_view head, const std::string& text, std::string_view command = {}) {
        if (text.empty()) return;
        const std::string line = padded(head, 12) + (style.ascii ? to_ascii(text) : text);
        auto parts = wrapped(line, style.width, 12);
        if (!command.empty() && width_of(parts.back()) + 1 + command.size() <= style.width) {
            parts.back() += " " + std::string(command);
        } else if (!command.empty()) {
            parts.push_back(std::string(12, ' ') + std::string(command));  // whole, so that it can be copied
        }
        for (auto& part : parts) lines.push_back(std::move(part));
    };
    const Unit* unit = unit_of(ending.lesson.slug);
    if (unit != nullptr) add("The rule", std::string(unit->rule));
    add("Predicted", predicted(ending.answers));
    if (unit != nullptr) {
        add("Try", std::string(unit->attempt), unit->command);
        const std::string task = unit->task.empty() ? "" : "./learn check " + std::string(unit->task);
        if (task != unit->command) add("Write it", task);
    }
    if (!ending.answers.empty() && !ending.done)
        add("Open",
            fmt::format("Questions were skipped: ./learn run {} asks them again.", ending.lesson.slug));
    if (ending.next == nullptr) {
        add("Next", "That was the last lesson. ./learn score shows how it went.");
    } else {
        const Unit* after = unit_of(ending.next->slug);
        add("Next", fmt::format("./learn run {} ({} min{})", ending.next->slug, ending.next->minutes,
                                after == nullptr ? "" : fmt::format(", in class {}", after->in_class)));
    }
    return lines;
}

}  // namespace tally::lesson
