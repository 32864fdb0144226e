// Parses the page of a lesson line by line.
#include "course/kit/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "course/kit/text.hpp"

namespace tally::lesson {

namespace {
[[noreturn]] void reject(const std::string& file, std::size_t line, std::string_view why) {
    throw std::runtime_error(fmt::format("{}:{}: {}", file, line, why));
}

std::string trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
    return begin == std::string_view::npos ? "" : std::string(text.substr(begin, end + 1 - begin));
}

// Removes the marks of code, `w.grad`, which a terminal does not need.
std::string without_marks(std::string text) {
    std::erase(text, '`');
    return text;
}

std::string content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw std::runtime_error(fmt::format("{}: the page of this lesson cannot be read", path.string()));
    return {std::istreambuf_iterator<char>(file), {}};
}

bool begins_item(std::string_view line) {
    return line.starts_with("- ") || (line.size() > 2 && line.substr(1, 2) == ". ");
}

void append(std::string& text, const std::string& line) { text += (text.empty() ? "" : " ") + line; }

class Parser {
public:
    Parser(const std::string& file, std::string_view text) : page_{file} {
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            ++line_;
            add(trimmed(text.substr(begin, end - begin)));
            begin = end + 1;
        }
        end_question();
        page_.in_pytorch = without_marks(std::move(page_.in_pytorch));
        if (page_.title.empty()) reject(file, 1, "expected a heading such as '# Lesson 7: divide'");
        if (page_.minutes == 0)
            reject(file, line_, "expected a line such as '10 minutes alone, 20 in class'");
    }
    Page page() && { return std::move(page_); }

private:
    void add(const std::string& line) {
        if (line.starts_with("```")) in_code_ = !in_code_;
        if (in_code_) return;
        if (int begin = 0;
            std::sscanf(line.c_str(), "# Lesson %d: %n", &page_.number, &begin) == 1 && begin > 0) {
            page_.title = line.substr(static_cast<std::size_t>(begin));
        } else if (page_.minutes == 0 && std::sscanf(line.c_str(), "%d minutes alone", &page_.minutes) == 1) {
            return;
        } else if (line.starts_with("## ")) {
            end_question();
            in_questions_ = line == "## The questions";
        } else if (in_questions_ && line.starts_with("### ")) {
            end_question();
            page_.questions.push_back({.id = trimmed(line.substr(4)), .line = line_});
        } else if (in_questions_ && !page_.questions.empty()) {
            add_to(page_.questions.back(), line);
        } else if (line.starts_with("In PyTorch: ")) {
            last_ = &(page_.in_pytorch = line);
        } else if (line.empty() || line.starts_with("Try it: ")) {
            last_ = nullptr;
        } else if (last_ == &page_.in_pytorch) {
            append(*last_, line);
        }
    }

    void add_to(PageQuestion& question, const std::string& line) {
        if (line.empty()) {
            last_ = nullptr;
        } else if (line.starts_with("* ")) {
            question.options.push_back(option(question, line.substr(2)));
            PageQuestion::Option& added = question.options.back();
            last_ = added.mistake.empty() ? &added.text : &added.mistake;
        } else if (line.starts_with("Hint: ")) {
            question.hints.push_back(line.substr(6));
            last_ = &question.hints.back();
        } else if (line.starts_with("Answer: ")) {
            question.answer = line.substr(8);
            last_ = &question.answer;
        } else if (last_ != nullptr) {
            append(*last_, line);
        } else if (question.options.empty()) {
            append(question.text, line);
        } else {
            reject(page_.file, line_,
                   "expected '* an option — its explanation', 'Hint: ...' or 'Answer: ...'");
        }
    }

    PageQuestion::Option option(PageQuestion& question, const std::string& text) {
        static constexpr std::string_view dash = " — ", within = " (within ";
        if (const std::size_t end = text.rfind("**"); text.starts_with("**") && end > 2) {
            const std::string rest = text.substr(end + 2);
            if (rest.starts_with(within) && rest.ends_with(')'))
                question.within = rest.substr(within.size(), rest.size() - within.size() - 1);
            if (rest.empty() || !question.within.empty()) return {text.substr(2, end - 2), "", line_};
        }
        const std::size_t at = text.find(dash);
        if (at == std::string::npos || text.starts_with("**"))
            reject(page_.file, line_,
                   "expected '* **the right option**' or '* a wrong option — its explanation'");
        return {trimmed(text.substr(0, at)), trimmed(text.substr(at + dash.size())), line_};
    }

    void end_question() {
        last_ = nullptr;
        if (!in_questions_ || page_.questions.empty()) return;
        const PageQuestion& question = page_.questions.back();
        const auto is_right = [](const auto& option) { return option.mistake.empty(); };
        const auto right = std::count_if(question.options.begin(), question.options.end(), is_right);
        const auto rejected = [&](std::string_view why) {
            reject(page_.file, question.line, fmt::format("the question '{}' {}", question.id, why));
        };
        if (question.text.empty()) rejected("has no text");
        if (question.options.size() < 2 || question.options.size() > 9)
            rejected(fmt::format("has {} options; expected 2 to 9", question.options.size()));
        if (right != 1) rejected(fmt::format("has {} right options, which are bold; expected 1", right));
        if (question.hints.size() != 2)
            rejected(fmt::format("has {} hints; expected two lines 'Hint: ...'", question.hints.size()));
        if (question.answer.empty()) rejected("has no line 'Answer: ...'");
    }

    Page page_;
    std::size_t line_ = 0;
    bool in_questions_ = false, in_code_ = false;
    std::string* last_ = nullptr;  // the text that an indented or wrapped line continues
};
}  // namespace

