// Manages the files and the results of a learner.
#include "course/kit/runner/notebook.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "course/kit/files.hpp"

namespace tally::lesson {

namespace fs = std::filesystem;

namespace {
void rename(const std::string& path, const std::string& name) {
    std::error_code failed;
    fs::rename(path, name, failed);
    if (failed) throw WriteError(fmt::format("cannot rename {} to {}: {}", path, name, failed.message()));
}
}  // namespace

Notebook::Notebook(const std::string& work) : folder_(work + "/exercises"), answers_(work) {
    for (const auto& answer : answers_.all()) take(answer);
}

void Notebook::take(const AnswerRecord& answer) {
    if (answer.what != "exercise") return;
    Entry& entry = entries_[answer.of];
    if (answer.how == "hint") {
        ++entry.hints;
    } else if (answer.how == "shown") {
        entry.shown = true;
    } else if (answer.how == "reset") {
        entry.passed = false;
    } else {  // a try
        ++entry.tries;
        entry.passed = entry.passed || answer.how == "passed";
        const bool known =
            std::find(entry.mistakes.begin(), entry.mistakes.end(), answer.which) != entry.mistakes.end();
        if (!answer.which.empty() && !known) entry.mistakes.push_back(answer.which);
    }
}

void Notebook::note(const Exercise& exercise, const std::string& event, const std::string& mistake,
                    const std::string& sentence) {
    std::vector<AnswerRecord> more{{.what = "exercise",
                                    .of = exercise.slug,
                                    .how = event,
                                    .which = mistake,
                                    .sentence = mistake.empty() ? "" : sentence}};
    if (event == "passed") more.push_back({.what = "lesson", .of = exercise.lesson, .how = "done"});
    answers_.add(more);
    take(more.front());
}

bool Notebook::has(const Exercise& exercise) const {
    std::error_code unknown;
    return fs::exists(file(exercise), unknown);
}

void Notebook::write(const Exercise& exercise, const std::string& text) const {
    make_folder(folder_);
    write_whole(file(exercise), text);
}

std::string Notebook::keep(const Exercise& exercise) const {
    make_folder(folder_ + "/kept");
    const std::string name = free_name(folder_ + "/kept/" + exercise.name(), ".cpp");
    rename(file(exercise), name);
    return name;
}

}  // namespace tally::lesson
