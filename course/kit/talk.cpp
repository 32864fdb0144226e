// Registers the lessons of a program: each object registers the lesson for its scalar type before main().
#include "course/kit/talk.hpp"

#include <map>
#include <stdexcept>

namespace tally::lesson {

namespace {
void not_here() {
    throw std::logic_error(
        "[run_registered] the lesson's object for this type was not linked into this program");
}

struct Talks {
    Lesson lesson;
    void (*in_float)() = not_here;
    void (*in_double)() = not_here;
};

std::map<int, Talks>& registered() {
    static std::map<int, Talks> all;
    return all;
}
}  // namespace

void register_lesson(const Lesson& lesson, bool in_double, void (*talk)()) {
    Talks& talks = registered()[lesson.number];
    talks.lesson = lesson;
    (in_double ? talks.in_double : talks.in_float) = talk;
}

int run_registered(int argc, const char* const* argv, int number) {
    const auto found = number != 0 ? registered().find(number) : registered().begin();
    if (found == registered().end())
        throw std::logic_error("[run_registered] no lesson was linked into this program");
    const Talks& talks = found->second;
    return run(argc, argv, talks.lesson, talks.in_float, talks.in_double);
}

}  // namespace tally::lesson
