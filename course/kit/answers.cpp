// Converts answers to lines of text.
#include "course/kit/answers.hpp"

#include <array>
#include <limits>

#include "course/kit/text.hpp"
#include "tally/base/text.hpp"

namespace tally::lesson {

namespace {
constexpr std::array answer_fields{&AnswerRecord::what,     &AnswerRecord::of,      &AnswerRecord::number,
                                   &AnswerRecord::how,      &AnswerRecord::which,   &AnswerRecord::given,
                                   &AnswerRecord::sentence, &AnswerRecord::question};
}  // namespace

std::string line_of(const AnswerRecord& answer) {
    std::vector<std::string> texts;
    for (const auto field : answer_fields)
        texts.push_back(detail::clean_text(answer.*field, std::numeric_limits<int>::max()));
    return joined(texts, "\t");
}

std::vector<AnswerRecord> answers_of(const Reveal& reveal, const std::string& lesson) {
    const Prediction& asked = reveal.prediction;
    const AnswerRecord skipped{.what = "question",
                               .of = lesson,
                               .number = std::to_string(asked.id),
                               .how = "skipped",
                               .question = asked.question};
    std::vector<AnswerRecord> answers;
    for (const Try& one : reveal.tries) {
        AnswerRecord answer = skipped;
        const bool right = asked.is_right(one);
        answer.how = right ? "right" : "wrong";
        if (one.choice) answer.which = asked.options[*one.choice].id;
        answer.given = asked.is_typed || !one.choice ? one.typed : asked.options[*one.choice].text;
        if (!right) answer.sentence = reply_to(asked, one);
        answers.push_back(std::move(answer));
    }
    if (answers.empty()) answers.push_back(skipped);
    return answers;
}

}  // namespace tally::lesson
