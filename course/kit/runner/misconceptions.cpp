// Counts and draws the mistakes of a class.
#include "course/kit/runner/misconceptions.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "course/kit/files.hpp"
#include "course/kit/runner/answer_file.hpp"
#include "course/kit/runner/exit.hpp"
#include "course/kit/text.hpp"
#include "tally/tools/svg.hpp"

namespace tally::lesson {

namespace fs = std::filesystem;

namespace {
using Place = std::tuple<std::string, std::string, std::string>;  // identifies a question or exercise

Place place_of_answer(const AnswerRecord& answer) { return {answer.what, answer.of, answer.number}; }

bool is_a_try(const AnswerRecord& one) {
    return one.what != "lesson" && (one.how == "right" || one.how == "wrong" || one.how == "passed");
}

std::string where(const AnswerRecord& answer) {
    return answer.what == "question" ? fmt::format("{}, question {}", answer.of, answer.number)
                                     : "exercise " + answer.of;
}

std::string explanation(const Misconception& one) {
    const AnswerRecord& answer = one.answer;
    if (answer.which.empty()) return "another answer, without a known mistake";
    return answer.given.empty() ? answer.sentence : fmt::format("\"{}\": {}", answer.given, answer.sentence);
}

std::string share(const Misconception& one) { return fmt::format("{} of {}", one.learners, one.of); }

struct Class {
    std::vector<std::vector<AnswerRecord>> learners;
    std::vector<std::string> remarks;  // sentences about broken files
};

// Reads the files in the folder, and the files `answers` and `work/answers` in its subfolders.
Class read_class(const std::string& folder) {
    std::error_code failed;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder, failed)) {
        if (entry.path().filename().string().front() == '.') continue;
        for (const auto& path : {entry.path(), entry.path() / "answers", entry.path() / "work" / "answers"}) {
            std::error_code unknown;
            if (fs::is_regular_file(path, unknown)) files.push_back(path);
        }
    }
    if (failed) throw WriteError(fmt::format("cannot read the folder {}: {}", folder, failed.message()));
    std::sort(files.begin(), files.end());
    Class found;
    for (const auto& path : files) {
        const std::string name = in_one_line(path.lexically_relative(folder).string());
        try {
            AnswersRead read = read_answers(path.string());
            if (read.broken > 0 && read.answers.empty()) {
                found.remarks.push_back(fmt::format("{} is not a file of answers: ignored", name));
                continue;
            }
            if (read.broken > 0)
                found.remarks.push_back(fmt::format(
                    "{} has {}, the first '{}': ignored", name,
                    read.broken == 1 ? "a line that is not an answer" : "lines that are not answers",
                    in_one_line(read.first_broken)));
            found.learners.push_back(std::move(read.answers));
        } catch (const WriteError& error) {
            found.remarks.push_back(fmt::format("{}: ignored", error.what()));
        }
    }
    return found;
}

void print(const std::string& line) { write_to(STDOUT_FILENO, line + "\n"); }

void print_table(const std::vector<Misconception>& all, const Style& style) {
    const auto said = [&](const std::string& text) { return style.ascii ? to_ascii(text) : text; };
    for (const auto& one : all) {
        const std::string head = padded_left(share(one), 8) + "  ";
        for (const auto& line : wrapped(head + said(where(one.answer)), style.width, head.size()))
            print(line);
        const std::string margin(head.size(), ' ');
        for (const auto& text : {one.answer.question, explanation(one)}) {
            if (text.empty()) continue;
            for (const auto& line : wrapped(margin + said(text), style.width, head.size())) print(line);
        }
    }
}

