// Converts answers to lines of text.
#include "course/kit/answers.hpp"

#include <fmt/format.h>

#include <limits>

#include "tally/base/text.hpp"

namespace tally::lesson {

std::string answer_lines(const Reveal& reveal, const std::string& lesson) {
    const Prediction& asked = reveal.prediction;
    // Control characters would end the field or the line.
    const auto field = [](const std::string& text) {
        return detail::clean_text(text, std::numeric_limits<int>::max());
    };
    const auto line = [&](std::string_view how, std::string_view which, const std::string& given,
                          const std::string& reply) {
        return fmt::format("question\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", lesson, asked.id, how, which,
                           field(given), field(reply), field(asked.question));
    };
    if (reveal.tries.empty()) return line("skipped", "", "", "");
    std::string lines;
    for (const Try& one : reveal.tries) {
        const auto* option = one.choice ? &asked.options[*one.choice] : nullptr;
        const bool right = asked.is_right(one);
        lines +=
            line(right ? "right" : "wrong", option ? std::string_view(&option->id, 1) : "",
                 option && !asked.is_typed ? option->text : one.typed, right ? "" : reply_to(asked, one));
    }
    return lines;
}

}  // namespace tally::lesson
