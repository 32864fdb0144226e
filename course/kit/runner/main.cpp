// Implements the program learn-runner, which ./learn calls after it has built everything.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "course/kit/child.hpp"
#include "course/kit/files.hpp"
#include "course/kit/json.hpp"
#include "course/kit/page.hpp"
#include "course/kit/runner/answer_file.hpp"
#include "course/kit/runner/course.hpp"
#include "course/kit/runner/doctor.hpp"
#include "course/kit/runner/end_card.hpp"
#include "course/kit/runner/exit.hpp"
#include "course/kit/runner/handout.hpp"
#include "course/kit/runner/misconceptions.hpp"
#include "course/kit/runner/practice.hpp"
#include "course/kit/terminal.hpp"
#include "course/kit/text.hpp"

namespace tally::lesson {

namespace {
void print(const std::string& line) { write_to(STDOUT_FILENO, line + "\n"); }

std::string work_folder() {
    const char* folder = std::getenv("TALLY_WORK");
    return folder == nullptr ? "work" : folder;
}

std::string sibling_folder(const char* started_as, const char* name) {
    std::error_code elsewhere;  // set if the system is not Linux
    const auto itself = std::filesystem::read_symlink("/proc/self/exe", elsewhere);
    return ((elsewhere ? std::filesystem::path(started_as) : itself).parent_path() / name).string();
}

class Runner {
public:
    Runner(const Flags& flags, const std::string& lessons)
        : flags_(flags),
          mode_(mode_for(flags, Environment::current())),
          programs_(find_programs(lessons)),
          answers_(work_folder()) {}

    int list() {
        const Lesson* next = first_open();
        for (const auto& [lesson, path] : programs_) {
            const std::string status = answers_.done(lesson.slug)                     ? "done"
                                       : next != nullptr && next->slug == lesson.slug ? "next"
                                       : answers_.begun(lesson.slug)                  ? "begun"
                                                                                      : "open";
            if (flags_.json) {
                print(description(lesson, status));
                continue;
            }
            const Page* page = lesson.page.get();
            const std::string after = page == nullptr ? "" : joined(page->before, ", ");
            const std::string line =
                fmt::format("{:>3}  {:<20}  {:>3} min, in class {:>3}  {:<5}  {}", lesson.number, lesson.slug,
                            lesson.minutes, page == nullptr ? lesson.minutes : page->minutes_in_class, status,
                            after.empty() ? "" : "after " + after);
            print(line.substr(0, line.find_last_not_of(' ') + 1));
        }
        return good;
    }

    int next() {
        int code = good;
        for (const auto& program : programs_) {
            if (answers_.done(program.lesson.slug)) continue;
            const int from = learner_answers() && flags_.from == 1
                                 ? std::min(answers_.left_at(program.lesson.slug), program.lesson.steps)
                                 : 1;
            if (from > 1)
                print(fmt::format("Lesson {} goes on at step {}. ./learn run {} begins at step 1.",
                                  program.lesson.slug, from, program.lesson.slug));
            code = run({&program}, from);
            if (code == good && learner_answers() && answers_.done(program.lesson.slug) && wants_next())
                continue;
            if (code != Exit::skipped) return code;  // else this lesson cannot run here: tries the next
        }
        if (code == Exit::skipped) return code;
        print(fmt::format(
            "All {} lessons are done. ./learn run WHICH shows one again; ./learn list shows their names.",
            programs_.size()));
        return good;
    }

    int run_all() {
        std::vector<const Program*> all;
        for (const auto& program : programs_) all.push_back(&program);
        return run(all);
    }

    int next_or_all() {
        if (mode_.not_waiting == "TERM is dumb") {  // a user is present, but this terminal has no step mode
            print_error("learn",
                        "TERM is dumb: one lesson, and nothing waits; ./learn run all runs all of them");
            return next();
        }
        return mode_.not_waiting.empty() ? next() : run_all();
    }

    int run_named(const std::string& which) {
        const Program* program = named(which);
        return program == nullptr ? usage : run({program});
    }

