// Exercise 1, set or add: the answer, the mistakes that are known, and the check.
#include "01_set_or_add.hpp"

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

namespace always_set {
void times_backward(double factor, const Numbers& dy, Into<Numbers> to) {
    for (std::size_t i = 0; i < dy.size(); ++i) to.dst[i] = factor * dy[i];
}
}  // namespace always_set

namespace always_add {
void times_backward(double factor, const Numbers& dy, Into<Numbers> to) {
    for (std::size_t i = 0; i < dy.size(); ++i) to.dst[i] += factor * dy[i];
}
}  // namespace always_add

namespace times_zero {
void times_backward(double factor, const Numbers& dy, Into<Numbers> to) {
    for (std::size_t i = 0; i < dy.size(); ++i) {
        const double before = to.how == Write::add ? 1 : 0;
        to.dst[i] = before * to.dst[i] + factor * dy[i];
    }
}
}  // namespace times_zero

namespace the_other_way {
void times_backward(double factor, const Numbers& dy, Into<Numbers> to) {
    for (std::size_t i = 0; i < dy.size(); ++i) {
        const double part = factor * dy[i];
        to.dst[i] = to.how == Write::add ? part : to.dst[i] + part;
    }
}
}  // namespace the_other_way

namespace no_factor {
void times_backward(double, const Numbers& dy, Into<Numbers> to) {
    for (std::size_t i = 0; i < dy.size(); ++i) to.dst[i] = to.how == Write::set ? dy[i] : to.dst[i] + dy[i];
}
}  // namespace no_factor

namespace factor_on_all {
void times_backward(double factor, const Numbers& dy, Into<Numbers> to) {
    for (std::size_t i = 0; i < dy.size(); ++i)
        to.dst[i] = factor * (to.how == Write::set ? dy[i] : to.dst[i] + dy[i]);
}
}  // namespace factor_on_all

struct Functions {
    decltype(&::times_backward) times_backward;
};

void examine(exercise::Look& look, const Functions& yours) {
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
    look_at("factor 3, dy [1 2], Write::set, at a place that holds [0 0]", 3, {1, 2}, {0, 0}, Write::set);
    look_at("factor 3, dy [1 2], Write::add, at a place that holds [10 20]", 3, {1, 2}, {10, 20}, Write::add);
    look_at("factor 3, dy [1 2], Write::set, at a place that holds the rubbish [7 7]", 3, {1, 2}, {7, 7},
            Write::set);
    look_at("factor 3, dy [1 2], Write::set, at a place that holds no numbers at all (NaN)", 3, {1, 2},
            {nan, nan}, Write::set);
    for (int draw = 0; draw < 4; ++draw) {
        const auto size = static_cast<std::size_t>(look.whole(1, 6));
        const double factor = look.uniform(-2, 2);
        const auto dy = look.uniforms(size), place = look.uniforms(size);
        look_at("random numbers", factor, dy, place, draw % 2 == 0 ? Write::add : Write::set);
    }
}

const exercise::Add add(
    {.number = 1,
     .slug = "set-or-add",
     .title = "a backward rule that sets or adds",
     .minutes = 5,
     .lesson = "the-diamond",
     .functions = {"times_backward"},
     .hints = {"A place for a gradient was never filled with zeros. What does 0 * NaN give?",
               "There are two cases, and to.how says which: compare it with Write::set.",
               "With Write::set assign the part, factor * dy[i]; with Write::add assign the sum of what is "
               "there and the part."},
     .why = "The first part overwrites, so nobody has to fill places with zeros, and nobody may read what "
            "lies there. All later parts add. Into hands this decision to each rule, so that none of them "
            "can forget it."},
    examine, Functions{right::times_backward},
    {{"always_set",
      {always_set::times_backward},
      "Your rule always sets: of a value that was used twice, only the part that came last is left."},
     {"always_add",
      {always_add::times_backward},
      "Your rule always adds: with Write::set it adds to whatever happens to lie there, which is rubbish or "
      "NaN."},
     {"times_zero",
      {times_zero::times_backward},
      "You multiply what lies there by 0 where it is to be forgotten. But 0 * NaN is NaN: what must not "
      "count must not be read at all."},
     {"the_other_way",
      {the_other_way::times_backward},
      "Setting and adding are exchanged: the first part is added to rubbish, and each later one erases those "
      "before it."},
     {"no_factor",
      {no_factor::times_backward},
      "Setting and adding are right, but dy arrives as it came. The derivative of factor * x is factor: "
      "multiply by it."},
     {"factor_on_all",
      {factor_on_all::times_backward},
      "With Write::add the factor has multiplied what was there before as well. Only the new part, dy[i], "
      "takes the factor."}});

}  // namespace
