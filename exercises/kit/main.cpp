// exercise-checks runs and judges an answer compiled as a library, and tests itself.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>

#include "check.hpp"

namespace exercise {

std::vector<Exercise>& all_exercises() {
    static std::vector<Exercise> all;
    return all;
}

std::pair<int, std::string> named_by(const char* check_file) {
    const std::string folder = std::filesystem::path(check_file).parent_path().filename().string();
    std::string slug = folder.substr(folder.find('_') + 1);
    std::replace(slug.begin(), slug.end(), '_', '-');
    return {std::atoi(folder.c_str()), slug};
}

namespace {

constexpr int report_descriptor = 3;      // the answer's own output goes to the terminal
constexpr int seconds_for_an_answer = 5;  // CPU time
constexpr int seconds_of_waiting = 30;    // wall time
constexpr rlim_t bytes_for_an_answer = 2u << 30;

void report(std::string_view line) {
    const std::string whole = std::string(line) + "\n";
    for (std::string_view left = whole; !left.empty();) {
        const ssize_t written = ::write(report_descriptor, left.data(), left.size());
        if (written < 0 && errno != EINTR) return;
        if (written > 0) left.remove_prefix(static_cast<std::size_t>(written));
    }
}

// ---- signals that end an answer; the handler may only write ----

std::array<char, 512> place{};  // the current case, as text

void say_where(const std::string& where) {
    const std::size_t size = std::min(where.size(), place.size() - 1);
    where.copy(place.data(), size);
    place[size] = 0;
}

void write_plainly(const char* text) {
    [[maybe_unused]] const ssize_t written = ::write(report_descriptor, text, std::strlen(text));
}

[[noreturn]] void ended_by(int signal) {
    write_plainly(signal == SIGPROF   ? "verdict too-long\n"
                  : signal == SIGALRM ? "verdict waits\n"
                  : signal == SIGABRT ? "verdict aborted\n"
                  : signal == SIGFPE  ? "verdict divided-by-zero\n"
                                      : "verdict crashed\n");
    write_plainly("where ");
    write_plainly(place.data());
    write_plainly("\n");
    ::_exit(1);
}

void set_limits() {
    static std::array<char, 1 << 16> stack;  // the handler's stack, because endless recursion leaves none
    stack_t other{};
    other.ss_sp = stack.data();
    other.ss_size = stack.size();
    ::sigaltstack(&other, nullptr);
    struct sigaction action {};
    action.sa_handler = ended_by;
    action.sa_flags = SA_ONSTACK;
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM, SIGPROF})
        ::sigaction(signal, &action, nullptr);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
#ifndef __SANITIZE_ADDRESS__
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + bytes_for_an_answer;
    const rlimit memory{bytes, bytes};
    ::setrlimit(RLIMIT_AS, &memory);
#endif
}

void give_seconds(int computing, int waiting) {
    const itimerval busy{{0, 0}, {computing, 0}}, all{{0, 0}, {waiting, 0}};
    ::setitimer(ITIMER_PROF, &busy, nullptr);
    ::setitimer(ITIMER_REAL, &all, nullptr);
}

// ---- judging ----

// Returns the functions of an answer; if one is missing, reports it and returns nothing.
std::optional<std::vector<void*>> load(const Exercise& exercise, const char* path) {
    std::vector<void*> functions;
    void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        report("verdict not-loaded");
        report(fmt::format("say {}", ::dlerror()));
        return std::nullopt;
    }
    for (const char* name : exercise.functions) {
        void* found = ::dlsym(library, fmt::format("hand_in_{}", name).c_str());
        if (found == nullptr) {
            report("verdict missing");
            report(fmt::format("function {}", name));
            return std::nullopt;
        }
        functions.push_back(reinterpret_cast<void* (*)()>(found)());
    }
    return functions;
}

const char* failed_attempt(AnswerTest& look, const std::function<void(AnswerTest&)>& examine) {
    try {
        examine(look);
        return nullptr;
    } catch (const NotYet&) {
        return "todo";
    } catch (const std::bad_alloc&) {
        return "too-much-memory";
    } catch (const std::exception& error) {
        report(fmt::format("say {}", error.what()));
        return "threw";
    } catch (...) {
        return "threw";
    }
}

void report_wrong(const AnswerTest& look, std::uint64_t seed, int cases) {
    const Complaint& first = look.complaints().front();
    report(fmt::format("where {}", first.where));
    for (const auto& line : first.lines) report(fmt::format("say {}", line));
    report(fmt::format("cases {} {} {}", cases - look.wrong_cases(), cases, seed));
}

std::string listed(const std::vector<std::string>& names) {  // returns "a, b and c"
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
    return text;
}

// Returns the first part that is wrong, if the exercise has parts.
std::optional<std::size_t> first_wrong_part(const AnswerTest& look) {
    for (std::size_t part = 0; part < look.parts(); ++part)
        if (!look.part_is_right(part)) return part;
    return std::nullopt;
}

