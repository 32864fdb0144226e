// Reads the reference values of operations from tests/fixtures. docs/fixtures.md describes the file format.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tally/array/shape.hpp"

namespace tally::test {

struct Numbers {
    Shape shape;
    std::vector<double> values;  // float32 values are widened without loss
};

struct Fixture {
    std::string name, operation;
    bool single_precision = false, raises = false;
    std::set<std::string> tags;
    std::map<std::string, std::vector<double>> attributes;
    std::map<std::string, Numbers> inputs, indices, gradients;  // keys are operand names
    Numbers seed, output;
    std::optional<double> count;

    bool has(const std::string& attribute) const { return attributes.count(attribute) > 0; }
    double number(const std::string& attribute, double otherwise) const {
        return has(attribute) ? attributes.at(attribute).at(0) : otherwise;
    }
    std::vector<std::int64_t> integers(const std::string& attribute) const {
        if (!has(attribute)) return {};
        const std::vector<double>& all = attributes.at(attribute);
        return {all.begin(), all.end()};
    }
    std::int64_t integer(const std::string& attribute) const { return integers(attribute).at(0); }
};

class FixtureReader {
public:
    explicit FixtureReader(const std::filesystem::path& path) : path_(path), file_(path) {
        if (!file_) fail("cannot be opened");
    }

    std::vector<Fixture> read() {
        std::vector<Fixture> all;
        for (std::string line; std::getline(file_, line);) {
            ++line_;
            if (line.empty() || line[0] == '#') continue;
            const std::string kind = word(line);
            if (kind == "case") {
                all.emplace_back().name = line;
                all.back().operation = path_.stem().string();
                if (line.rfind(path_.stem().string() + "/", 0) != 0)
                    fail("'" + line + "' belongs into another file");
            } else if (all.empty()) {
                fail("a case must come first");
            } else {
                take(all.back(), kind, line);
            }
        }
        return all;
    }

private:
    void take(Fixture& f, const std::string& kind, std::string& rest) {
        if (kind == "dtype") {
            f.single_precision = rest == "float32";
        } else if (kind == "tags") {
            while (!rest.empty()) f.tags.insert(word(rest));
        } else if (kind == "attr") {
            const std::string name = word(rest);
            f.attributes[name] = numbers(rest, false);
        } else if (kind == "input") {
            array(f, f.inputs[word(rest)], rest);
        } else if (kind == "index") {
            array(f, f.indices[word(rest)], rest);
        } else if (kind == "grad") {
            array(f, f.gradients[word(rest)], rest);
        } else if (kind == "seed" || kind == "output") {
            word(rest);
            array(f, kind == "seed" ? f.seed : f.output, rest);
        } else if (kind == "count") {
            f.count = numbers(rest, false).at(0);
        } else if (kind == "raises") {
            f.raises = true;
        } else {
            fail("unknown line '" + kind + "'");
        }
    }

    void array(const Fixture& f, Numbers& to, const std::string& text) {
        const auto close = text.find(']');
        if (text.empty() || text[0] != '[' || close == std::string::npos)
            fail("a shape in brackets is missing");
        const std::vector<double> extents = numbers(text.substr(1, close - 1), false);
        to.shape = Shape(std::vector<std::int64_t>(extents.begin(), extents.end()));
        to.values = numbers(text.substr(close + 1), f.single_precision);
        if (to.values.size() != to.shape.size())
            fail("the numbers do not fill the shape " + to_string(to.shape));
    }

    std::vector<double> numbers(const std::string& text, bool single) {
        std::vector<double> values;
        std::istringstream words(text);
        for (std::string each; words >> each;)
            values.push_back(single ? number<float>(each) : number<double>(each));
        return values;
    }

    template <class S> S number(const std::string& text) {
        S value{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size()) fail("'" + text + "' is not a number");
        return value;
    }

    static std::string word(std::string& line) {  // removes and returns the first word
        const auto end = std::min(line.find(' '), line.size());
        std::string first = line.substr(0, end);
        line.erase(0, std::min(end + 1, line.size()));
        return first;
    }

    [[noreturn]] void fail(const std::string& what) const {
        throw std::runtime_error(path_.string() + ":" + std::to_string(line_) + ": " + what);
    }

    std::filesystem::path path_;
    std::ifstream file_;
    int line_ = 0;
};

// Returns the fixtures of each operation.
inline std::map<std::string, std::vector<Fixture>> read_fixtures(const std::filesystem::path& folder) {
    std::map<std::string, std::vector<Fixture>> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().extension() == ".txt")
            all[entry.path().stem().string()] = FixtureReader(entry.path()).read();
    return all;
}

}  // namespace tally::test