    int help(const std::string& which, const std::string& of_all) {
        if (which == "all") {
            print(of_all);
            return good;
        }
        const Program* program = named(which);
        return program == nullptr ? usage : run_reporting({program->path, "--help"}).code;
    }

    int graph(const std::string& which, const std::string& file) {
        const Program* program = named(which);
        if (program == nullptr) return usage;
        auto command = command_for(*program);
        command.push_back(fmt::format("--graph={}", file));
        const ChildResult finished = run_reporting(command);
        if (const auto code = asked_to_end(*program, finished)) return *code;
        if (finished.signal != 0) return report_signal(*program, finished.signal);
        if (finished.code == good && !flags_.json && !flags_.quiet) print(fmt::format("wrote {}", file));
        return finished.code;
    }

    int handout(const std::vector<std::string>& which, const std::string& file) {
        std::vector<const Program*> chosen;
        const auto choose = [&](const Program& program) {
            if (std::find(chosen.begin(), chosen.end(), &program) == chosen.end()) chosen.push_back(&program);
        };
        for (const auto& word : which) {
            if (word == "all") continue;
            const Program* program = named(word);
            if (program == nullptr) return usage;
            choose(*program);
        }
        if (which.empty() || std::find(which.begin(), which.end(), "all") != which.end())
            for (const auto& program : programs_) choose(program);
        return write_handout(programs_, chosen, flags_, file, work_folder());
    }

private:
    // Returns false if a class chose the answers (--present) or if the user changed parameters of the lesson.
    bool learner_answers() const { return mode_.waits && !mode_.presents && flags_.settings.empty(); }

    struct Tally {
        int ok = 0, failed = 0, skipped = 0;
        int run() const { return ok + failed + skipped; }
        int code() const { return failed > 0 ? check_failed : skipped > 0 && ok == 0 ? Exit::skipped : good; }
    };

    const Program* named(const std::string& which) const {
        std::string message;
        const Program* program = find_program(programs_, which, message);
        if (program == nullptr) print_error("learn", message);
        return program;
    }

    std::vector<std::string> command_for(const Program& program, int from = 1) const {
        std::vector<std::string> command{program.path};
        Flags flags = flags_;
        if (flags.from == 1) flags.from = from;
        for (auto& word : arguments(flags)) command.push_back(std::move(word));
        return command;
    }

    static std::optional<int> asked_to_end(const Program& program, const ChildResult& finished) {
        if (finished.end_signal == 0 && finished.signal != SIGTERM && finished.signal != SIGHUP)
            return std::nullopt;
        if (finished.signal != 0) report_signal(program, finished.signal);
        return exit_code_of(finished.end_signal != 0 ? finished.end_signal : finished.signal);
    }

    // A lesson reports one line for each attempt at a question, and one line for its result.
    struct Report {
        std::vector<AnswerRecord> answers;
        std::string end;
    };
    static Report report_in(const std::string& captured) {
        Report report;
        std::istringstream lines(captured);
        for (std::string line; std::getline(lines, line);) {
            if (auto answer = parse_answer(line)) {
                report.answers.push_back(std::move(*answer));
            } else {
                report.end = line;
            }
        }
        return report;
    }

    // Call this only in step mode, because a lesson counts as done only if a learner is at the keyboard. A
    // failed check withdraws an earlier "done".
    void record(const std::string& slug, const End& end) {
        const Outcome outcome = end.outcome;
        const bool done = answers_.done(slug);
        std::string how;
        if (outcome == Outcome::fail) {
            how = "failed";
        } else if (outcome == Outcome::ok && answers_.all_answered(slug, flags_.from == 1)) {
            how = done ? "" : "done";
        } else if (outcome != Outcome::skip && !done) {
            how = "begun";
        }
        const std::string left_at =
            outcome == Outcome::quit && end.steps > 1 ? std::to_string(end.steps) : "";
        if (how == "begun" && answers_.begun(slug) && left_at.empty() && answers_.left_at(slug) == 1) return;
        if (!how.empty())
            answers_.add(
                {{.what = "lesson", .of = slug, .number = how == "begun" ? left_at : "", .how = how}});
    }

