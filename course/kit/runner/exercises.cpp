// Finds exercises and reads their files.
#include "course/kit/runner/exercises.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "course/kit/child.hpp"
#include "course/kit/runner/choose.hpp"

namespace tally::lesson {

namespace {
Exercise parsed(const std::string& line) {
    const auto json = nlohmann::json::parse(line);
    Exercise exercise{.number = json.at("exercise"),
                      .slug = json.at("slug"),
                      .title = json.at("title"),
                      .minutes = json.at("minutes"),
                      .lesson = json.at("lesson"),
                      .functions = json.at("functions"),
                      .hints = json.at("hints"),
                      .why = json.at("why"),
                      .mistakes = {}};
    for (const auto& mistake : json.at("mistakes"))
        exercise.mistakes.emplace_back(mistake.at("name"), mistake.at("sentence"));
    return exercise;
}
}  // namespace

std::string Exercise::name() const {
    std::string name = slug;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

std::string Exercise::folder() const { return fmt::format("{:02}_{}", number, name()); }

std::string text_of(const std::string& path) {
    std::error_code unknown;
    if (std::filesystem::is_directory(path, unknown))
        throw std::runtime_error(path + " is a folder, not a file");
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file) throw std::runtime_error("cannot read " + path);
    return text;
}

Exercises::Exercises(const std::string& folder)
    : checks(folder + "/exercise-checks"), mistakes(folder + "/mistakes") {
    std::ifstream settings(folder + "/settings");
    std::getline(settings, sources);
    for (std::string word; std::getline(settings, word);)
        if (!word.empty()) compiler.push_back(word);
    if (compiler.empty())
        throw std::runtime_error(fmt::format("no exercises in {}; build them first", folder));
    std::istringstream lines(captured_from({checks}));
    try {
        for (std::string line; std::getline(lines, line);) all.push_back(parsed(line));
    } catch (const nlohmann::json::exception&) {
        throw std::runtime_error(fmt::format("{} does not list its exercises; build them again", checks));
    }
    if (all.empty()) throw std::runtime_error(fmt::format("{} has no exercises", checks));
}

const Exercise* Exercises::find(const std::string& which, std::string& message) const {
    std::vector<Named> names;
    for (const auto& exercise : all) {
        if (which == exercise.folder()) return &exercise;
        names.push_back({exercise.number, exercise.slug});
    }
    const auto found = find_named(names, which, "exercise", "./learn score", message);
    return found ? &all[*found] : nullptr;
}

std::string Exercises::starting_text(const Exercise& exercise) const {
    return text_of(fmt::format("{}/{}/task.cpp", sources, exercise.folder()));
}

std::string Exercises::answer(const Exercise& exercise, const std::string& name) const {
    const std::string path = name == "right" ? fmt::format("{}/{}/check.cpp", sources, exercise.folder())
                                             : fmt::format("{}/{}.mistakes.hpp", mistakes, exercise.folder());
    const std::string text = text_of(path), first = fmt::format("\nnamespace {} {{\n", name),
                      last = fmt::format("\n}}  // namespace {}\n", name);
    const std::size_t from = text.find(first), to = text.find(last);
    if (from == std::string::npos || to == std::string::npos)
        throw std::runtime_error(fmt::format("{} has no answer '{}'", path, name));
    return text.substr(from + first.size(), to + 1 - from - first.size());
}

std::string Exercises::whole_answer(const Exercise& exercise, const std::string& name) const {
    const std::string start = starting_text(exercise), include = "#include \"given.hpp\"\n";
    const std::size_t at = start.find(include);
    if (at == std::string::npos)
        throw std::runtime_error(fmt::format("{}/task.cpp does not include given.hpp", exercise.folder()));
    return start.substr(0, at + include.size()) + "\n" + answer(exercise, name);
}

std::string Exercises::given(const Exercise& exercise) const {
    return text_of(fmt::format("{}/{}/given.hpp", sources, exercise.folder()));
}

std::string Exercises::declaration(const Exercise& exercise, const std::string& function) const {
    const std::string given_text = given(exercise);
    std::smatch found;
    const std::regex declared("(?:^|\\n)([^\\n;/]*\\b" + function + "\\([^;]*?\\));");
    return std::regex_search(given_text, found, declared) ? found[1].str() : function;
}

}  // namespace tally::lesson
