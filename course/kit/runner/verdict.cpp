// Compiles an answer, runs its check and explains the result.
#include "course/kit/runner/verdict.hpp"

#include <cxxabi.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <regex>
#include <sstream>
#include <string_view>

#include "course/kit/child.hpp"
#include "course/kit/files.hpp"

namespace tally::lesson {

namespace {
struct KnownError {
    std::array<std::string_view, 6> parts;  // an error matches if it contains any of these parts
    const char* sentence;
};

constexpr const char* no_memory = "out of memory";

// Explains common errors of g++ and clang++. The first entry that matches an error explains the error.
constexpr KnownError known_errors[] = {
    {{no_memory},
     "The compiler asked for more memory than it is given (4 GiB). Does something that it computes or "
     "includes grow without end?"},
    {{"signal terminated"}, "The compiler was ended, perhaps because memory was short. Try once more."},
    {{"';' before", "expected ';'"}, "A semicolon is missing, here or at the end of the line before."},
    {{"expected '}' at end"}, "A closing brace } is missing: the file ends inside of a block."},
    {{"expected '}'"}, "A closing brace } is missing, or there is something extra before it."},
    {{"expected ')'"}, "A closing parenthesis ) is missing, here or a little before."},
    {{"no return statement", "non-void function does not return", "control reaches end"},
     "The function can end without returning anything."},
    {{"ambiguating new declaration", "differ only in their return type"},
     "The function's first line was changed: what it returns is part of the exercise."},
    {{"redefinition"}, "The same thing is defined twice."},
    {{"was not declared", "use of undeclared"},
     "There is nothing of this name here: a typing error, or a variable of another block?"},
    {{"is not a member of 'std'", "in namespace 'std'"},
     "The standard library has nothing of this name, or its header is not included."},
    {{"has no member", "no member named"}, "The object has no member of this name."},
    {{"non-class type", "is not a structure or union"}, "A number or a pointer has no members."},
    {{"no match for", "invalid operands"},
     "These two do not fit together: what is the type of each of them?"},
    {{"no matching function"},
     "No function of this name takes such arguments: how many are there, and of which types?"},
    {{"cannot convert", "could not convert", "no viable conversion"},
     "The type of this value is not the type that is required here."},
    {{"ambiguous"}, "Several functions of this name would do: of which types are the arguments?"},
    {{"discards qualifiers", "read-only", "const-qualified", "not marked const", "drops 'const'",
      "returns a const value"},
     "Something that is declared const is changed here."},
    {{"No such file"}, "This file was not found. All headers that an exercise needs are included already."},
};

std::string plain_quotes(std::string text) {
    for (const char* quote : {"‘", "’"})
        for (std::size_t at; (at = text.find(quote)) != std::string::npos;)
            text.replace(at, std::strlen(quote), "'");
    return text;
}

std::string meaning_of(const std::string& error) {
    for (const auto& known : known_errors)
        for (const std::string_view part : known.parts)
            if (!part.empty() && error.find(part) != std::string::npos) return known.sentence;
    return "It does not compile.";
}

// Returns the text between the brace at `open` and its closing brace, without comments and function bodies.
std::string body_of(const std::string& text, std::size_t open) {
    std::string body;
    int depth = 0;
    for (std::size_t at = open; at < text.size(); ++at) {
        if (text.compare(at, 2, "//") == 0) at = std::min(text.size() - 1, text.find('\n', at));
        const char c = text[at];
        if (c == '}' && --depth == 0) return body;
        if (depth == 1 && c != '{') body += c;
        if (c == '{' && ++depth == 2) body += ';';
    }
    return body;
}

// Returns the members of a struct in a given.hpp, such as "sum", "lost" or "norm()".
std::vector<std::string> members_of(const std::string& type, const std::string& given) {
    std::smatch begin;
    if (!std::regex_search(given, begin, std::regex("\\b(struct|class) " + type + "\\b[^;{]*\\{"))) return {};
    const std::string body = body_of(given, static_cast<std::size_t>(begin.position() + begin.length()) - 1);
    std::vector<std::string> members;
    std::istringstream declarations(body);
    for (std::string one; std::getline(declarations, one, ';');) {
        if (std::regex_search(one, std::regex("\\bstatic\\b"))) continue;
        // Template arguments, parameters and initial values contain names that are not members.
        for (const char* inner : {"<[^<>]*>", "<[^<>]*>", "<[^<>]*>", "=[^,]*"})
            one = std::regex_replace(one, std::regex(inner), "");
        std::smatch found;
        if (std::regex_search(one, found, std::regex("(\\w+) *\\("))) {
            members.push_back(found[1].str() + "()");
            continue;
        }
        std::istringstream names(one);
        for (std::string name; std::getline(names, name, ',');)
            if (std::regex_search(name, found, std::regex("(\\w+)(\\[[^\\]]*\\])?\\s*$")))
                members.push_back(found[1]);
    }
    return members;
}

// Explains the error "has no member": lists the members of a type from given.hpp, or those of a tensor.
std::string missing_member(const std::string& error, const std::string& given) {
    std::smatch found;
    std::string type, member;
    if (std::regex_search(error, found, std::regex("'([^']+)'.* has no member named '(\\w+)'"))) {  // g++
        type = found[1], member = found[2];
    } else if (std::regex_search(error, found,
                                 std::regex("no member named '(\\w+)' in '([^']+)'"))) {  // clang++
        type = found[2], member = found[1];
    } else {
        return {};
    }
    // g++ adds the aliased type: 'const Value' {aka 'const class std::shared_ptr<Node>'}.
    std::string aliased = type;
    if (std::regex_search(error, found, std::regex("aka '([^']+)'"))) aliased = found[1];
    for (std::string* name : {&type, &aliased})
        *name = std::regex_replace(
            *name, std::regex("\\b(const|using|class|struct) | = .*|\\w+::(?=\\w+(<|$))|\\w+::(?=\\w+::)"),
            "");
    if (std::regex_search(type, std::regex("^(Tensor|Tensor64|Scalar|Var<)")))
        return fmt::format(
            "A tensor has no member {}. Common members are x.shape()[0] (the number of rows), "
            "x.grad() and x.item(). docs/tensors.md lists the others.",
            member);
    if (std::regex_search(aliased, std::regex("^(shared|unique)_ptr<")))
        return fmt::format("A {} is a pointer. Write -> instead of the dot.", type);
    if (!std::regex_match(aliased, std::regex("\\w+"))) return {};
    type = aliased;
    const auto members = members_of(type, given);
    if (members.empty()) return {};
    std::string list;
    for (std::size_t i = 0; i < members.size(); ++i)
        list += (i == 0 ? "" : i + 1 == members.size() ? " and " : ", ") + members[i];
    return fmt::format("{0} has no member {1}. The members of {0} are {2}.", type, member, list);
}

std::string demangled(const std::string& name) {
    int failed = 0;
    const std::unique_ptr<char, void (*)(void*)> found(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &failed), std::free);
    return failed == 0 ? found.get() : name;
}

std::string missing_function(const Exercises& exercises, const Exercise& exercise,
                             const std::string& function) {
    return fmt::format(
        "The check looks for {}, and the file has no function of this name with the required parameters. "
        "Keep its first line as it was, outside of any namespace, below the #include: {}",
        function, exercises.declaration(exercise, function));
}

std::string why_not_loaded(const Exercises& exercises, const Exercise& exercise, const std::string& said) {
    std::smatch symbol;
    if (!std::regex_search(said, symbol, std::regex("undefined symbol: (\\w+)")))
        return "It cannot be loaded: " + said;
    const std::string name = demangled(symbol[1]);
    for (const auto& function : exercise.functions)
        if (name.rfind(function + "(", 0) == 0) return missing_function(exercises, exercise, function);
    return fmt::format("{} is declared and used, but not defined.", name);
}

struct Report {
    std::string verdict, mistake, sentence, where, parts, cases, function;
    std::vector<std::string> said, trained;

