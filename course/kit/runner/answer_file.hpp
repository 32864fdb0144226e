// WORK/answers: what a learner answered, tried and was told, a line each. Nothing of it leaves the machine.
#pragma once

#include <string>
#include <vector>

#include "course/kit/answers.hpp"

namespace tally::lesson {

// What stands in such a file; the lines that say nothing are only counted. Throws WriteError where it cannot be read.
struct AnswersRead {
    std::vector<Noted> answers;
    std::size_t broken = 0;
    std::string first_broken;  // its beginning
};
AnswersRead read_answers(const std::string& path);

class AnswerFile {
public:
    // Of a broken one what is understood counts; the rest is said.
    explicit AnswerFile(const std::string& work);

    const std::vector<Noted>& all() const { return answers_; }
    // All of them or, where it throws WriteError, none.
    void add(const std::vector<Noted>& more);
    void expect_writable() { add({}); }

    bool done(const std::string& lesson) const;  // its questions were answered, or its task was solved
    bool begun(const std::string& lesson) const;
    // Every question that was asked, and those before them; where none was, from its start none is there.
    bool all_answered(const std::string& lesson, bool from_its_start) const;

private:
    std::string folder_, path_;
    std::vector<Noted> answers_;
};

}  // namespace tally::lesson
