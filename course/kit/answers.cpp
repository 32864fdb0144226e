// Converts answers to lines of text, and lines of text to answers.
#include "course/kit/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "course/kit/text.hpp"
#include "tally/base/text.hpp"

namespace tally::lesson {

namespace {
constexpr std::array fields{&AnswerRecord::what,     &AnswerRecord::of,      &AnswerRecord::number,
                            &AnswerRecord::how,      &AnswerRecord::which,   &AnswerRecord::given,
                            &AnswerRecord::sentence, &AnswerRecord::question};

bool one_of(const std::string& word, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_valid(const AnswerRecord& answer) {
    const auto& [what, of, number, how, which, given, sentence, question] = answer;
    const auto is_name = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    };
    if (of.empty() || !std::all_of(of.begin(), of.end(), is_name) ||
        !std::all_of(which.begin(), which.end(), is_name))
        return false;
    const bool counts = !number.empty() && number.size() < 3 && number.front() != '0' &&
                        number.find_first_not_of("0123456789") == std::string::npos;
    if (what == "lesson")
        return one_of(how, {"done", "begun", "failed"}) && (number.empty() || (how == "begun" && counts));
    if (what == "exercise") return one_of(how, {"passed", "wrong", "error", "hint", "shown", "reset"});
    return what == "question" && counts && one_of(how, {"right", "wrong", "skipped"});
}
}  // namespace

std::string in_one_line(const std::string& text) {
    return detail::clean_text(text, std::numeric_limits<int>::max());
}

std::string line_of(const AnswerRecord& answer) {
    std::vector<std::string> texts;
    for (const auto field : fields) texts.push_back(in_one_line(answer.*field));
    return joined(texts, "\t");
}

std::optional<AnswerRecord> parse_answer(const std::string& line) {
    AnswerRecord answer;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const std::size_t end = line.find('\t', begin);
        if ((end == std::string::npos) != (i + 1 == fields.size())) return std::nullopt;
        answer.*fields[i] = line.substr(begin, end == std::string::npos ? end : end - begin);
        if (answer.*fields[i] != in_one_line(answer.*fields[i])) return std::nullopt;
        begin = end + 1;
    }
    if (!is_valid(answer)) return std::nullopt;
    return answer;
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

Predicted predicted(const std::vector<AnswerRecord>& answers) {
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> tries;  // by lesson and question
    for (const auto& answer : answers) {
        if (answer.what != "question") continue;
        auto& of_this = tries[{answer.of, answer.number}];
        if (answer.how != "skipped") of_this.push_back(answer.how);
    }
    Predicted all;
    for (const auto& [question, how] : tries) {
        ++all.asked;
        if (how.empty()) {
            ++all.skipped;
        } else if (how.front() == "right") {
            ++all.at_once;
        } else if (how.size() > 1 && how[1] == "right") {
            ++all.later;
        }
    }
    return all;
}

}  // namespace tally::lesson