    explicit Report(const std::string& text) {
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            const std::size_t blank = std::min(line.find(' '), line.size());
            const std::string word = line.substr(0, blank),
                              remaining = line.substr(std::min(blank + 1, line.size()));
            if (word == "say") said.push_back(remaining);
            if (word == "trained") trained.push_back(remaining);
            for (const auto& [name, place] : {std::pair{"verdict", &verdict},
                                              {"mistake", &mistake},
                                              {"sentence", &sentence},
                                              {"where", &where},
                                              {"parts", &parts},
                                              {"cases", &cases},
                                              {"function", &function}})
                if (word == name) *place = remaining;
        }
    }
    std::string first_said() const { return said.empty() ? "an error" : said.front(); }
};

std::string of_cases(const std::string& three) {  // right, all, seed
    int right = 0, all = 0;
    std::uint64_t seed = 0;
    std::istringstream(three) >> right >> all >> seed;
    return right == all ? fmt::format("{} cases, seed {}", all, seed)
                        : fmt::format("{} of {} cases {} right (seed {})", right, all,
                                      right == 1 ? "is" : "are", seed);
}

constexpr std::pair<const char*, const char*> endings[] = {
    {"too-long",
     "It was stopped after 5 seconds. Is there a loop that never ends, or something found again and "
     "again?"},
    {"waits",
     "It was stopped after half a minute in which it mostly waited. Does it read from the keyboard, "
     "sleep, "
     "or print without end?"},
    {"crashed",
     "It crashed: it read or wrote memory that it does not have. An index out of range? A function that "
     "calls itself without end?"},
    {"aborted", "It ended itself (abort). An index out of range, or an error that was not caught?"},
    {"divided-by-zero", "It divided a whole number by zero."},
    {"too-much-memory",
     "It asked for more memory than an exercise has (2 GiB). Does something grow without end?"},
};

