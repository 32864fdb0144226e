// Checks the known answers to all exercises, and compares the verdicts with the expected verdicts.
#include "course/kit/runner/dev_check.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "course/kit/files.hpp"
#include "course/kit/runner/verdict.hpp"

namespace tally::lesson {

namespace {
constexpr double most_seconds = 5;  // CPU time for one answer
constexpr int most_lines = 40;      // lines of a starting file
constexpr std::size_t fewest_mistakes = 3, most_mistakes = 9, least_code = 12;

double seconds_of_children() {
    rusage used{};
    ::getrusage(RUSAGE_CHILDREN, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

class OneExercise {
public:
    OneExercise(const Exercises& exercises, const Exercise& exercise, std::uint64_t seed, std::string folder)
        : exercises_(exercises), exercise_(exercise), seed_(seed), folder_(std::move(folder)) {}

    std::vector<std::string> faults() {
        make_folder(folder_);
        check_texts();
        const Verdict start = judged("the beginning", exercises_.starting_text(exercise_));
        const bool explained =
            start.judged == Judged::not_yet || (start.judged == Judged::wrong && !start.mistake.empty());
        expect(explained, "the starting file neither reaches todo() nor is a known mistake", start);
        const Verdict right = judged("right", exercises_.whole_answer(exercise_, "right"));
        expect(right.judged == Judged::passed, "the answer does not pass", right);
        for (const auto& [name, sentence] : exercise_.mistakes) {
            const Verdict wrong = judged(name, exercises_.whole_answer(exercise_, name));
            expect(wrong.mistake == name && wrong.sentence == sentence,
                   fmt::format("the mistake {} is recognised as {}", name,
                               wrong.mistake.empty() ? "no known mistake" : wrong.mistake),
                   wrong);
        }
        return faults_;
    }

    double slowest() const { return slowest_; }
    int answers() const { return answers_; }

private:
    Verdict judged(const std::string& what, const std::string& text) {
        const std::string file = folder_ + "/" + exercise_.name() + ".cpp";
        write_whole(file, text);
        const double before = seconds_of_children();
        Verdict verdict = judge(exercises_, exercise_, file, folder_, seed_);
        const double seconds = seconds_of_children() - before;
        slowest_ = std::max(slowest_, seconds);
        ++answers_;
        if (seconds > most_seconds)
            faults_.push_back(fmt::format("{} took {:.1f} s; {} are the limit", what, seconds, most_seconds));
        return verdict;
    }

    void expect(bool holds, const std::string& fault, const Verdict& verdict) {
        if (holds) return;
        faults_.push_back(fmt::format("{}: {} {}", fault, verdict.sentence, verdict.where));
        for (const auto& line : verdict.shown) faults_.push_back("  " + line);
    }

    void check_texts() {
        const std::string start = exercises_.starting_text(exercise_);
        if (const auto lines = std::count(start.begin(), start.end(), '\n'); lines > most_lines)
            faults_.push_back(fmt::format("the file has {} lines; {} are the limit", lines, most_lines));
        if (exercise_.mistakes.size() < fewest_mistakes || exercise_.mistakes.size() > most_mistakes)
            faults_.push_back(fmt::format("it knows {} mistakes; {} to {} are required",
                                          exercise_.mistakes.size(), fewest_mistakes, most_mistakes));
        if (exercise_.hints.size() != 3)
            faults_.push_back("it does not have three hints: a question, a pointer, almost the code");
        if (!exercise_.hints.empty() && exercise_.hints.front().back() != '?')
            faults_.push_back("its first hint is not a question");
        std::string shown = start;
        for (const auto& hint : exercise_.hints) shown += "\n" + hint;
        for (const auto& [name, sentence] : exercise_.mistakes) shown += "\n" + sentence;
        std::istringstream lines(exercises_.answer(exercise_, "right"));
        for (std::string code; std::getline(lines, code);) {
            code.erase(0, code.find_first_not_of(' '));
            if (code.size() < least_code) continue;
            if (start.find(code) == std::string::npos && shown.find(code) != std::string::npos)
                faults_.push_back("a hint or a message contains a line of the answer: " + code);
        }
        if (start.find(exercises_.answer(exercise_, "right")) != std::string::npos)
            faults_.push_back("the file that a learner gets is the answer");
    }

    const Exercises& exercises_;
    const Exercise& exercise_;
    std::uint64_t seed_;
    std::string folder_;
    std::vector<std::string> faults_;
    double slowest_ = 0;
    int answers_ = 0;
};

// Checks one exercise in a child process of dev-check, and prints the problems that it finds.
int in_this_process(const Exercises& exercises, const Exercise& exercise, std::uint64_t seed,
                    const std::string& folder) {
    try {
        OneExercise one(exercises, exercise, seed, folder);
        const auto faults = one.faults();
        std::string text =
            fmt::format("exercise {:02} {:<18} {:>2} answers  {:<6}  slowest {:.1f} s\n", exercise.number,
                        exercise.slug, one.answers(), faults.empty() ? "[ok]" : "[FAIL]", one.slowest());
        for (const auto& fault : faults) text += "  " + fault + "\n";
        write_to(STDOUT_FILENO, text);
        return faults.empty() ? 0 : 1;
    } catch (const std::exception& error) {
        write_to(STDERR_FILENO, fmt::format("learn: {}: {}\n", exercise.slug, error.what()));
        return 1;
    }
}
}  // namespace

bool check_the_exercises(const Exercises& exercises, const std::vector<const Exercise*>& chosen,
                         std::uint64_t seed) {
    const auto start = std::chrono::steady_clock::now();
    std::string pattern = (std::filesystem::temp_directory_path() / "tally-dev-check-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw WriteError("cannot make a folder like " + pattern);
    const std::size_t max_running = std::max(1u, std::thread::hardware_concurrency());
    std::size_t running = 0, failed = 0, mistakes = 0;
    const auto wait_for_one = [&] {
        int status = 0;
        if (::wait(&status) < 0) return;
        --running;
        if (status != 0) ++failed;
    };
    for (const Exercise* exercise : chosen) {
        while (running >= max_running) wait_for_one();
        mistakes += exercise->mistakes.size();
        const pid_t pid = ::fork();
        if (pid == 0) ::_exit(in_this_process(exercises, *exercise, seed, pattern + "/" + exercise->name()));
        if (pid < 0) throw std::runtime_error("cannot fork");
        ++running;
    }
    while (running > 0) wait_for_one();
    std::error_code left;
    std::filesystem::remove_all(pattern, left);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    write_to(STDOUT_FILENO, fmt::format("{} exercises, {} known mistakes, {} FAIL, {:.0f} s\n", chosen.size(),
                                        mistakes, failed, seconds));
    return failed == 0;
}

}  // namespace tally::lesson