const PageQuestion& Page::question(std::string_view id) const {
    const auto found =
        std::find_if(questions.begin(), questions.end(), [&](const auto& q) { return q.id == id; });
    if (found == questions.end())
        throw std::runtime_error(
            fmt::format("{}: the question '{}' does not exist; add the heading '### {}' to the "
                        "section '## The questions'",
                        file, id, id));
    return *found;
}

Page parse_page(const std::string& file, std::string_view text) { return Parser(file, text).page(); }

Page read_page(const std::filesystem::path& path) {
    const std::string name = (path.parent_path().filename() / path.filename()).generic_string();
    return parse_page(name, content(path));
}

std::string page_to_read(const std::filesystem::path& path, std::size_t width) {
    std::istringstream page(content(path));
    std::string all, paragraph;
    const auto end_paragraph = [&] {
        for (const auto& line : wrapped(paragraph, width, begins_item(paragraph) ? 3 : 0))
            if (!line.empty()) all += line + "\n";
        paragraph.clear();
    };
    bool in_code = false, in_questions = false;
    for (std::string line; std::getline(page, line);) {
        const bool fence = line.starts_with("```");
        if (fence) in_code = !in_code;
        if (!in_code && line.starts_with("## ")) in_questions = line == "## The questions";
        if (in_questions) continue;
        const bool stays = in_code || fence || line.empty() || line.starts_with('#') || line.starts_with('|');
        if (stays || begins_item(line)) end_paragraph();
        if (stays)
            all += line + "\n";
        else
            append(paragraph, trimmed(line));
    }
    end_paragraph();
    return all;
}

Prediction prediction_of(const Page& page, std::string_view id, const Values& values, bool changed) {
    const PageQuestion& question = page.question(id);
    const auto filled = [&](std::string text, std::size_t line) {
        for (const auto& [name, value] : values) {
            const std::string place = fmt::format("{{{}}}", name);
            for (std::size_t at = 0; (at = text.find(place, at)) != std::string::npos; at += value.size())
                text.replace(at, place.size(), value);
        }
        bool in_code = false;  // braces are part of code such as `sgd_step({w}, 0.1)`
        for (std::size_t at = 0; at < text.size(); ++at) {
            if (text[at] == '`') in_code = !in_code;
            if (text[at] == '{' && !in_code)
                reject(page.file, line,
                       fmt::format("ask(\"{}\") gives no value for {}", id,
                                   text.substr(at, text.find('}', at) + 1 - at)));
        }
        return without_marks(std::move(text));
    };
    const auto in_question = [&](const std::string& text) { return filled(text, question.line); };
    Prediction asked{.is_typed = true,
                     .question = in_question(question.text),
                     .hints = {in_question(question.hints[0]), in_question(question.hints[1])},
                     .why = in_question(question.answer)};
    for (const auto& option : question.options) {
        if (option.mistake.empty()) asked.answer = asked.options.size();
        const std::string text = filled(option.text, option.line);
        const auto number = number_in(text);
        asked.is_typed = asked.is_typed && number;
        asked.options.push_back({'a', text, filled(option.mistake, option.line), number.value_or(0)});
    }
    if (asked.is_typed) {
        for (auto& option : asked.options) option.text = fmt::format("{:.10g}", option.value);
        if (!question.within.empty()) {
            const auto within = number_in(filled(question.within, question.line));
            if (!within || *within < 0)
                reject(page.file, question.line,
                       fmt::format("expected a positive number in '(within {})'", question.within));
            asked.within = *within;
        }
        if (changed)
            drop_equal(asked);
        else
            require_distinct(asked);
    }
    for (std::size_t i = 0; i < asked.options.size(); ++i) asked.options[i].id = static_cast<char>('a' + i);
    return asked;
}

}  // namespace tally::lesson
