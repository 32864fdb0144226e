// Defines the flags of lessons. Flags and environment variables decide how output is rendered.
#include "course/kit/flags.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <limits>

#include "course/kit/files.hpp"
#include "course/kit/terminal.hpp"
#include "course/kit/text.hpp"
#include "course/kit/wording.hpp"

namespace tally::lesson {

namespace {
struct FlagOption {
    std::string name;                                    // such as "--from"
    std::string operand;                                 // such as "K"; a switch has none
    std::string meaning;                                 // --help lists an option only if it has a meaning
    std::function<std::string(const std::string&)> set;  // stores the text, or returns what the text must be
};

template <class N> auto whole(N& number, N least, N most) {
    return [&number, least, most](const std::string& text) -> std::string {
        N value{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
            return fmt::format("a whole number from {} to {}", least, most);
        number = value;
        return "";
    };
}

auto one_of(std::string& chosen, const std::vector<std::string>& words) {
    return [&chosen, words](const std::string& text) {
        if (std::find(words.begin(), words.end(), text) == words.end()) return list_of(words, "or");
        chosen = text;
        return std::string();
    };
}

std::vector<FlagOption> options_for(Flags& flags, const std::vector<LessonParameter>& parameters) {
    const auto on = [](bool& flag) {
        return [&flag](const std::string&) { return flag = true, std::string(); };
    };
    const auto any = [](std::string& kept) {
        return [&kept](const std::string& text) { return kept = text, std::string(); };
    };
    std::vector<FlagOption> options{
        {"--help", "", "print this help", on(flags.help)},
        {"-h", "", "", on(flags.help)},
        {"--step", "", "wait for a key after each step", on(flags.step)},
        {"--no-step", "", "never wait (default: wait only at a terminal)", on(flags.no_step)},
        {"--present", "", "for a class: one step per screen, answers on request", on(flags.present)},
        {"--from", "K", "start at step K", whole(flags.from, 1, 99)},
        {"--device", "D",
         "cpu, cuda, simulated (the host computes for a GPU) or auto (default: the lesson's)",
         one_of(flags.device, {"cpu", "cuda", "simulated", "auto"})},
        {"--json", "", "one JSON object per line on stdout, and nothing else", on(flags.json)},
        {"--plain", "", "no waiting, no colours, no rewriting of lines", on(flags.plain)},
        {"--ascii", "", "pure ASCII", on(flags.ascii)},
        {"--color", "W", "auto, always or never", one_of(flags.color, {"auto", "always", "never"})},
        {"--width", "N", "columns (default: the window's, at most 80)", whole(flags.width, 20, 1000)},
        {"--seed", "N", "random seed (default 0)",
         whole(flags.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max())},
        {"--digits", "D", "digits after the point (default 4)", whole(flags.digits, 0, 20)},
        {"--threads", "N", "for large products and weights (default 1)", whole(flags.threads, 1, 1024)},
        {"--products", "W", "large products: ordered, or blas (default: ordered)",
         one_of(flags.products, {"ordered", "blas"})},
        {"--quiet", "", "print only the result", on(flags.quiet)},
        {"--yes", "", "", on(flags.yes)},
        {"--graph", "F", "write the picture of its graph to F.svg or F.dot, and print nothing",
         any(flags.graph)},
        {"--describe", "", "print a description of the lesson as one line of JSON", on(flags.describe)},
        {"--report", "N", "", whole(flags.report, 0, 1 << 20)},
        {"--rank-says", "F", "", any(flags.rank_results)}};
    for (const std::string& name : parameter_names()) {
        // settings_of() rejects the parameters of other lessons with a message of its own.
        FlagOption option{"--" + name, "N", "", any(flags.settings[name])};
        for (const auto& own : parameters) {
            if (own.name != name) continue;
            if (own.usual.size() > 1) option.operand = "A,B,...";
            option.meaning = fmt::format("{}: {} (default {})", own.meaning, range_of(own), usual_of(own));
        }
        options.push_back(std::move(option));
    }
    return options;
}
}  // namespace

std::string parse(Flags& flags, const std::vector<LessonParameter>& parameters,
                  const std::vector<std::string>& words) {
    const std::vector<FlagOption> options = options_for(flags, parameters);
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::size_t equals = std::min(words[i].find('='), words[i].size());
        const std::string name = words[i].substr(0, equals);
        const auto option = std::find_if(options.begin(), options.end(),
                                         [&](const FlagOption& each) { return each.name == name; });
        if (option == options.end()) return fmt::format("'{}' is not expected", words[i]);
        std::string text;
        if (equals < words[i].size())
            text = words[i].substr(equals + 1);
        else if (!option->operand.empty() && i + 1 < words.size())
            text = words[++i];
        const bool is_flag = text.size() > 2 && text.starts_with("--") && text[2] >= 'a' && text[2] <= 'z';
        if (option->operand.empty() ? equals < words[i].size() : text.empty() || is_flag)
            return fmt::format("{}: {}", name,
                               option->operand.empty() ? "it takes no value" : "its value is missing");
        if (const std::string expected = option->set(text); !expected.empty())
            return fmt::format("{}: '{}' is not {}", name, text, expected);
    }
    std::erase_if(flags.settings, [](const auto& setting) { return setting.second.empty(); });
    if (flags.no_step && (flags.step || flags.present))
        return fmt::format("{} excludes --no-step", flags.step ? "--step" : "--present");
    return "";
}

std::string help_text(const Lesson& lesson) {
    Flags unused;
    std::string text =
        fmt::format("Lesson {}: {} (about {} minutes)\n\n", lesson.number, lesson.title, lesson.minutes);
    for (const FlagOption& option : options_for(unused, lesson.parameters))
        if (!option.meaning.empty())
            text += fmt::format("  {:16} {}\n",
                                option.name + (option.operand.empty() ? "" : " " + option.operand),
                                option.meaning);
    return text;
}

namespace {
std::vector<std::string> settings_in(const Flags& flags) {
    std::vector<std::string> words;
    for (const auto& [name, text] : flags.settings) words.push_back(fmt::format("--{}={}", name, text));
    return words;
}

// Returns the flags as people type them: a value follows a blank, unless the value begins with '-'.
std::string typed(std::vector<std::string> words) {
    for (auto& word : words)
        if (const auto equals = word.find('='); word[equals + 1] != '-') word[equals] = ' ';
    return joined(words, " ");
}
}  // namespace

std::vector<std::string> arguments(const Flags& flags) {
    std::vector<std::string> words = settings_in(flags);
    if (!flags.device.empty()) words.push_back(fmt::format("--device={}", flags.device));
    if (flags.seed != 0) words.push_back(fmt::format("--seed={}", flags.seed));
    if (flags.threads != 1) words.push_back(fmt::format("--threads={}", flags.threads));
    if (!flags.products.empty()) words.push_back(fmt::format("--products={}", flags.products));
    return words;
}

std::string settings_text(const Flags& flags) { return typed(settings_in(flags)); }

std::string repeat_flags(const Flags& flags) {
    const std::string words = typed(arguments(flags));
    return (words.empty() ? "" : " " + words) + (flags.present ? " --present" : "");
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