void print_json(const std::vector<Misconception>& all) {
    for (const auto& one : all) {
        print(nlohmann::ordered_json{{"v", 1},
                                     {"event", "misconception"},
                                     {"what", one.answer.what},
                                     {"slug", one.answer.of},
                                     {"number", one.answer.number},
                                     {"which", one.answer.which},
                                     {"given", one.answer.given},
                                     {"sentence", explanation(one)},
                                     {"question", one.answer.question},
                                     {"learners", one.learners},
                                     {"of", one.of}}
                  .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
}
}  // namespace

std::vector<Misconception> misconceptions(const std::vector<std::vector<AnswerRecord>>& learners) {
    std::map<Place, std::size_t> answered;
    std::map<std::pair<Place, std::string>, Misconception> found;
    for (const auto& answers : learners) {
        std::set<Place> places;
        std::set<std::pair<Place, std::string>> made;
        for (const auto& answer : answers) {
            if (!is_a_try(answer)) continue;
            const Place place = place_of_answer(answer);
            if (places.insert(place).second) ++answered[place];
            if (answer.how != "wrong" || !made.insert({place, answer.which}).second) continue;
            auto& one = found[{place, answer.which}];
            if (one.learners++ == 0) one.answer = answer;
        }
    }
    std::vector<Misconception> all;
    for (auto& [key, one] : found) {
        one.of = answered[key.first];
        all.push_back(std::move(one));
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
        return a.learners != b.learners ? a.learners > b.learners : a.of < b.of;  // then by share
    });
    return all;
}

std::string chart_of(const std::vector<Misconception>& all, std::size_t learners) {
    constexpr std::size_t most = 10, columns = 108;  // mistakes and characters that fit on a slide
    constexpr int line = 26, left = 40, wide = 1320, top = 100;
    std::string body, told;
    int y = top;
    for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
        const Misconception& one = all[i];
        const int bar = static_cast<int>(static_cast<double>(wide) * static_cast<double>(one.learners) /
                                         static_cast<double>(one.of));
        body += svg::formatted("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"34\" class=\"c-all\"/>\n", left,
                               y, wide) +
                svg::formatted("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"34\" class=\"c-bar\"/>\n", left,
                               y, bar) +
                svg::text(left + 10, y + 24, "c-head", fmt::format("{}: {}", share(one), where(one.answer)));
        y += 34 + line;
        for (const auto& text : {one.answer.question, explanation(one)}) {
            if (text.empty()) continue;
            for (const auto& words : wrapped(text, columns, 2)) {
                body += svg::text(left + 10, y, "", words);
                y += line;
            }
        }
        y += line / 2;
        told += fmt::format("{}: {}: {} ", share(one), where(one.answer), explanation(one));
    }
    const std::string title =
        fmt::format("The mistakes of {} {}", learners, learners == 1 ? "learner" : "learners");
    return svg::page(wide + 2 * left, y + line, title, told,
                     ".c-all{fill:#eef1f4}\n.c-bar{fill:#f3b98d}\n.c-head{font-weight:bold}\n") +
           svg::text(left, 56, "t-title", title) + body + "</svg>\n";
}

int show_class(const std::string& folder, const std::string& file, const Flags& flags, const Style& style) {
    const Class found = read_class(folder);
    for (const auto& remark : found.remarks) print_error("learn", remark);
    if (found.learners.empty()) {
        print_error(
            "learn",
            fmt::format("no answers in {}: put each learner's work/answers there, under any names", folder));
        return skipped;
    }
    const auto all = misconceptions(found.learners);
    if (flags.json) {
        print_json(all);
        return good;
    }
    print(fmt::format(
        "{} {}, {} known mistakes, the most frequent first", found.learners.size(),
        found.learners.size() == 1 ? "learner" : "learners",
        std::count_if(all.begin(), all.end(), [](auto& one) { return !one.answer.which.empty(); })));
    print_table(all, style);
    if (all.empty()) return good;
    const auto parent = fs::path(file).parent_path();
    if (!parent.empty()) make_folder(parent.string());
    write_whole(file, chart_of(all, found.learners.size()));
    print(fmt::format("wrote {}", file));
    return good;
}

}  // namespace tally::lesson
