// Implements the subcommands for exercises.
#include "course/kit/runner/practice.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "course/kit/child.hpp"
#include "course/kit/files.hpp"
#include "course/kit/runner/course.hpp"
#include "course/kit/runner/dev_check.hpp"
#include "course/kit/runner/exit.hpp"
#include "course/kit/runner/notebook.hpp"
#include "course/kit/runner/verdict.hpp"
#include "course/kit/text.hpp"
#include "course/kit/wording.hpp"

namespace tally::lesson {

namespace {
namespace fs = std::filesystem;

class Practice {
public:
    Practice(const Flags& flags, const std::string& built, const std::string& work)
        : flags_(flags), mode_(mode_for(flags, Environment::current())), exercises_(built), notebook_(work) {}

    int check(const std::string& which, bool watch) {
        const Exercise* exercise = which.empty() ? next() : named(which);
        if (exercise == nullptr) return which.empty() ? good : usage;
        if (watch && !mode_.not_waiting.empty()) {
            print_error("learn", fmt::format("check --watch waits for you to save: {}", mode_.not_waiting));
            return usage;
        }
        const bool begun = begin(*exercise);
        return watch ? watch_over(*exercise) : begun ? skipped : check_once(*exercise);
    }

    int hint(const std::string& which) {
        const Exercise* exercise = which.empty() ? begun() : named(which);
        if (exercise == nullptr) return usage;
        const std::size_t number = static_cast<std::size_t>(notebook_.entry(*exercise).hints);
        const std::size_t all = exercise->hints.size(), shown = std::min(number, all - 1);
        if (number < all) notebook_.note(*exercise, "hint");
        if (flags_.json)
            return answered(*exercise, {{"hint", shown + 1}, {"of", all}, {"text", exercise->hints[shown]}});
        say(fmt::format("Hint {} of {} for {}: {}", shown + 1, all, exercise->slug, exercise->hints[shown]));
        if (number >= all)
            say("That was the last one. ./learn solution " + exercise->slug + " --yes shows an answer.");
        return good;
    }

    int reset(const std::string& which) {
        const Exercise* exercise = named(which);
        if (exercise == nullptr) return usage;
        const std::string file = notebook_.file(*exercise);
        if (!notebook_.has(*exercise)) {
            begin(*exercise);
            return good;
        }
        if (!flags_.yes && !agreed(fmt::format("Begin {} again? Your text will be kept.", shortened(file))))
            return usage;
        const std::string start = exercises_.starting_text(*exercise);  // this may throw, so it is first
        const std::string kept = notebook_.keep(*exercise);
        try {
            notebook_.write(*exercise, start);
            notebook_.note(*exercise, "reset");
        } catch (const WriteError& error) {
            throw WriteError(fmt::format("{}; your text is in {}", error.what(), kept));
        }
        if (flags_.json) return answered(*exercise, {{"file", file}, {"kept", kept}});
        say(fmt::format("{} is reset; your text is in {}.", shortened(file), shortened(kept)));
        return good;
    }

    int solution(const std::string& which) {
        const Exercise* exercise = named(which);
        if (exercise == nullptr) return usage;
        const Entry& entry = notebook_.entry(*exercise);
        if (!entry.passed && !flags_.yes) {
            print_error(
                "learn",
                fmt::format("{0} has not passed yet; ./learn hint {0} helps, and --yes shows the answer",
                            exercise->slug));
            return usage;
        }
        if (!entry.passed) notebook_.note(*exercise, "shown");
        const std::string text = exercises_.answer(*exercise, "right");
        if (flags_.json) return answered(*exercise, {{"answer", text}, {"why", exercise->why}});
        print(text);
        say(exercise->why);
        return good;
    }

