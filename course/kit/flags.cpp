// Defines the flags of lessons. Flags and environment variables decide how output is rendered.
#include "course/kit/flags.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "course/kit/files.hpp"
#include "course/kit/terminal.hpp"
#include "course/kit/text.hpp"

namespace tally::lesson {

namespace {
// Checks a seed, because CLI11 would wrap -1 to a large seed and clamp a seed that is too large.
std::string a_seed(const std::string& text) {
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
    return error == std::errc() && end == text.data() + text.size()
               ? ""
               : fmt::format("'{}' is not a whole number from 0 to {}", text,
                             std::numeric_limits<std::uint64_t>::max());
}
}  // namespace

void add_flags(CLI::App& app, Flags& flags) {
    auto* step = app.add_flag("--step", flags.step, "wait for a key after each step");
    auto* no_step = app.add_flag("--no-step", flags.no_step, "never wait (default: wait only at a terminal)");
    no_step->excludes(step);
    app.add_flag("--present", flags.present, "for a class: one step per screen, answers on request")
        ->excludes(no_step);
    app.add_option("--from", flags.from, "start at step K")->type_name("K")->check(CLI::Range(1, 99));
    app.add_option("--device", flags.device,
                   "cpu, cuda, simulated (the host computes for a GPU) or auto (default: the lesson's)")
        ->type_name("D")
        ->check(CLI::IsMember({"cpu", "cuda", "simulated", "auto"}));
    app.add_flag("--json", flags.json, "one JSON object per line on stdout, and nothing else");
    app.add_flag("--plain", flags.plain, "no waiting, no colours, no rewriting of lines");
    app.add_flag("--ascii", flags.ascii, "pure ASCII");
    app.add_option("--color", flags.color, "auto, always or never")
        ->type_name("W")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    app.add_option("--width", flags.width, "columns (default: the window's, at most 80)")
        ->type_name("N")
        ->check(CLI::Range(20, 1000));
    app.add_option("--seed", flags.seed, "random seed (default 0)")->type_name("N")->check(a_seed);
    app.add_option("--digits", flags.digits, "digits after the point (default 4)")
        ->type_name("D")
        ->check(CLI::Range(0, 20));
    app.add_option("--threads", flags.threads, "for large products (default 1)")
        ->type_name("N")
        ->check(CLI::Range(1, 1024));
    app.add_option("--products", flags.products, "large products: ordered, or blas (default: ordered)")
        ->type_name("W")
        ->check(CLI::IsMember({"ordered", "blas"}));
    app.add_flag("--quiet", flags.quiet, "print only the result");
    app.add_flag("--yes", flags.yes, "answer yes to every question");
}

void add_parameter_flags(CLI::App& app, Flags& flags, const std::vector<LessonParameter>& own) {
    for (const std::string& name : parameter_names()) {
        bool with_commas = false;
        std::string says, group;  // in no group: the help does not list the parameters of other lessons
        for (const auto& parameter : own) {
            if (parameter.name != name) continue;
            group = "Parameters";
            says = fmt::format("{}: {} (default {})", parameter.meaning, range_of(parameter),
                               usual_of(parameter));
            with_commas = parameter.usual.size() > 1;
        }
        // settings_of() rejects parameters of other lessons with a better message than CLI11.
        app.add_option_function<std::string>(
               "--" + name,
               [&flags, name](const std::string& text) {
                   // If the value of an option is missing, CLI11 uses the next argument as the value.
                   const bool a_flag =
                       text.size() > 2 && text.starts_with("--") && text[2] >= 'a' && text[2] <= 'z';
                   if (text.empty() || a_flag)
                       throw CLI::ValidationError("--" + name, "its value is missing");
                   flags.settings[name] = text;
               },
               says)
            ->type_name(with_commas ? "A,B,..." : "N")
            ->group(group);
    }
}

std::string settings_text(const Flags& flags) {
    std::vector<std::string> words;
    for (const auto& [name, text] : flags.settings)
        words.push_back(fmt::format("--{}{}{}", name, text.starts_with('-') ? "=" : " ", text));
    return joined(words, " ");
}

std::string repeat_flags(const Flags& flags) {
    std::string words = flags.settings.empty() ? "" : " " + settings_text(flags);
    if (!flags.device.empty()) words += fmt::format(" --device {}", flags.device);
    if (flags.seed != 0) words += fmt::format(" --seed {}", flags.seed);
    if (flags.threads != 1) words += fmt::format(" --threads {}", flags.threads);
    if (!flags.products.empty()) words += fmt::format(" --products {}", flags.products);
    if (flags.present) words += " --present";
    return words;
}

std::vector<std::string> arguments(const Flags& flags) {
    std::vector<std::string> words;
    const std::pair<bool, const char*> switches[] = {
        {flags.step, "--step"},   {flags.no_step, "--no-step"}, {flags.present, "--present"},
        {flags.json, "--json"},   {flags.plain, "--plain"},     {flags.ascii, "--ascii"},
        {flags.quiet, "--quiet"}, {flags.yes, "--yes"}};
    for (const auto& [given, name] : switches)
        if (given) words.emplace_back(name);
    words.push_back(fmt::format("--from={}", flags.from));
    if (!flags.device.empty()) words.push_back(fmt::format("--device={}", flags.device));
    words.push_back(fmt::format("--color={}", flags.color));
    if (flags.width > 0) words.push_back(fmt::format("--width={}", flags.width));
    words.push_back(fmt::format("--seed={}", flags.seed));
    words.push_back(fmt::format("--digits={}", flags.digits));
    words.push_back(fmt::format("--threads={}", flags.threads));
    if (!flags.products.empty()) words.push_back(fmt::format("--products={}", flags.products));
    for (const auto& [name, text] : flags.settings) words.push_back(fmt::format("--{}={}", name, text));
    return words;
}

Parsed parse(CLI::App& app, int argc, const char* const* argv) {
    try {
        app.parse(argc, argv);
        return {};
    } catch (const CLI::CallForHelp&) {
        write_to(STDOUT_FILENO, app.help());
        return {true, 0};
    } catch (const CLI::ParseError& error) {
        print_error(app.get_name(), fmt::format("{} (--help lists the options)", error.what()));
        return {true, 2};
    }
}

Environment Environment::current() {
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value == nullptr ? "" : value);
    };
    std::string locale;
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        locale = variable(name);
        if (!locale.empty()) break;
    }
    return {.input_is_terminal = ::isatty(STDIN_FILENO) == 1,
            .output_is_terminal = ::isatty(STDOUT_FILENO) == 1,
            .ci = variable("CI"),
            .term = variable("TERM"),
            .no_color = variable("NO_COLOR"),
            .locale = locale};
}