    const Lesson* first_open() const {
        for (const auto& program : programs_)
            if (!answers_.done(program.lesson.slug)) return &program.lesson;
        return nullptr;
    }

    // The card names the next lesson that is not done, or else the first lesson that is not done.
    void show_card(const Lesson& lesson, const std::vector<AnswerRecord>& answers) {
        if (flags_.json || flags_.quiet) return;
        const Lesson* next = nullptr;
        bool behind = false;
        for (const auto& program : programs_) {
            const Lesson& other = program.lesson;
            if (behind && next == nullptr && !answers_.done(other.slug)) next = &other;
            behind = behind || other.slug == lesson.slug;
        }
        if (next == nullptr) next = first_open();
        if (next != nullptr && next->slug == lesson.slug) next = nullptr;
        const auto done =
            static_cast<std::size_t>(std::count_if(programs_.begin(), programs_.end(), [&](const auto& each) {
                return answers_.done(each.lesson.slug);
            }));
        for (const auto& line : end_card(
                 {lesson, next, answers, answers_.done(lesson.slug), done, programs_.size()}, mode_.style))
            print(line);
    }

    // Waits for a key at the end of a lesson. SPACE begins the next lesson, and any other key leaves.
    bool wants_next() const {
        if (first_open() == nullptr) return false;
        const KeyMode keys;
        write_to(STDOUT_FILENO, "\n SPACE next lesson  q leave");
        const KeyPress press = read_key();
        write_to(STDOUT_FILENO, "\n");
        return press.key == Key::next;
    }

    static int report_signal(const Program& program, int signal) {
        print_error("learn", fmt::format("lesson {} was ended by signal {} ({})", program.lesson.slug, signal,
                                         ::strsignal(signal)));
        return check_failed;
    }

    int run(const std::vector<const Program*>& chosen, int from = 1) {
        Tally tally;
        std::vector<std::string> log;
        for (const Program* program : chosen) {
            if (learner_answers())
                answers_.require_writable();  // reports the error before the learner answers questions
            const auto start = std::chrono::steady_clock::now();
            const ChildResult finished = run_reporting(command_for(*program, from));
            const double seconds =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

            Report report = report_in(finished.captured);
            if (!mode_.waits) report.answers.clear();  // no learner was asked
            if (learner_answers() && !report.answers.empty()) answers_.add(report.answers);
            if (const auto code = asked_to_end(*program, finished)) return *code;
            End end;
            if (finished.signal != 0) {
                report_signal(*program, finished.signal);
                end = {.outcome = Outcome::fail,
                       .detail = fmt::format("ended by signal {}", finished.signal)};
            } else if (report.end.empty()) {
                return finished.code;  // the lesson has printed why it could not run or write
            } else {
                end = parse_end(report.end);
            }
            if (learner_answers()) record(program->lesson.slug, end);
            if (end.outcome == Outcome::quit) return finished.code;
            if (chosen.size() == 1 && end.outcome == Outcome::ok) show_card(program->lesson, report.answers);

            (end.outcome == Outcome::ok     ? tally.ok
             : end.outcome == Outcome::skip ? tally.skipped
                                            : tally.failed) += 1;
            for (auto& line : log_lines(program->lesson, end, seconds)) {
                if (flags_.quiet && !flags_.json) print(line);
                log.push_back(std::move(line));
            }
        }
        if (chosen.size() > 1 && !flags_.json) {
            if (!flags_.quiet) print("\n" + joined(log, "\n"));
            print(summary(tally));
        }
        return tally.code();
    }

    std::string summary(const Tally& tally) const {
        std::string line = fmt::format("summary: {} lessons  {} ok", tally.run(), tally.ok);
        if (tally.failed > 0) line += fmt::format("  {} FAIL", tally.failed);
        if (tally.skipped > 0) line += fmt::format("  {} skip", tally.skipped);
        return line + fmt::format("   seed {}   exit {}", flags_.seed, tally.code());
    }

