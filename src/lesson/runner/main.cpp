// learn-runner: what stands behind ./learn once everything is built.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "tally/lesson/files.hpp"
#include "tally/lesson/json.hpp"
#include "tally/lesson/runner/child.hpp"
#include "tally/lesson/runner/course.hpp"
#include "tally/lesson/runner/doctor.hpp"
#include "tally/lesson/runner/exit.hpp"
#include "tally/lesson/runner/practice.hpp"
#include "tally/lesson/terminal.hpp"
#include "tally/lesson/text.hpp"

namespace tally::lesson {

namespace {

void print(const std::string& line) { write_to(STDOUT_FILENO, line + "\n"); }

std::string work_folder() {
    const char* folder = std::getenv("TALLY_WORK");
    return folder == nullptr ? "work" : folder;
}

std::string folder_beside(const char* started_as, const char* name) {
    std::error_code elsewhere;  // than on Linux
    const auto itself = std::filesystem::read_symlink("/proc/self/exe", elsewhere);
    return ((elsewhere ? std::filesystem::path(started_as) : itself).parent_path() / name).string();
}

class Runner {
public:
    Runner(const Flags& flags, const std::string& lessons)
        : flags_(flags), programs_(find_programs(lessons)), progress_(work_folder()) {}

    int list() {
        bool next_found = false;
        for (const auto& [lesson, path] : programs_) {
            std::string status = progress_.done(lesson.slug) ? "done" : next_found ? "open" : "next";
            next_found = next_found || status == "next";
            if (flags_.json) {
                print(description(lesson, status));
            } else {
                print(fmt::format("{:>3}  {:<18}  {:<36}  {:>3} min  {}", lesson.number, lesson.slug,
                                  lesson.title, lesson.minutes, status));
            }
        }
        return good;
    }

    int next() {
        int code = good;
        for (const auto& program : programs_) {
            if (progress_.done(program.lesson.slug)) continue;
            code = run({&program});
            if (code != Exit::skipped) return code;  // what cannot run here is not in the way
        }
        if (code == Exit::skipped) return code;
        print(fmt::format(
            "All {} lessons are done. ./learn run WHICH shows one again; ./learn list has their names.",
            programs_.size()));
        return good;
    }

    int run_all() {
        std::vector<const Program*> all;
        for (const auto& program : programs_) all.push_back(&program);
        return run(all);
    }

    int run_named(const std::string& which) {
        const Program* program = named(which);
        return program == nullptr ? usage : run({program});
    }

    int graph(const std::string& which, const std::string& file) {
        const Program* program = named(which);
        if (program == nullptr) return usage;
        auto command = command_for(*program);
        command.push_back(fmt::format("--graph={}", file));
        const Finished finished = run_reporting(command);
        if (const auto code = asked_to_end(*program, finished)) return *code;
        if (finished.signal != 0) return died(*program, finished.signal);
        if (finished.code == good && !flags_.json && !flags_.quiet) print(fmt::format("wrote {}", file));
        return finished.code;
    }

private:
    struct Tally {
        int ok = 0, failed = 0, skipped = 0;
        int run() const { return ok + failed + skipped; }
        int code() const { return failed > 0 ? check_failed : skipped > 0 && ok == 0 ? Exit::skipped : good; }
    };

    const Program* named(const std::string& which) const {
        std::string message;
        const Program* program = find_program(programs_, which, message);
        if (program == nullptr) complain("learn", message);
        return program;
    }

    std::vector<std::string> command_for(const Program& program) const {
        std::vector<std::string> command{program.path};
        for (auto& word : arguments(flags_)) command.push_back(std::move(word));
        return command;
    }

    // The exit code where nothing more is to be done, as somebody asked by a signal.
    static std::optional<int> asked_to_end(const Program& program, const Finished& finished) {
        if (finished.asked_by == 0 && finished.signal != SIGTERM && finished.signal != SIGHUP)
            return std::nullopt;
        if (finished.signal != 0) died(program, finished.signal);
        return exit_code_of(finished.asked_by != 0 ? finished.asked_by : finished.signal);
    }

    static int died(const Program& program, int signal) {
        complain("learn", fmt::format("lesson {} was ended by signal {} ({})", program.lesson.slug, signal,
                                      ::strsignal(signal)));
        return check_failed;
    }

    int run(const std::vector<const Program*>& chosen) {
        Tally tally;
        std::vector<std::string> log;
        for (const Program* program : chosen) {
            const auto start = std::chrono::steady_clock::now();
            const Finished finished = run_reporting(command_for(*program));
            const double seconds =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

            if (const auto code = asked_to_end(*program, finished)) return *code;
            End end;
            if (finished.signal != 0) {
                died(*program, finished.signal);
                end = {.outcome = Outcome::fail,
                       .detail = fmt::format("ended by signal {}", finished.signal)};
            } else if (finished.captured.empty()) {
                return finished.code;  // it could not run or write: its sentence is on standard error
            } else {
                end = parse_end(finished.captured);
            }
            if (end.outcome == Outcome::quit) return finished.code;

            if (end.outcome != Outcome::skip)
                progress_.record(program->lesson.slug, end.outcome == Outcome::ok);
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
    std::vector<Program> programs_;
    StudentProgress progress_;
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
    auto* list = app.add_subcommand("list", "number, slug, title, minutes, status");
    auto* run = app.add_subcommand("run", "run one lesson, or all");
    run->add_option("WHICH", which, "a slug or a part of one, a number, or all")->required();
    auto* graph = app.add_subcommand("graph", "write the picture of a lesson's graph");
    graph->add_option("WHICH", which, "a slug or a part of one, or a number")->required();
    graph->add_option("-o", file, "F.svg or F.dot")->required();
    auto* find_out =
        app.add_subcommand("doctor", "versions, devices, terminal, what is optional and missing");
    PracticeWords practised;
    add_practice(app, practised);
    app.footer("./learn alone runs the next unfinished lesson; without a terminal all of them, plainly.");

    try {
        catch_interrupts();
        if (const Parsed parsed = parse(app, argc, argv); parsed.done) return parsed.code;
        if (asked_for_practice(practised))
            return practice(practised, flags, folder_beside(argv[0], "exercises"), work_folder());
        const std::string lessons = folder_beside(argv[0], "lessons");
        if (*find_out) return doctor(flags, lessons);
        Runner runner(flags, lessons);
        if (*list) return runner.list();
        if (*graph) return runner.graph(which, file);
        if (*run) return which == "all" ? runner.run_all() : runner.run_named(which);
        const Mode mode = mode_for(flags, Surroundings::of_this_process());
        return mode.not_waiting.empty() ? runner.next() : runner.run_all();
    } catch (const AskedToEnd& asked) {
        return exit_code_of(asked.signal);
    } catch (const NobodyReads&) {
        return NobodyReads::exit_code;
    } catch (const std::exception& error) {
        complain("learn", error.what());
        return io_failed;
    }
}

}  // namespace

}  // namespace tally::lesson

int main(int argc, char** argv) { return tally::lesson::main_of_the_runner(argc, argv); }