Verdict verdict_of(const Exercises& exercises, const Exercise& exercise, const ChildResult& finished) {
    const Report report(finished.captured);
    Verdict verdict{.mistake = report.mistake,
                    .sentence = report.sentence,
                    .where = report.where,
                    .shown = {},
                    .parts = report.parts,
                    .trained = report.trained,
                    .cases = {}};
    verdict.end_signal = finished.end_signal;
    if (report.verdict == "passed" || report.verdict == "wrong") {
        verdict.judged = report.verdict == "passed" ? Judged::passed : Judged::wrong;
        verdict.shown = report.said;
        verdict.cases = of_cases(report.cases);
        if (verdict.judged == Judged::wrong && verdict.sentence.empty())
            verdict.sentence =
                "Not right yet, and not a mistake that this exercise knows. These are the results:";
        return verdict;
    }
    if (report.verdict == "todo") {
        verdict.judged = Judged::not_yet;
        verdict.sentence = "Not done yet: the check reached todo(), where code is missing.";
        return verdict;
    }
    for (const auto& [ended, sentence] : endings)
        if (report.verdict == ended) verdict.sentence = sentence;
    if (report.verdict == "threw")
        verdict.sentence =
            "It ended with an error that was not caught: " +
            (report.said.empty() ? "the thrown object is not a std::exception" : report.first_said());
    if (report.verdict == "missing")
        verdict.sentence = missing_function(exercises, exercise, report.function);
    if (report.verdict == "not-loaded")
        verdict.sentence = why_not_loaded(exercises, exercise, report.first_said());
    if (verdict.sentence.empty()) {
        verdict.sentence = finished.signal != 0
                               ? fmt::format("It was ended by signal {} ({}).", finished.signal,
                                             ::strsignal(finished.signal))
                               : "It ended the program itself (exit?) before the check was complete.";
    }
    return verdict;
}
}  // namespace

