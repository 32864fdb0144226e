// The answer and the check of exercise tokens.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
double gradient(const std::vector<Micro>& micros) {
    double all = 0, count = 0;
    for (const Micro& micro : micros)
        for (const Row& row : micro)
            for (std::size_t i = 0; i < row.mask.size(); ++i) {
                all += row.mask[i] * row.gradients[i];
                count += row.mask[i];
            }
    return count > 0 ? all / count : 0;
}
}  // namespace right

#include "14_tokens.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const std::vector<Micro>& micros) {
        look.with(where);
        double given = 0;
        if (look.runs([&] { given = yours.gradient(micros); }))
            look.equal("gradient", given, right::gradient(micros));
    };
    const Row long_one{{1, 2, 3, 6}, {1, 1, 1, 1}}, short_one{{8, 9, 9, 9}, {1, 0, 0, 0}},
        padding{{9, 9}, {0, 0}};
    look_at("one micro-batch with rows of 4 tokens and of 1 token", {{long_one, short_one}});
    look_at("two micro-batches, of 4 tokens and of 1 token", {{long_one}, {short_one}});
    look_at("three micro-batches, the second with no token that counts",
            {{long_one}, {padding}, {short_one}});
    look_at("a window in which no token counts at all", {{padding}, {padding}});
    for (int draw = 0; draw < 4; ++draw) {
        std::vector<Micro> micros(static_cast<std::size_t>(look.whole(2, 4)));
        for (Micro& micro : micros) {
            const int places = look.whole(2, 6);
            for (int rows = look.whole(1, 3); rows > 0; --rows) {
                Row row{look.uniforms(static_cast<std::size_t>(places)), {}};
                const int tokens = look.whole(1, places);
                for (int i = 0; i < places; ++i) row.mask.push_back(i < tokens ? 1 : 0);
                micro.push_back(row);
            }
        }
        look_at("random rows in " + std::to_string(micros.size()) + " micro-batches", micros);
    }
}

const exercise::Add add(
    {.title = "a masked mean over ragged rows",
     .minutes = 10,
     .lesson = "mean-sum-token",
     .hints = {"One micro-batch has ten tokens, and another has a thousand. In the mean of the two "
               "micro-batches' means, which weight does one token of each micro-batch have?",
               "Look at the line that sets sum and tokens to 0, and at the line with the first division. You "
               "need the sum and the number of tokens of all micro-batches, not of one micro-batch.",
               "Declare the sum and the number of tokens before all loops, and divide the sum once, after "
               "all loops. If the number of tokens is 0, return 0."},
     .why =
         "An update needs one sum of gradients, one number of tokens, and one division at the end. Then each "
         "token that counts has the same weight, and a micro-batch without tokens is not a special case."},
    examine, answers);

}  // namespace
