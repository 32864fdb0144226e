// Defines the function run(), which the main() of every lesson calls.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <csignal>
#include <exception>
#include <filesystem>
#include <functional>

#include "course/kit/answers.hpp"
#include "course/kit/files.hpp"
#include "course/kit/json.hpp"
#include "course/kit/page.hpp"
#include "course/kit/ranks.hpp"
#include "course/kit/running.hpp"
#include "course/kit/terminal.hpp"
#include "tally/device/backend.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::lesson {

namespace {
enum Exit : int { good = 0, check_failed = 1, usage = 2, io_failed = 5, skipped = 77 };

std::optional<Device> device_named(const std::string& name) {
    if (name == "cpu") return Device::cpu;
    if (name == "simulated") backend::select(name);
    if (available(Device::cuda)) return Device::cuda;
    return name == "auto" ? std::optional(Device::cpu) : std::nullopt;
}

// Ends this program when the runner is killed or crashes, so that the terminal is restored (Linux only). If
// the runner ended before prctl() was called, poll() detects that the other end of the pipe is closed.
void end_with_the_runner(int report) {
    ::fcntl(report, F_SETFD, FD_CLOEXEC);  // programs started by this lesson must not keep the pipe open
#ifdef __linux__
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    pollfd reader{report, 0, 0};
    if (::poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0) ::raise(SIGTERM);
}

int exit_code(const End& end) {
    if (end.outcome == Outcome::skip) return skipped;
    return end.outcome == Outcome::fail || end.failed > 0 ? check_failed : good;
}

void run_body(Running& running, const std::optional<Device>& device, const std::function<void()>& start,
              void (*body)()) {
    Outcome outcome = Outcome::ok;
    std::string detail;
    try {
        if (!device)
            throw Skipped{"no CUDA device: " + backend::unavailable_reason() +
                          " (--device simulated computes on the CPU instead)"};
        start();
        body();
        if (!is_rank()) require_ranks_done();
        const auto& page = running.lesson().page;
        if (page && !page->in_pytorch.empty()) running.emit(Sentence{Sentence::Role::note, page->in_pytorch});
    } catch (const Skipped& skipped) {
        outcome = Outcome::skip;
        detail = skipped.reason;
    } catch (const Quit&) {
        outcome = Outcome::quit;
    } catch (const WriteError&) {
        throw;
    } catch (const std::exception& error) {
        if (is_rank()) throw;
        outcome = Outcome::fail;
        detail = error.what();
    }
    try {
        running.finish(outcome, detail);
    } catch (const Quit&) {  // the learner quit at the last key prompt, so the lesson is complete
    }
}

// Starts this program again as the processes (ranks) of a lesson. The ranks print nothing.
void start_ranks(const Running& running, const char* program, const Flags& flags) {
    if (!on_several_ranks(running.lesson()) || is_rank()) return;
    if (const std::string why = why_no_launcher(); !why.empty()) throw Skipped{why};
    std::error_code elsewhere;  // set if the system is not Linux
    const auto itself = std::filesystem::read_symlink("/proc/self/exe", elsewhere);
    std::vector<std::string> command{elsewhere ? program : itself.string(), "--quiet"};
    for (auto& word : arguments(flags)) command.push_back(std::move(word));
    run_ranks(setting("ranks"), std::move(command));
}

std::string fault_of(const Flags& flags, const Lesson& lesson, const Mode& mode) {
    try {
        settings_of(lesson.parameters, flags.settings);
    } catch (const std::invalid_argument& fault) {
        return fault.what();
    }
    if (flags.from > lesson.steps)
        return fmt::format("--from {}: this lesson has {} steps", flags.from, lesson.steps);
    const auto kind = std::filesystem::path(flags.graph).extension();
    if (!flags.graph.empty() && kind != ".svg" && kind != ".dot")
        return fmt::format("--graph {}: the name must end in .svg or .dot", flags.graph);
    if ((flags.step || flags.present) && !mode.waits)
        return fmt::format("{}: cannot wait for keys: {}", flags.step ? "--step" : "--present",
                           mode.not_waiting);
    return "";
}

int write_graph(const Running& running, const std::string& file, const std::string& name) {
    const End& end = running.end();
    if (end.outcome != Outcome::ok)
        print_error(name, fmt::format("[{}] {}", to_string(end.outcome), end.detail));
    if (end.outcome == Outcome::skip) return skipped;
    const Graph* picture = running.own_graph();
    if (picture == nullptr) {
        print_error(name, "this lesson draws no graph");
        return usage;
    }
    const bool as_svg = std::filesystem::path(file).extension() == ".svg";
    if (!as_svg && picture->dot.empty()) {
        print_error(name,
                    fmt::format("the picture '{}' has no .dot; write it to an .svg file", picture->name));
        return usage;
    }
    write_whole(file, as_svg ? picture->svg : picture->dot);
    return exit_code(end);
}
}  // namespace

int run(int argc, const char* const* argv, const Lesson& lesson, void (*talk)()) {
    Flags flags;
    const std::string name = "lesson " + lesson.slug;

    try {
        catch_interrupts();
        if (const std::string error = parse(flags, lesson.parameters, {argv + 1, argv + argc});
            !error.empty()) {
            print_error(name, error + " (--help lists the options)");
            return usage;
        }
        if (flags.report >= 0) end_with_the_runner(flags.report);
        if (!flags.rank_results.empty()) become_rank(flags.rank_results);
        if (flags.help || flags.describe) {
            write_to(STDOUT_FILENO, flags.help ? help_text(lesson) : description(lesson) + "\n");
            return good;
        }
        const Mode mode = mode_for(flags, Environment::current());
        if (const std::string fault = fault_of(flags, lesson, mode); !fault.empty()) {
            print_error(name, fault);
            return usage;
        }
        const auto device = device_named(flags.device.empty() ? lesson.device : flags.device);
        const Options options{.seed = flags.seed,
                              .device = device.value_or(Device::cpu),
                              .threads = flags.threads,
                              .digits = flags.digits,
                              .settings = settings_of(lesson.parameters, flags.settings)};
        for (const auto& parameter : lesson.parameters)  // a flag with the default value changes nothing
            if (options.settings.at(parameter.name) == parameter.usual) flags.settings.erase(parameter.name);
        set_threads(flags.threads);
        if (!flags.products.empty()) set_products(tally::detail::products_named(flags.products));

        const auto viewer = make_viewer(lesson, flags, mode);
        Running running(lesson, options, *viewer, flags.from, repeat_flags(flags));
        // Does not report answers if parameters are changed, because the question may have fewer options.
        if (flags.report >= 0 && mode.waits && flags.settings.empty())
            running.answered = [&](const Reveal& reveal) {
                write_to(flags.report, answer_lines(reveal, lesson.slug));
            };
        running.emit(
            Title{lesson, device == Device::cpu ? "cpu" : backend::name(), flags.seed, settings_text(flags)});
        const auto start = [&] { start_ranks(running, argv[0], flags); };
        run_body(running, device, start, talk);
        if (is_rank()) return good;  // only the program that shows the lesson reports failed checks

        if (flags.report >= 0)
            write_to(flags.report, json_line({0, running.end()}, lesson, flags.digits) + "\n");
        return flags.graph.empty() ? exit_code(running.end()) : write_graph(running, flags.graph, name);
    } catch (const OutputClosed&) {
        return OutputClosed::exit_code;
    } catch (const WriteError& error) {
        print_error(name, error.what());
        return io_failed;
    } catch (const std::exception& error) {
        print_error(name, error.what());
        return check_failed;
    }
}

}  // namespace tally::lesson
