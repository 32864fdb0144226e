// Registers the lesson of a program before main().
#include "course/kit/talk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "course/kit/page.hpp"

namespace tally::lesson {

namespace {
struct Registered {
    std::filesystem::path source = {};
    std::string device = {};
    std::vector<LessonParameter> parameters = {};
    void (*talk)() = nullptr;
};

Registered& registered() {
    static Registered lesson;
    return lesson;
}

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
}  // namespace

bool register_source(const char* source, const char* device, const std::vector<LessonParameter>& parameters,
                     void (*talk)()) {
    registered() = {source, device, parameters, talk};
    return true;
}

int run_registered(int argc, const char* const* argv) {
    const Registered& program = registered();
    std::string slug = program.source.stem().string();
    const int number = std::stoi(slug);
    slug.erase(0, slug.find('_') + 1);
    std::replace(slug.begin(), slug.end(), '_', '-');
    const std::string page_path = std::filesystem::path(program.source).replace_extension(".md").string();
    const Page page = read_page(page_path);
    if (page.number != number)
        throw std::runtime_error(fmt::format("{}: the heading has the number {}, and the file name has {}",
                                             page.file, page.number, number));
    return run(argc, argv,
               {.number = number,
                .slug = slug,
                .title = page.title,
                .minutes = page.minutes,
                .steps = steps_in(program.source),
                .device = program.device,
                .parameters = program.parameters,
                .page = std::make_shared<const Page>(page),
                .page_path = page_path},
               program.talk);
}

}  // namespace tally::lesson