    int score(const std::vector<Program>& lessons) {
        print_lessons(lessons);
        int passed = 0;
        for (const auto& exercise : exercises_.all) {
            const Entry& entry = notebook_.entry(exercise);
            passed += entry.passed ? 1 : 0;
            const std::string state = entry.passed ? "passed" : notebook_.has(exercise) ? "begun" : "open";
            if (flags_.json) {
                print(nlohmann::ordered_json{{"v", 1},
                                             {"exercise", exercise.number},
                                             {"slug", exercise.slug},
                                             {"state", state},
                                             {"tries", entry.tries},
                                             {"hints", entry.hints},
                                             {"shown", entry.shown},
                                             {"mistakes", entry.mistakes}}
                          .dump());
                continue;
            }
            std::string line = fmt::format("{:>3}  {:<18}  {:>3} min  {:<6}", exercise.number, exercise.slug,
                                           exercise.minutes, state);
            std::vector<std::string> how;
            if (entry.tries > 0) how.push_back(many(entry.tries, "tries"));
            if (entry.hints > 0) how.push_back(many(entry.hints, "hints"));
            if (entry.shown) how.push_back("answer shown");
            print(line + (how.empty() ? "" : "  " + joined(how, ", ")));
        }
        if (!flags_.json) print(fmt::format("{} of {} passed", passed, exercises_.all.size()));
        return good;
    }

    int dev_check(const std::string& which) {
        std::vector<const Exercise*> chosen;
        for (const auto& exercise : exercises_.all) chosen.push_back(&exercise);
        if (!which.empty()) chosen = {named(which)};
        if (chosen.front() == nullptr) return usage;
        return check_the_exercises(exercises_, chosen, flags_.seed) ? good : check_failed;
    }

private:
    static void print(const std::string& line) { write_to(STDOUT_FILENO, line + "\n"); }

    void say(const std::string& text, std::size_t indent = 0) const {
        const std::string margin(indent, ' ');
        for (const auto& line : wrapped(margin + (mode_.style.ascii ? to_ascii(text) : text),
                                        std::min<std::size_t>(mode_.style.width, 80), indent))
            print(line);
    }

