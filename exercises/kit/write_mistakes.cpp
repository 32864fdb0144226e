// exercise-mistakes writes the header of a check: each mistake in full, from `right` and the different lines.
#include <algorithm>
#include <cstddef>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Lines = std::vector<std::string>;

struct Change {
    int line;           // line number in the file of mistakes
    std::string whole;  // begins with ' ' (keep), '-' (remove) or '+' (insert), as in a diff
};

struct Mistake {
    std::string name, sentence;
    std::vector<Change> changes;
};

bool begins(const std::string& line, const std::string& with) { return line.rfind(with, 0) == 0; }

Lines lines_of(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    Lines lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}

[[noreturn]] void fail(const std::string& path, int line, const std::string& fault) {
    throw std::runtime_error(path + ":" + std::to_string(line) + ": " + fault);
}

Lines right_answer(const std::string& check) {
    const Lines lines = lines_of(check);
    const auto from = std::find(lines.begin(), lines.end(), "namespace right {");
    const auto to = std::find(from, lines.end(), "}  // namespace right");
    if (to == lines.end()) throw std::runtime_error(check + " has no namespace right");
    return {from + 1, to};
}

// Returns the functions that an answer must define, in this order.
Lines handed_in(const std::string& given) {
    const std::string before = "HAND_IN(";
    Lines names;
    for (const auto& line : lines_of(given))
        if (begins(line, before)) names.push_back(line.substr(before.size(), line.find(')') - before.size()));
    return names;
}

std::vector<Mistake> mistakes_of(const std::string& path) {
    std::vector<Mistake> mistakes;
    int number = 0;
    for (const auto& line : lines_of(path)) {
        ++number;
        if (line.empty() || begins(line, "# ")) continue;
        if (begins(line, "== ")) {
            mistakes.push_back({line.substr(3), {}, {}});
            continue;
        }
        if (mistakes.empty()) fail(path, number, "a mistake begins with '== ' and its name");
        auto& [name, sentence, changes] = mistakes.back();
        if (line[0] == ' ' || line[0] == '-' || line[0] == '+') {
            changes.push_back({number, line});
        } else if (changes.empty()) {
            sentence += (sentence.empty() ? "" : " ") + line;
        } else {
            fail(path, number, "a line of " + name + " begins with neither ' ' nor '-' nor '+'");
        }
    }
    return mistakes;
}

// Applies the changes to `right` in order. A line to keep or remove is searched below the previous one, and
// '+' inserts after the previous one. Other lines are kept, but removed between '-...' and the next named one.
Lines changed(const Lines& right, const Mistake& mistake, const std::string& path) {
    Lines result;
    auto at = right.begin();
    bool going = false;
    for (const auto& [line, whole] : mistake.changes) {
        const std::string text = whole.substr(1);
        if (whole == "-...") {
            going = true;
        } else if (whole[0] == '+') {
            result.push_back(text);
        } else {
            const auto found = std::find(at, right.end(), text);
            if (found == right.end())
                fail(path, line,
                     mistake.name + " names a line that `right` does not have" +
                         (at == right.begin() ? "" : " below the one named before it") + ": " + text);
            if (!going) result.insert(result.end(), at, found);
            if (whole[0] == ' ') result.push_back(text);
            at = found + 1;
            going = false;
        }
    }
    const int last = mistake.changes.empty() ? 1 : mistake.changes.back().line;
    if (going) fail(path, last, mistake.name + " does not say which line stays after '-...'");
    result.insert(result.end(), at, right.end());
    if (result == right) fail(path, last, mistake.name + " is the answer itself");
    if (mistake.sentence.empty()) fail(path, last, mistake.name + " has no sentence");
    return result;
}

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) result += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
    return result + "\"";
}

// Returns "{a::f, a::g}".
std::string functions_of(const std::string& answer, const Lines& names) {
    std::string result;
    for (const auto& name : names) result += (result.empty() ? "{" : ", ") + answer + "::" + name;
    return result + "}";
}

std::string header(const std::string& check, const std::string& path, const std::string& given) {
    const Lines right = right_answer(check), names = handed_in(given);
    std::string text = "// Written by exercise-mistakes.\n", table, all;
    for (const auto& mistake : mistakes_of(path)) {
        text += "\nnamespace " + mistake.name + " {\n";
        for (const auto& line : changed(right, mistake, path)) text += line + "\n";
        text += "}  // namespace " + mistake.name + "\n";
        table += "     {" + quoted(mistake.name) + ", " + functions_of(mistake.name, names) + ", " +
                 quoted(mistake.sentence) + "},\n";
    }
    text += "\nstruct Functions {\n";
    for (const auto& name : names) text += "    decltype(&::" + name + ") " + name + ";\n";
    for (const auto& name : names) all += (all.empty() ? "" : ", ") + quoted(name);
    return text + "};\n\nconst exercise::Answers<Functions> answers{\n    {" + all + "},\n    " +
           functions_of("right", names) + ",\n    {\n" + table + "    }};\n";
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 5)
            throw std::runtime_error("usage: exercise-mistakes check.cpp mistakes.txt given.hpp OUT");
        const std::string text = header(argv[1], argv[2], argv[3]);
        std::ofstream file(argv[4]);
        file << text;
        file.close();
        if (!file) throw std::runtime_error(std::string("cannot write ") + argv[4]);
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