// Lists the right and the wrong parts, so that a learner sees each repaired function. An unfinished last part, which
// reached a todo(), is neither.
void report_parts(const AnswerTest& look, bool unfinished) {
    std::vector<std::string> right, wrong;
    for (std::size_t part = 0; part + (unfinished ? 1 : 0) < look.parts(); ++part)
        (look.part_is_right(part) ? right : wrong).push_back(look.part_name(part));
    if (wrong.empty()) return;
    const std::string count = unfinished ? "" : fmt::format(" ({} of {})", right.size(), look.parts());
    const std::string first = right.empty() ? "" : fmt::format("Right: {}{}. ", listed(right), count);
    const std::string last =
        unfinished ? fmt::format(" Not done yet: {}.", look.part_name(look.parts() - 1)) : "";
    report(fmt::format("parts {}{}: {}.{}", first, right.empty() ? "Wrong" : "Still wrong", listed(wrong),
                       last));
}

// Lists the parts that were right before the check reached a todo() or an error.
void report_parts_before_the_last(const AnswerTest& look) {
    std::vector<std::string> right;
    for (std::size_t part = 0; part + 1 < look.parts(); ++part)
        if (look.part_is_right(part)) right.push_back(look.part_name(part));
    if (!right.empty()) report(fmt::format("parts Right: {}.", listed(right)));
}

bool recognised(const AnswerTest& look, const AnswerTest& known) {
    const auto part = first_wrong_part(look);
    if (!part) return look.like(known);
    return look.part_is_like(known, *part) && first_wrong_part(known) == part;
}

int judge(const Exercise& exercise, const char* path, std::uint64_t seed) {
    set_limits();
    say_where("while it was loaded");
    give_seconds(seconds_for_an_answer, seconds_of_waiting);
    const auto functions = load(exercise, path);
    if (!functions) return 1;

    AnswerTest look(seed);
    look.tell = say_where;
    const char* failed =
        failed_attempt(look, [&](AnswerTest& at) { exercise.examine_loaded(at, functions->data()); });
    give_seconds(0, 0);
    // If a part before the todo() is wrong, the learner sees what is wrong with it.
    const bool unfinished = failed != nullptr && failed == std::string_view("todo") && first_wrong_part(look);
    if (failed != nullptr && !unfinished) {
        report(fmt::format("verdict {}", failed));
        if (look.parts() > 1) report_parts_before_the_last(look);
        report(fmt::format("where {}", look.place()));
        return 1;
    }
    if (look.complaints().empty()) {
        report("verdict passed");
        report(fmt::format("cases {} {} {}", look.cases(), look.cases(), seed));
        for (const auto& sentence : look.trainings()) report("trained " + sentence);
        return 0;
    }
    report("verdict wrong");
    report_parts(look, unfinished);
    for (std::size_t which = 0; which < exercise.mistakes.size(); ++which) {
        AnswerTest known(seed);
        try {
            exercise.examine_mistake(known, which);
        } catch (const std::exception&) {
            continue;
        }
        if (!recognised(look, known)) continue;
        report(fmt::format("mistake {}", exercise.mistakes[which].first));
        report(fmt::format("sentence {}", exercise.mistakes[which].second));
        break;
    }
    report_wrong(look, seed, look.cases() - (unfinished ? 1 : 0));
    return 1;
}

// Checks that the answer passes, and that each known mistake is recognised as itself and no other.
bool self_test(const Exercise& exercise) {
    bool good = true;
    const auto expect = [&](bool holds, const std::string& fault) {
        if (!holds) std::cout << exercise.slug << ": " << fault << "\n";
        good = good && holds;
    };
    const auto looked = [&](const std::string& name, const std::function<void(AnswerTest&)>& examine) {
        AnswerTest look(0);
        try {
            examine(look);
        } catch (const std::exception& error) {
            expect(false, fmt::format("{} throws: {}", name, error.what()));
        }
        return look;
    };
    const AnswerTest right = looked("the answer", exercise.examine_right);
    expect(right.complaints().empty(), "the answer does not pass");
    std::vector<AnswerTest> known;
    for (std::size_t which = 0; which < exercise.mistakes.size(); ++which) {
        const std::string& name = exercise.mistakes[which].first;
        known.push_back(looked(name, [&](AnswerTest& look) { exercise.examine_mistake(look, which); }));
        expect(!known.back().complaints().empty(), fmt::format("the mistake {} passes", name));
        for (std::size_t other = 0; other < which; ++other)
            expect(!known.back().like(known[other]),
                   fmt::format("the mistake {} is taken for {}", name, exercise.mistakes[other].first));
    }
    return good;
}

int main_of_the_checks(int argc, char** argv) {
    auto& all = all_exercises();
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
    if (argc == 2 && argv[1] == std::string_view("--self-test"))
        return static_cast<int>(std::count_if(all.begin(), all.end(),
                                              [](const auto& exercise) { return !self_test(exercise); }) > 0);
    for (const auto& exercise : all)
        if (argc == 4 && exercise.slug == argv[1])
            return judge(exercise, argv[2], std::strtoull(argv[3], nullptr, 10));
    std::cerr << "usage: exercise-checks SLUG ANSWER.so SEED | --self-test\n";
    return 2;
}

}  // namespace

}  // namespace exercise

int main(int argc, char** argv) {
    const int code = exercise::main_of_the_checks(argc, argv);
    std::cout.flush();
    ::_exit(code);  // does not run the answer's destructors
}
