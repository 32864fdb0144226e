// Calls every operation, mostly with one changed argument. A valid call must compute a result. An invalid
// call must throw an Error that quotes the operands, and must free all its nodes and memory.
#include "autograd/error_inputs.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "catch.hpp"
#include "tally/autograd/node.hpp"
#include "tally/base/text.hpp"

using namespace tally;
using namespace tally::test;

namespace {

constexpr std::int64_t far_off = std::numeric_limits<std::int64_t>::max();

std::string words(const Extents& extents) { return detail::to_text(extents); }

// Changes one argument, and returns the new value in the format of error messages. May change nothing.
std::string change(Call& call, Random& r) {
    const auto pick = [&](auto& from) -> auto& {
        return from[static_cast<std::size_t>(r.whole(0, static_cast<std::int64_t>(from.size()) - 1))];
    };
    const auto reshape = [&](Extents& x) {
        const std::int64_t way = r.whole(0, 4), last = static_cast<std::int64_t>(x.size());
        if (way == 0 && x.size() < 5)
            x.insert(x.begin() + r.whole(0, last), r.whole(1, 3));
        else if (way == 1 && !x.empty())
            x.erase(x.begin() + r.whole(0, last - 1));
        else if (way == 2)
            x.clear();
        else if (!x.empty())
            pick(x) = way == 3 ? r.whole(0, 5) : pick(x) + 1;
        return words(x);
    };
    switch (r.whole(0, 3)) {
        case 0:
            return reshape(pick(call.operands));
        case 1: {
            if (call.whole.empty()) return "";
            const std::vector<std::int64_t> others{
                -1, 0, 1, r.whole(-7, 7), pick(call.whole) + 1, pick(call.whole) - 1, far_off, -far_off - 1};
            const std::int64_t value = others[static_cast<std::size_t>(r.whole(0, 7))];
            if (r.whole(0, 3) == 0)
                call.whole.push_back(value);
            else
                pick(call.whole) = value;
            return std::to_string(value);
        }
        case 2: {
            if (call.numbers.empty()) return "";
            const double infinite = std::numeric_limits<double>::infinity(),
                         others[] = {std::nan(""), infinite, -infinite, -0.5, 0, 1, 1.5};
            const double value = others[r.whole(0, 6)];
            pick(call.numbers) = value;
            return detail::to_text(value);
        }
        default: {
            if (call.indices.empty()) return "";
            Wholes& index = pick(call.indices);
            if (r.coin() && !index.values.empty()) {
                const std::int32_t others[] = {-1, 4, 5, std::numeric_limits<std::int32_t>::max(),
                                               std::numeric_limits<std::int32_t>::min()};
                const std::int32_t value = others[r.whole(0, 4)];
                pick(index.values) = value;
                return std::to_string(value);
            }
            const std::string named = reshape(index.shape);
            index.values.resize(static_cast<std::size_t>(product(index.shape)), 0);
            return named;
        }
    }
}

std::string described(const Operation64& operation, const Call& call) {
    std::string text = std::string(operation.function) + ":";
    for (const Extents& x : call.operands) text += " " + words(x);
    for (const Wholes& x : call.indices) text += " index " + words(x.shape);
    text += "; " + words(call.whole) + ";";
    for (const double x : call.numbers) text += " " + std::to_string(x);
    return text;
}

// Returns which part of an error message is missing, or "" if the message names the operation, an operand and
// the text `changed`.
std::string missing(const std::string& error, const Operation64& operation, const Call& call,
                    const std::string& changed) {
    const auto has = [&](const std::string& text) { return error.find(text) != std::string::npos; };
    if (error.rfind(std::string("[") + operation.name + "] ", 0) != 0) return "the operation";
    std::multiset<std::string> shapes;
    for (const Extents& x : call.operands) shapes.insert(words(x));
    for (const Wholes& x : call.indices) shapes.insert(words(x.shape));
    std::size_t named = 0;
    for (const std::string& shape : shapes)
        named += has(shape) || (shape == "()" && has("a single number")) ? 1 : 0;
    // The messages for an invalid axis, label, index or pooling window quote only one operand.
    if (has("is out of range for") || has("outside the rows of") || has("is not one of the") ||
        has("] a window of") || has("one value per feature"))
        return named > 0 || has("classes") ? "" : "an operand";
    const bool shape_changed = changed[0] == '(';
    if (shape_changed && !has(changed) && !(changed == "()" && has("a single number"))) return changed;
    const bool number_changed = changed.find('.') != std::string::npos || changed.find("inf") == 0 ||
                                changed.find("nan") != std::string::npos || changed == "-inf" ||
                                has("; it is " + changed);
    if (number_changed) return has(changed) ? "" : changed;
    if (!shape_changed && changed.size() > 3 && !has(changed)) return changed;
    if (named == 0) return "an operand";
    if (shape_changed && named < 2 && shapes.size() > 1 && !has("a single number"))
        return "the other operand";
    return "";
}

}  // namespace