    const Flags& flags_;
    Mode mode_;
    std::vector<Program> programs_;
    AnswerFile answers_;
};

int doctor(const Flags& flags, const std::string& lessons) {
    std::string about;
    for (const auto& finding : findings(flags, lessons)) {
        if (flags.json) {
            const nlohmann::ordered_json json{{"v", 1},
                                              {"event", "finding"},
                                              {"about", finding.about},
                                              {"name", finding.name},
                                              {"text", finding.text}};
            print(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
            continue;
        }
        if (finding.about != about) print(finding.about);
        about = finding.about;
        print(fmt::format("  {:<14} {}", finding.name, finding.text));
    }
    return good;
}

int main_of_the_runner(int argc, const char* const* argv) {
    Flags flags;
    std::string which, file;
    CLI::App app("Lessons on accumulating gradients, and a proof of each.", "learn");
    app.require_subcommand(0, 1);
    app.fallthrough();
    add_flags(app, flags);
    add_parameter_flags(app, flags);
    auto* list = app.add_subcommand("list", "number, slug, minutes, status, prerequisites");
    auto* run = app.add_subcommand("run", "run one lesson, or all");
    run->add_option("WHICH", which, "a slug or a part of one, a number, or all")->required();
    bool help = false;  // `run WHICH --help` shows the help of the lesson
    run->set_help_flag();
    run->add_flag("-h,--help", help, "the flags of this lesson");
    auto* graph = app.add_subcommand("graph", "write the picture of a lesson's graph");
    graph->add_option("WHICH", which, "a slug or a part of one, or a number")->required();
    graph->add_option("-o", file, "F.svg or F.dot")->required();
    auto* class_command = app.add_subcommand("class", "which mistakes a class makes, from its work/answers");
    class_command->add_option("FOLDER", which, "with the learners' files of answers")->required();
    class_command->add_option("-o", file, "the picture (default: class.svg in work)");
    std::vector<std::string> handouts;
    auto* handout_command =
        app.add_subcommand("handout", "sheets for a class: one with the questions, one with the answers");
    handout_command->add_option("LESSONS", handouts, "slugs or parts of them, numbers, or all (default)");
    handout_command->add_option("-o", file, "the students' sheet (default: in work/handouts)");
    auto* doctor_command = app.add_subcommand("doctor", "versions, devices, terminal, missing packages");
    PracticeWords practice_words;
    add_practice(app, practice_words);
    app.footer("./learn alone runs the next unfinished lesson; without a terminal all, as plain text.");

    try {
        catch_interrupts();
        if (const Parsed parsed = parse(app, argc, argv); parsed.done) return parsed.code;
        if (asked_for_practice(practice_words))
            return practice(practice_words, flags, sibling_folder(argv[0], "exercises"),
                            sibling_folder(argv[0], "lessons"), work_folder());
        if (*class_command) {
            const Mode mode = mode_for(flags, Environment::current());
            return show_class(which, file.empty() ? work_folder() + "/class.svg" : file, flags, mode.style);
        }
        const std::string lessons = sibling_folder(argv[0], "lessons");
        if (*doctor_command) return doctor(flags, lessons);
        Runner runner(flags, lessons);
        if (*list) return runner.list();
        if (*graph) return runner.graph(which, file);
        if (*run && help) return runner.help(which, app.help());
        if (*handout_command) return runner.handout(handouts, file);
        if (*run) return which == "all" ? runner.run_all() : runner.run_named(which);
        return runner.next_or_all();
    } catch (const AskedToEnd& asked) {
        return exit_code_of(asked.signal);
    } catch (const OutputClosed&) {
        return OutputClosed::exit_code;
    } catch (const std::exception& error) {
        print_error("learn", error.what());
        return io_failed;
    }
}
}  // namespace

}  // namespace tally::lesson

int main(int argc, char** argv) { return tally::lesson::main_of_the_runner(argc, argv); }