    static int answered(const Exercise& exercise, const nlohmann::ordered_json& what) {
        nlohmann::ordered_json json{{"v", 1}, {"exercise", exercise.number}, {"slug", exercise.slug}};
        json.update(what);
        print(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        return good;
    }

    static std::string shortened(const std::string& path) {  // makes paths in the current folder relative
        std::error_code elsewhere;
        const auto relative = fs::relative(path, elsewhere);
        return elsewhere || relative.string().rfind("..", 0) == 0 ? path : relative.string();
    }

    const Exercise* named(const std::string& which) const {
        std::string message;
        const Exercise* exercise = exercises_.find(which, message);
        if (exercise == nullptr) print_error("learn", message);
        return exercise;
    }

    void print_lessons(const std::vector<Program>& lessons) const {
        const auto done = std::count_if(lessons.begin(), lessons.end(), [&](const Program& program) {
            return notebook_.answers().done(program.lesson.slug);
        });
        const Predicted all = predicted(notebook_.answers().all());
        if (flags_.json) {
            print(nlohmann::ordered_json{{"v", 1},
                                         {"lessons", lessons.size()},
                                         {"done", done},
                                         {"questions", all.asked - all.skipped},
                                         {"at_once", all.at_once},
                                         {"later", all.later}}
                      .dump());
            return;
        }
        print(fmt::format("{} of {} lessons are done; {} answered, {} of them at once, {} at the second try",
                          done, lessons.size(), many(all.asked - all.skipped, "questions"), all.at_once,
                          all.later));
        for (const auto& [lesson, path] : lessons) {
            struct Asked {
                std::string last, question;
                bool missed = false;
            };
            std::map<std::string, Asked> questions;  // by number
            for (const auto& answer : notebook_.answers().all()) {
                if (answer.what != "question" || answer.of != lesson.slug) continue;
                Asked& asked = questions[answer.number];
                if (answer.how == "wrong") asked.missed = true;
                if (answer.how == "right" && asked.last != "wrong") asked.missed = false;  // at once
                asked.last = answer.how;
                asked.question = answer.question;
            }
            for (const auto& [number, asked] : questions)
                if (asked.missed)
                    say(fmt::format("  to repeat: question {} of {}: {}", number, lesson.slug,
                                    asked.question),
                        4);
        }
    }

    const Exercise* next() {
        for (const auto& exercise : exercises_.all)
            if (!notebook_.entry(exercise).passed) return &exercise;
        print(fmt::format("All {} exercises have passed. ./learn check SLUG checks one again.",
                          exercises_.all.size()));
        return nullptr;
    }

    // Returns the first exercise that the learner has begun and that has not passed.
    const Exercise* begun() {
        for (const auto& exercise : exercises_.all)
            if (notebook_.has(exercise) && !notebook_.entry(exercise).passed) return &exercise;
        print_error("learn", "hint: you have not begun an exercise; ./learn check begins the next one");
        return nullptr;
    }

    // Writes the starting file. Returns false if the learner already has a file for this exercise.
    bool begin(const Exercise& exercise) {
        if (notebook_.has(exercise)) return false;
        notebook_.write(exercise, exercises_.starting_text(exercise));
        if (flags_.json) {
            answered(exercise, {{"judged", "begun"}, {"file", notebook_.file(exercise)}});
            return true;
        }
        say(fmt::format("Exercise {}, {}: {} ({} min; see ./learn run {})", exercise.number, exercise.slug,
                        exercise.title, exercise.minutes, exercise.lesson));
        say(fmt::format("{} is your file: open it, read the task, write the code and save.",
                        shortened(notebook_.file(exercise))));
        say(fmt::format("./learn check {} checks it, with --watch whenever you save.", exercise.slug));
        return true;
    }

    bool agreed(const std::string& question) const {
        if (!mode_.not_waiting.empty()) {
            print_error("learn", "cannot ask for a confirmation; add --yes: " + mode_.not_waiting);
            return false;
        }
        write_to(STDOUT_FILENO, question + " [y/N] ");
        std::string answer;
        std::getline(std::cin, answer);
        if (answer == "y" || answer == "Y" || answer == "yes") return true;
        print("Nothing was changed.");
        return false;
    }

    int check_once(const Exercise& exercise) {
        const std::string file = notebook_.file(exercise);
        const Verdict verdict = judge(exercises_, exercise, file, notebook_.scratch(), flags_.seed);
        if (verdict.end_signal != 0) throw AskedToEnd{verdict.end_signal};
        if (flags_.json) {
            print(json_of(exercise, verdict));
        } else {
            print_verdict(exercise, verdict);
        }
        if (verdict.judged == Judged::not_yet) return skipped;
        if (verdict.judged == Judged::passed) {
            notebook_.note(exercise, "passed");
            return good;
        }
        notebook_.note(exercise, verdict.judged == Judged::wrong ? "wrong" : "error", verdict.mistake,
                       verdict.sentence);
        return check_failed;
    }

    static std::string json_of(const Exercise& exercise, const Verdict& verdict) {
        const char* names[] = {"passed", "wrong", "todo", "does-not-compile", "broken"};
        return nlohmann::ordered_json{{"v", 1},
                                      {"exercise", exercise.number},
                                      {"slug", exercise.slug},
                                      {"judged", names[static_cast<int>(verdict.judged)]},
                                      {"mistake", verdict.mistake},
                                      {"sentence", verdict.sentence},
                                      {"where", verdict.where},
                                      {"shown", verdict.shown},
                                      {"parts", verdict.parts},
                                      {"trained", verdict.trained},
                                      {"cases", verdict.cases}}
            .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }

    void print_verdict(const Exercise& exercise, const Verdict& verdict) {
        const std::string file = shortened(notebook_.file(exercise));
        if (verdict.judged == Judged::passed) {
            print(painted(" [ok] ", Tone::good, mode_.style) +
                  fmt::format("{}: {}", exercise.slug, verdict.cases));
            for (const auto& sentence : verdict.trained) say(in_one_line(sentence), 6);
            say(exercise.why, 6);
            say("./learn solution " + exercise.slug + " shows our answer.", 6);
            print_next(exercise);
            return;
        }
        const bool todo = verdict.judged == Judged::not_yet;
        print(painted(todo ? " [todo] " : " [wrong] ", todo ? Tone::warn : Tone::bad, mode_.style) + file +
              (verdict.judged == Judged::not_compiled && !verdict.where.empty() ? ", " + verdict.where : ""));
        if (!verdict.parts.empty()) say(in_one_line(verdict.parts), 2);
        say(in_one_line(verdict.sentence), 2);
        if (flags_.quiet) return;
        if (verdict.judged == Judged::wrong || verdict.judged == Judged::broken) {
            if (!verdict.where.empty()) say("with " + verdict.where + (verdict.shown.empty() ? "." : ":"), 2);
        }
        for (const auto& line : verdict.shown)
            print("    " + in_one_line(mode_.style.ascii ? to_ascii(line) : line));
        if (!verdict.cases.empty()) say(verdict.cases, 2);
        say(fmt::format("./learn hint {} asks a question that helps.", exercise.slug), 2);
    }

    void print_next(const Exercise& passed) {
        for (const auto& exercise : exercises_.all) {
            if (exercise.slug == passed.slug || notebook_.entry(exercise).passed) continue;
            say(fmt::format("Next: ./learn check {} ({})", exercise.slug, exercise.title), 6);
            return;
        }
    }

    // Checks the file 100 ms after the learner's last change, because an editor may save a file in steps.
    // After an exercise has passed, watches the next one.
    int watch_over(const Exercise& first) {
        const Exercise* exercise = &first;
        std::string file = notebook_.file(first);
        const auto state = [&] {
            std::ifstream text(file, std::ios::binary);
            return std::string(std::istreambuf_iterator<char>(text), {});
        };
        std::optional<std::string> checked;
        for (auto seen = state();; seen = state()) {
            if (seen != checked) {
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                if (state() != seen || !notebook_.has(*exercise)) continue;
                checked = seen;
                if (check_once(*exercise) == good) {
                    exercise = next();
                    if (exercise == nullptr) return good;
                    begin(*exercise);
                    file = notebook_.file(*exercise);
                    checked = state();
                }
                print(fmt::format("watching {} (Ctrl-C ends)", shortened(file)));
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
        }
    }

    const Flags& flags_;
    Mode mode_;
    Exercises exercises_;
    Notebook notebook_;
};
}  // namespace

void add_practice(CLI::App& app, PracticeWords& words) {
    words.check = app.add_subcommand("check", "check your answer to an exercise (default: the next one)");
    words.check->add_option("SLUG", words.which, "a slug or a part of one, or a number");
    words.check->add_flag("--watch", words.watch, "again whenever you save a change");
    words.hint = app.add_subcommand("hint", "the next hint: a question, a pointer, almost the code");
    words.reset = app.add_subcommand("reset", "begin an exercise again (asks; yours is kept)");
    words.solution = app.add_subcommand("solution", "an answer, after yours has passed (or with --yes)");
    words.hint->add_option("SLUG", words.which, "a slug or a part of one, or a number (default: the next)");
    for (auto* one : {words.reset, words.solution})
        one->add_option("SLUG", words.which, "a slug or a part of one, or a number")->required();
    words.score = app.add_subcommand("score", "your results in lessons and exercises");
    words.dev_check =
        app.add_subcommand("dev-check", "check that each exercise recognises its answer and its mistakes");
    words.dev_check->add_option("SLUG", words.which, "only this one");
}

bool asked_for_practice(const PracticeWords& words) {
    for (const CLI::App* one :
         {words.check, words.hint, words.reset, words.solution, words.score, words.dev_check})
        if (*one) return true;
    return false;
}

int practice(const PracticeWords& words, const Flags& flags, const std::string& built,
             const std::string& lessons, const std::string& work) {
    if (!flags.settings.empty()) {
        print_error("learn", settings_text(flags) + " is for lessons; exercises have no parameters");
        return usage;
    }
    Practice doing(flags, built, work);
    if (*words.hint) return doing.hint(words.which);
    if (*words.reset) return doing.reset(words.which);
    if (*words.solution) return doing.solution(words.which);
    if (*words.score) return doing.score(find_programs(lessons));
    if (*words.dev_check) return doing.dev_check(words.which);
    return doing.check(words.which, words.watch);
}

}  // namespace tally::lesson
