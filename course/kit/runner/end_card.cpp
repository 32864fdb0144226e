// Makes the card at the end of a lesson.
#include "course/kit/runner/end_card.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "course/kit/page.hpp"
#include "course/kit/text.hpp"

namespace tally::lesson {

namespace {
// Counts the learner's right answers: "2 of 3 at once, 1 more at the second try".
std::string to_text(const Predicted& all) {
    if (all.asked == 0) return {};
    std::string text = fmt::format("{} of {} at once", all.at_once, all.asked);
    if (all.later > 0) text += fmt::format(", {} more at the second try", all.later);
    if (all.skipped > 0) text += fmt::format(", {} skipped", all.skipped);
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
            parts.push_back(std::string(12, ' ') + std::string(command));  // not wrapped, for copying
        }
        for (auto& part : parts) lines.push_back(std::move(part));
    };
    const Page* page = ending.lesson.page.get();
    if (page != nullptr) add("The rule", page->rule);
    add("Predicted", to_text(predicted(ending.answers)));
    if (page != nullptr) {
        add("Try", page->attempt, page->command);
        for (const auto& exercise : page->exercises)
            if (const std::string check = "./learn check " + exercise; check != page->command)
                add("Write it", check);
    }
    if (!ending.answers.empty() && !ending.done)
        add("Open",
            fmt::format("Questions were skipped: ./learn run {} asks them again.", ending.lesson.slug));
    const std::size_t bar = 20, full = bar * ending.lessons_done / std::max<std::size_t>(ending.lessons, 1);
    add("So far", fmt::format("{}{}  {} of {} lessons", std::string(full, '#'), std::string(bar - full, '-'),
                              ending.lessons_done, ending.lessons));
    if (ending.next == nullptr) {
        add("Next", "That was the last lesson. ./learn score shows your results.");
    } else {
        const Page* next = ending.next->page.get();
        add("Next", fmt::format("./learn run {} ({} min{})", ending.next->slug, ending.next->minutes,
                                next == nullptr ? "" : fmt::format(", in class {}", next->minutes_in_class)));
    }
    return lines;
}

}  // namespace tally::lesson
