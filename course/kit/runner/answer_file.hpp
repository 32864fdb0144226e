// Reads and writes WORK/answers, which contains every answer of the learner. No program sends this file.
#pragma once

#include <string>
#include <vector>

#include "course/kit/answers.hpp"

namespace tally::lesson {

// Stores the content of a file of answers. Lines that are not answers are counted as `broken`.
struct AnswersRead {
    std::vector<AnswerRecord> answers;
    std::size_t broken = 0;
    std::string first_broken;  // the beginning of the first broken line
};
AnswersRead read_answers(const std::string& path);  // throws WriteError if the file cannot be read

class AnswerFile {
public:
    // Reports broken lines on standard error and ignores them.
    explicit AnswerFile(const std::string& work);

    const std::vector<AnswerRecord>& all() const { return answers_; }
    // Adds all answers in `more`. If writing fails, adds no answer and throws WriteError.
    void add(const std::vector<AnswerRecord>& more);
    void require_writable() { add({}); }

    bool done(const std::string& lesson) const;  // the questions are answered, or the exercise is solved
    bool begun(const std::string& lesson) const;
    int left_at(const std::string& lesson) const;  // the step at which the learner left the lesson, or 1
    // Returns whether all questions so far were answered, or `from_its_start` if no question was asked.
    bool all_answered(const std::string& lesson, bool from_its_start) const;

private:
    std::string folder_, path_;
    std::vector<AnswerRecord> answers_;
};

}  // namespace tally::lesson
