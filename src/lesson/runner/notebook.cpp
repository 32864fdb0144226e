// Keeping what a learner has written, and how it went.
#include "tally/lesson/runner/notebook.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "tally/lesson/files.hpp"
#include "tally/lesson/flags.hpp"

namespace tally::lesson {

namespace fs = std::filesystem;

namespace {

// The first of PATH.1, PATH.2, ... that is not there yet.
std::string free_name(const std::string& path, const std::string& ending) {
    std::string name;
    std::error_code unknown;
    for (int number = 1; name.empty() || fs::exists(name, unknown); ++number)
        name = fmt::format("{}.{}{}", path, number, ending);
    return name;
}

void rename(const std::string& path, const std::string& name) {
    std::error_code failed;
    fs::rename(path, name, failed);
    if (failed) throw WriteError(fmt::format("cannot rename {} to {}: {}", path, name, failed.message()));
}

// As a disk that was full, or a kill, leaves it.
bool ends_within_a_line(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    return file.tellg() > 0 && file.seekg(-1, std::ios::end).get() != '\n';
}

}  // namespace

Notebook::Notebook(const std::string& work) : folder_(work + "/exercises") {
    const std::string log = folder_ + "/log";
    std::string understood, first;  // the lines that say something, and the first that does not
    bool broken = false;
    std::ifstream file(log);
    for (std::string line; std::getline(file, line);) {
        if (take(line)) {
            understood += line + "\n";
        } else if (!broken) {
            broken = true;
            first = line.substr(0, 40);
        }
    }
    if (!broken) return;
    const std::string aside = free_name(log, ".broken");
    write_whole(log + ".new", understood);
    rename(log, aside);
    rename(log + ".new", log);
    complain("learn", fmt::format("{} has a line that says nothing ('{}'): it is kept as {}, and the other "
                                  "lines go on in a new one",
                                  log, first, aside));
}

bool Notebook::take(const std::string& line) {
    std::istringstream words(line);
    std::string slug, event, detail;
    if (!(words >> slug >> event)) return false;
    words >> detail;
    Entry& entry = entries_[slug];
    if (event == "hint") {
        ++entry.hints;
    } else if (event == "shown") {
        entry.shown = true;
    } else if (event == "reset") {
        entry.passed = false;
    } else if (event == "passed" || event == "wrong" || event == "error") {
        ++entry.tries;
        entry.passed = entry.passed || event == "passed";
        if (!detail.empty() &&
            std::find(entry.mistakes.begin(), entry.mistakes.end(), detail) == entry.mistakes.end())
            entry.mistakes.push_back(detail);
    } else {
        return false;
    }
    return true;
}

void Notebook::note(const Exercise& exercise, const std::string& event, const std::string& detail) {
    make_folder(folder_);
    const std::string log = folder_ + "/log";
    const std::string line = fmt::format("{}{} {}{}{}\n", ends_within_a_line(log) ? "\n" : "", exercise.slug,
                                         event, detail.empty() ? "" : " ", detail);
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    const ssize_t written = file < 0 ? -1 : ::write(file, line.data(), line.size());
    if (written != static_cast<ssize_t>(line.size())) {
        const int error = written < 0 ? errno : ENOSPC;  // a part that was written sets no errno
        if (file >= 0) ::close(file);
        throw WriteError(fmt::format("cannot write {}: {}", log, std::generic_category().message(error)));
    }
    ::close(file);
    take(line);
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
    const std::string name = free_name(folder_ + "/kept/" + exercise.stem(), ".cpp");
    rename(file(exercise), name);
    return name;
}

}  // namespace tally::lesson