TEST_CASE(
    "every operation: computes valid calls, and throws Error with the operands when a call is invalid") {
    const char* const given = std::getenv("TALLY_SEED");
    const std::uint64_t seed = given ? std::strtoull(given, nullptr, 10) : 12;
    Random r(seed);
    for (const Operation64& operation : operations_and_rules()) {
        int rejected = 0, computed = 0;
        for (int i = 0; i < 400; ++i) {
            Call call = operation.draw(r);
            std::string changed = "nothing";
            if (i % 8) changed = change(call, r);
            if (changed.empty()) continue;
            INFO("seed " << seed << ", " << described(operation, call) << ", changed " << changed);
            Tensors operands;
            for (const Extents& x : call.operands) operands.push_back(parameter(r.array<double>(Shape(x))));
            std::vector<Array<std::int32_t>> indices;
            for (const Wholes& x : call.indices) indices.emplace_back(Shape(x.shape), x.values);
            const bool legal = operation.legal(call);
            if (i % 8 == 0) REQUIRE(legal);
            const std::int64_t nodes = static_cast<std::int64_t>(Node::live_count());
            const std::size_t bytes = memory::in_use();
            std::string error = "no error";
            try {
                operation.run(call, operands, indices);
            } catch (const Error& thrown) {
                error = thrown.what();
            }
            CHECK(static_cast<std::int64_t>(Node::live_count()) == nodes);
            CHECK(memory::in_use() == bytes);
            INFO(error);
            if (legal) {
                CHECK(error == "no error");
                ++computed;
            } else {
                CHECK(error != "no error");
                CHECK(missing(error, operation, call, changed) == "");
                CHECK(error.size() < 400);
                ++rejected;
            }
        }
        INFO(operation.function);
        CHECK(computed > 0);
        const bool takes_anything = std::string(operation.name) == operation.function &&
                                    operation.draw(r).operands.size() == 1 && operation.draw(r).whole.empty();
        if (!takes_anything && std::string(operation.name) != "neg") CHECK(rejected > 0);
    }
}

TEST_CASE("operations_and_rules: lists every public operation") {
    std::set<std::string> known{// implementation details, and operations that have their own tests
                                "apply",          "custom",
                                "matmul_batched", "record_conv",
                                "times",          "record_batch_norm",
                                "record_reshape", "scalar_on_device_of"};
    for (const Operation64& operation : operations_and_rules()) known.insert(operation.function);
    const std::regex made(
        R"((?:^|> |^ {4})(?:inline )?(?:detail::)?(?:(?:Var|Loss|BatchNormResult|BatchStatistics|std::vector<Var|Array)<[^(;={]*>|BatchStatistics) (operator.|\w+)\()");
    std::set<std::string> found;
    const auto search = [&](const std::filesystem::path& header) {
        std::ifstream file(header);
        REQUIRE(file);
        for (std::string line; std::getline(file, line);)
            for (std::sregex_iterator match(line.begin(), line.end(), made), end; match != end; ++match)
                found.insert((*match)[1]);
    };
    for (const auto& header : std::filesystem::directory_iterator(TALLY_SOURCE_DIR "/src/autograd/ops"))
        search(header.path());
    search(TALLY_SOURCE_DIR "/src/array/statistics.hpp");
    for (const std::string& name : found) {
        INFO(name);
        CHECK(known.count(name) == 1);
    }
    for (const std::string& name : known) {
        INFO(name);
        CHECK(found.count(name) == 1);
    }
}
