// The answer and the check of exercise newest-first.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
std::vector<int> order(const Inputs& inputs, int from) {
    std::vector<int> visited;
    std::set<int> waiting{from};
    while (!waiting.empty()) {
        const int value = *waiting.rbegin();
        waiting.erase(value);
        visited.push_back(value);
        for (int input : inputs[static_cast<std::size_t>(value)]) waiting.insert(input);
    }
    return visited;
}
}  // namespace right

#include "02_newest_first.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const Inputs& inputs, int from) {
        look.with(where);
        std::vector<int> given;
        if (!look.runs([&] { given = yours.order(inputs, from); })) return;
        look.equal("order", exercise::as_numbers(given), exercise::as_numbers(right::order(inputs, from)));
    };
    look_at("x; y = x * x; z = y + x: from z (number 2)", {{}, {0, 0}, {1, 0}}, 2);
    look_at("a, b; c = a * b; d = c + a; e = c * d: from e (number 4)", {{}, {}, {0, 1}, {2, 0}, {2, 3}}, 4);
    look_at("x; y = x * 2; u = y + x; v = y * u: from v (number 3)", {{}, {0}, {1, 0}, {1, 2}}, 3);
    look_at("a; b; c = a + a; d = b * b: from c (number 2), which does not use b", {{}, {}, {0, 0}, {1, 1}},
            2);
    Inputs ladder{{}};
    for (int i = 0; i < 12; ++i) ladder.push_back({i, i});
    look_at("y = x + x, repeated twelve times: 4096 paths", ladder, 12);
    for (int draw = 0; draw < 4; ++draw) {
        Inputs inputs{{}, {}};
        const int size = look.whole(6, 12);
        for (int i = 2; i < size; ++i) inputs.push_back({look.whole(0, i - 1), look.whole(0, i - 1)});
        look_at("a random graph of " + std::to_string(size) + " values", inputs, size - 1);
    }
}

const exercise::Add add(
    {.title = "the order in which backward visits values",
     .minutes = 10,
     .lesson = "the-diamond",
     .hints = {"`waiting` contains the values that backward() still has to visit. Which of these values "
               "cannot be an input of another value in `waiting`?",
               "Values are numbered in the order of the forward pass, so the waiting value with the largest "
               "number has a complete gradient. Change the line that chooses the next value, and keep each "
               "value in `waiting` only once.",
               "Make `waiting` a std::set<int>, which keeps each number once, in increasing order. rbegin() "
               "points to the largest number. Erase this number, visit the value with this number, and "
               "insert the numbers of its inputs."},
     .why = "A value is newer than its inputs. Therefore, the newest of the values that backward() still has "
            "to visit has a complete gradient. If backward takes the newest value first, 60 visits are "
            "enough for a graph with 2^60 paths."},
    examine, answers);

}  // namespace
