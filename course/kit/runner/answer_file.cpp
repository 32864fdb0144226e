// Reads a file of answers and appends answers to the file.
#include "course/kit/runner/answer_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>

#include "course/kit/files.hpp"
#include "course/kit/flags.hpp"

namespace tally::lesson {

namespace fs = std::filesystem;

namespace {
[[noreturn]] void throw_write_error(const char* doing, const std::string& path, int error) {
    throw WriteError(fmt::format("cannot {} {}: {}", doing, path, std::generic_category().message(error)));
}

// Opens a file, and locks the file against other runners until the object is destroyed.
class Locked {
public:
    explicit Locked(const std::string& path) : path_(path) {
        file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (file_ < 0) throw_write_error("write", path_, errno);
        while (::flock(file_, LOCK_EX) != 0)
            if (errno != EINTR) {
                const int error = errno;
                ::close(file_);
                throw_write_error("lock", path_, error);
            }
    }
    ~Locked() { ::close(file_); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

    // Appends the complete text, or appends nothing if the disk is full.
    void append(std::string text) {
        const off_t size = ::lseek(file_, 0, SEEK_END);
        char last = '\n';
        if (size > 0 && ::pread(file_, &last, 1, size - 1) != 1) throw_write_error("read", path_, errno);
        if (last != '\n') text.insert(0, "\n");  // an interrupted write left an incomplete line
        if (size == 0) text.insert(0, std::string(answers_heading) + "\n");
        if (text.empty()) return;
        const ssize_t written = ::write(file_, text.data(), text.size());
        if (written == static_cast<ssize_t>(text.size())) return;
        const int error = written < 0 ? errno : ENOSPC;  // a partial write does not set errno
        if (written > 0 && ::ftruncate(file_, size) != 0) throw_write_error("repair", path_, errno);
        throw_write_error("write", path_, error);
    }

private:
    std::string path_;
    int file_ = -1;
};
}  // namespace

AnswersRead read_answers(const std::string& path) {
    AnswersRead read;
    std::ifstream file(path, std::ios::binary);
    std::error_code unknown;
    if (!file || fs::is_directory(path, unknown)) {
        if (!fs::exists(path, unknown) && !unknown) return read;
        throw WriteError(fmt::format("cannot read {}", path));
    }
    std::size_t number = 0;
    for (std::string line; std::getline(file, line); ++number) {
        if (number == 0 && line == answers_heading) continue;
        auto answer = parse_answer(line);
        if (answer)
            read.answers.push_back(std::move(*answer));
        else if (++read.broken == 1)
            read.first_broken = line.substr(0, 40);
    }
    return read;
}

AnswerFile::AnswerFile(const std::string& work) : folder_(work), path_(work + "/answers") {
    AnswersRead read = read_answers(path_);
    answers_ = std::move(read.answers);
    if (read.broken > 0)
        print_error("learn", fmt::format("{} has a line that is not an answer ('{}'): delete it", path_,
                                         in_one_line(read.first_broken)));
}

void AnswerFile::add(const std::vector<AnswerRecord>& more) {
    make_folder(folder_);
    std::string text;
    for (const auto& answer : more) text += line_of(answer) + "\n";
    Locked(path_).append(std::move(text));
    answers_.insert(answers_.end(), more.begin(), more.end());
}

bool AnswerFile::done(const std::string& lesson) const {
    bool done = false;
    for (const auto& answer : answers_) {
        if (answer.what != "lesson" || answer.of != lesson) continue;
        if (answer.how != "begun") done = answer.how == "done";
    }
    return done;
}

bool AnswerFile::all_answered(const std::string& lesson, bool from_its_start) const {
    // Question numbers start at 1 even if the lesson was started from a later step.
    std::size_t last = 0;
    std::set<std::size_t> answered;
    for (const auto& answer : answers_) {
        if (answer.what != "question" || answer.of != lesson) continue;
        std::size_t number = 0;
        std::from_chars(answer.number.data(), answer.number.data() + answer.number.size(), number);
        last = std::max(last, number);
        if (answer.how != "skipped") answered.insert(number);
    }
    return last > 0 ? answered.size() == last : from_its_start;
}

int AnswerFile::left_at(const std::string& lesson) const {
    int step = 1;
    for (const auto& answer : answers_)
        if (answer.what == "lesson" && answer.of == lesson)
            step = answer.number.empty() ? 1 : std::stoi(answer.number);
    return step;
}

bool AnswerFile::begun(const std::string& lesson) const {
    for (const auto& answer : answers_) {
        if (answer.what != "exercise" && answer.of == lesson) return true;
    }
    return false;
}

}  // namespace tally::lesson
