// Finds the programs of lessons.
#include "course/kit/runner/course.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "course/kit/child.hpp"
#include "course/kit/json.hpp"
#include "course/kit/runner/choose.hpp"

namespace tally::lesson {

namespace fs = std::filesystem;

namespace {
const std::string prefix = "lesson_";

// Reads the description of a lesson from NN_slug.json. The build writes this file, because starting all
// lessons takes seconds. If the program is newer than NN_slug.json, asks the program for the description.
std::string description_of(const fs::path& program) {
    const auto kept = program.parent_path() / (program.filename().string().substr(prefix.size()) + ".json");
    std::error_code none;
    const auto when = fs::last_write_time(kept, none);
    std::string line;
    if (!none && when >= fs::last_write_time(program)) std::getline(std::ifstream(kept), line);
    return line.empty() ? captured_from({program.string(), "--describe"}) : line;
}

}  // namespace

std::vector<Program> find_programs(const std::string& folder) {
    std::vector<Program> programs;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(folder, missing)) {
        const std::string path = entry.path().string();
        const bool is_lesson = entry.path().filename().string().rfind(prefix, 0) == 0;
        if (!is_lesson || !entry.is_regular_file() || ::access(path.c_str(), X_OK) != 0) continue;
        const std::string described = description_of(entry.path());
        try {
            programs.push_back({parse_description(described), path});
        } catch (const std::exception&) {
            throw std::runtime_error(fmt::format("{} does not describe its lesson; build it again", path));
        }
    }
    if (programs.empty()) throw std::runtime_error(fmt::format("no lessons in {}; build them first", folder));
    std::sort(programs.begin(), programs.end(),
              [](const auto& a, const auto& b) { return a.lesson.number < b.lesson.number; });
    return programs;
}

const Program* find_program(const std::vector<Program>& programs, const std::string& which,
                            std::string& message) {
    std::vector<Named> names;
    for (const auto& [lesson, path] : programs) names.push_back({lesson.number, lesson.slug});
    const auto found = find_named(names, which, "lesson", "./learn list", message);
    return found ? &programs[*found] : nullptr;
}

}  // namespace tally::lesson