Verdict first_error(const std::string& said, const std::string& file, const std::string& given) {
    Verdict verdict{.judged = Judged::not_compiled,
                    .mistake = {},
                    .sentence = "It does not compile.",
                    .where = {},
                    .shown = {},
                    .parts = {},
                    .trained = {},
                    .cases = {}};
    const std::string text = plain_quotes(said);
    std::istringstream lines(text);
    std::string error, in_file;  // in_file: the last position in the file before the error
    std::vector<std::string> shown;
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind(file + ":", 0) == 0 && (error.empty() || in_file.empty()))
            in_file = line.substr(file.size() + 1);
        const std::size_t at = line.find("error: ");
        if (error.empty() && at != std::string::npos) {
            error = line.substr(at + 7);
        } else if (!error.empty() && std::regex_search(line, std::regex("^ +(\\d+ )?\\|"))) {
            shown.push_back(line);
        } else if (!shown.empty()) {
            break;
        }
    }
    if (error.empty()) {
        const std::string from = text.substr(std::min(text.size(), text.find_first_not_of('\n'))),
                          words = from.substr(0, from.find('\n'));
        verdict.sentence = words.empty() ? "The compiler ended without a message. Try once more."
                           : words.find(no_memory) != std::string::npos ? meaning_of(words)
                                                                        : "The compiler failed: " + words;
        return verdict;
    }
    const std::string member = missing_member(error, given);
    verdict.sentence = member.empty() ? meaning_of(error) : member;
    const int number = std::atoi(in_file.c_str());
    if (number > 0) verdict.where = fmt::format("line {}", number);
    verdict.shown.push_back(error);
    std::istringstream source(text_of(file));
    std::string line;
    for (int i = 0; i < number; ++i) std::getline(source, line);
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (number > 0) {
        const std::string margin = fmt::format("{:>5} | ", number);
        verdict.shown.push_back(margin + line);
        if (shown.size() > 1 && shown[0].find(line) != std::string::npos && !line.empty())
            verdict.shown.push_back("      | " +
                                    shown[1].substr(std::min(shown[1].size(), shown[1].find('|') + 2)));
    }
    return verdict;
}

Verdict judge(const Exercises& exercises, const Exercise& exercise, const std::string& file,
              const std::string& scratch, std::uint64_t seed) {
    make_folder(scratch);
    const std::string library = fmt::format("{}/{}.{}.so", scratch, exercise.name(), ::getpid());
    // LC_ALL=C selects English messages, which known_errors lists. The limits are 4 GiB and two minutes.
    std::vector<std::string> command{
        "/bin/sh", "-c", "{ ulimit -v 4194304; ulimit -t 120; } 2>/dev/null; LC_ALL=C exec \"$@\"", "sh"};
    command.insert(command.end(), exercises.compiler.begin(), exercises.compiler.end());
    const std::string given = fmt::format("-I{}/{}", exercises.sources, exercise.folder());
    for (const auto& word : {given, std::string("-shared"), std::string("-o"), library, file})
        command.push_back(word);
    const ChildResult compiled = run_capturing(command, STDERR_FILENO);
    const bool failed = compiled.code != 0 || compiled.signal != 0;
    const auto said = [&](const char* words) { return compiled.captured.find(words) != std::string::npos; };
    Verdict verdict;
    // Throws WriteError if the disk is full, because the learner did not cause this error.
    for (const char* const full :
         {"error writing to", "cannot open output file", "final link failed", "No space left"})
        if (failed && said(full)) throw WriteError(fmt::format("cannot write {}: {}", library, full));
    if (compiled.end_signal != 0) {
        verdict.end_signal = compiled.end_signal;
    } else if (failed) {
        verdict = first_error(compiled.captured, file, exercises.given(exercise));
    } else {
        const ChildResult ran = run_capturing(
            {exercises.checks, exercise.slug, library, fmt::format("{}", seed)}, report_descriptor);
        verdict = verdict_of(exercises, exercise, ran);
    }
    std::error_code gone;
    std::filesystem::remove(library, gone);
    return verdict;
}

}  // namespace tally::lesson
