// Registers the lessons of a program. Each object file registers its lesson and scalar type before main().
#include "course/kit/talk.hpp"

#include <map>
#include <stdexcept>

namespace tally::lesson {

namespace {
void not_linked() { throw std::logic_error("[run_registered] the lesson was not linked for this type"); }

struct RegisteredLesson {
    Lesson lesson;
    void (*in_float)() = not_linked;
    void (*in_double)() = not_linked;
};

std::map<int, RegisteredLesson>& registered() {
    static std::map<int, RegisteredLesson> all;
    return all;
}
}  // namespace

void register_lesson(const Lesson& lesson, bool in_double, void (*talk)()) {
    RegisteredLesson& registered_lesson = registered()[lesson.number];
    registered_lesson.lesson = lesson;
    (in_double ? registered_lesson.in_double : registered_lesson.in_float) = talk;
}

int run_registered(int argc, const char* const* argv, int number) {
    const auto found = number != 0 ? registered().find(number) : registered().begin();
    if (found == registered().end()) throw std::logic_error("[run_registered] no lesson was linked");
    const RegisteredLesson& registered_lesson = found->second;
    return run(argc, argv, registered_lesson.lesson, registered_lesson.in_float, registered_lesson.in_double);
}

}  // namespace tally::lesson