Mode mode_for(const Flags& flags, const Environment& around) {
    Mode mode;
    if (flags.json) {
        mode.not_waiting = "--json never waits";
    } else if (flags.plain) {
        mode.not_waiting = "--plain never waits";
    } else if (flags.quiet || !flags.graph.empty()) {
        mode.not_waiting = "--quiet and --graph never wait";
    } else if (!around.input_is_terminal || !around.output_is_terminal) {
        mode.not_waiting = "standard input and output must be a terminal";
    } else if (!around.ci.empty()) {
        mode.not_waiting = "CI is set";
    } else if (around.term.empty() || around.term == "dumb") {
        mode.not_waiting = "TERM is dumb";
    }
    const bool interactive = mode.not_waiting.empty();
    mode.waits = interactive && !flags.no_step;
    mode.presents = mode.waits && flags.present;

    auto& style = mode.style;
    mode.rewrites = interactive;
    style.digits = flags.digits;
    if (flags.width > 0)
        style.width = static_cast<std::size_t>(flags.width);
    else if (around.output_is_terminal)
        style.width = text_width();

    std::string locale = around.locale;
    for (auto& c : locale) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool speaks_utf8 =
        locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
    style.ascii = flags.ascii || !speaks_utf8;

    const bool allowed = !flags.plain && !flags.json && flags.color != "never";
    style.colour = allowed && (flags.color == "always" || (around.no_color.empty() && interactive));
    return mode;
}

void print_error(const std::string& program, const std::string& message) {
    const std::string line = fmt::format("{}: {}\n", program, message);
    // The result of write() is ignored, because the exit code also reports the error.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace tally::lesson
