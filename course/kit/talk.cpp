// Registers the lessons of a program. Each object file registers its lesson and scalar type before main().
#include "course/kit/talk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

#include "course/kit/page.hpp"

namespace tally::lesson {

namespace {
void not_linked() { throw std::logic_error("[run_registered] the lesson was not linked for this type"); }

struct RegisteredLesson {
    Lesson lesson;
    std::filesystem::path source = {};  // of a lesson with a page
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

namespace {
// Returns the number of lines that begin with a call of step() or ask().
int steps_in(const std::filesystem::path& source) {
    std::ifstream file(source);
    if (!file)
        throw std::runtime_error(
            fmt::format("{}: the source of this lesson cannot be read", source.string()));
    int steps = 0;
    for (std::string line; std::getline(file, line);) {
        line.erase(0, line.find_first_not_of(' '));
        steps += line.starts_with("step(") || line.starts_with("ask(");
    }
    return steps;
}

Lesson lesson_of(const std::filesystem::path& source, Lesson lesson) {
    lesson.page_path = std::filesystem::path(source).replace_extension(".md").string();
    const Page page = read_page(lesson.page_path);
    if (page.number != lesson.number)
        throw std::runtime_error(fmt::format("{}: the heading has the number {}, and the file name has {}",
                                             page.file, page.number, lesson.number));
    lesson.title = page.title;
    lesson.minutes = page.minutes;
    lesson.steps = steps_in(source);
    lesson.page = std::make_shared<const Page>(page);
    return lesson;
}
}  // namespace

bool register_source(const char* source, const char* device, const std::vector<LessonParameter>& parameters,
                     void (*talk)()) {
    const std::filesystem::path path(source);
    std::string slug = path.stem().string();
    const int number = std::stoi(slug);
    slug.erase(0, slug.find('_') + 1);
    std::replace(slug.begin(), slug.end(), '_', '-');
    RegisteredLesson& lesson = registered()[number];
    lesson.lesson = {.number = number,
                     .slug = slug,
                     .title = {},
                     .minutes = 0,
                     .steps = 0,
                     .dtype = {},
                     .device = device,
                     .parameters = parameters};
    lesson.source = path;
    lesson.in_float = talk;
    return true;
}

int run_registered(int argc, const char* const* argv, int number) {
    const auto found = number != 0 ? registered().find(number) : registered().begin();
    if (found == registered().end()) throw std::logic_error("[run_registered] no lesson was linked");
    const RegisteredLesson& registered_lesson = found->second;
    Lesson lesson = registered_lesson.lesson;
    if (!registered_lesson.source.empty()) lesson = lesson_of(registered_lesson.source, std::move(lesson));
    return run(argc, argv, lesson, registered_lesson.in_float, registered_lesson.in_double);
}

}  // namespace tally::lesson
