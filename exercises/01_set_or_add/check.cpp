// The answer and the check of exercise set-or-add.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
void times_backward(double factor, const Numbers& dy, Into<Numbers> to) {
    for (std::size_t i = 0; i < dy.size(); ++i) {
        const double part = factor * dy[i];
        to.dst[i] = to.how == Write::set ? part : to.dst[i] + part;
    }
}
}  // namespace right

#include "01_set_or_add.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto look_at = [&](const std::string& where, double factor, const Numbers& dy, Numbers place,
                             Write how) {
        look.with(where);
        Numbers wanted = place;
        for (std::size_t i = 0; i < dy.size(); ++i)
            wanted[i] = (how == Write::set ? 0 : place[i]) + factor * dy[i];
        if (how == Write::set)
            for (std::size_t i = 0; i < dy.size(); ++i) wanted[i] = factor * dy[i];
        if (look.runs([&] { yours.times_backward(factor, dy, {place, how}); }))
            look.equal("gradient", place, wanted);
    };
    look_at("factor 3, dy [1 2], Write::set, and [0 0] in to.dst", 3, {1, 2}, {0, 0}, Write::set);
    look_at("factor 3, dy [1 2], Write::add, and [10 30] in to.dst", 3, {1, 2}, {10, 30}, Write::add);
    look_at("factor 3, dy [1 2], Write::set, and old numbers [7 7] in to.dst", 3, {1, 2}, {7, 7}, Write::set);
    look_at("factor 3, dy [1 2], Write::set, and NaN in to.dst", 3, {1, 2}, {nan, nan}, Write::set);
    for (int draw = 0; draw < 4; ++draw) {
        const auto size = static_cast<std::size_t>(look.whole(1, 6));
        const double factor = look.uniform(-2, 2);
        const auto dy = look.uniforms(size), place = look.uniforms(size);
        look_at("random numbers", factor, dy, place, draw % 2 == 0 ? Write::add : Write::set);
    }
}

const exercise::Add add(
    {.title = "a backward function that sets or adds",
     .minutes = 5,
     .lesson = "the-diamond",
     .hints = {"Before the first contribution, the old numbers in to.dst can be NaN. What is 0 * NaN?",
               "The loop needs two cases: to.how is Write::set for the first contribution, and Write::add "
               "for each later contribution. In only one of these two cases may your code read the old "
               "numbers in to.dst.",
               "First multiply element i of dy by `factor`: this product is the contribution to element i "
               "of the gradient. With Write::set, assign the product to element i of to.dst. With "
               "Write::add, add the product to element i of to.dst."},
     .why =
         "The first contribution to a gradient overwrites the old numbers in memory, and each later "
         "contribution is added. Therefore, the engine does not need to fill the gradient with zeros first."},
    examine, answers);

}  // namespace
