// The answer and the check of exercise the-tail.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
std::vector<double> updates(const std::vector<Epoch>& epochs, int size, Policy policy) {
    std::vector<double> gradients;
    double sum = 0;
    int items = 0;
    int micros = 0;
    for (const Epoch& epoch : epochs) {
        for (const Micro& micro : epoch) {
            sum += micro.sum;
            items += micro.items;
            if (++micros == size) {
                gradients.push_back(sum / items);
                sum = items = micros = 0;
            }
        }
        if (policy == Policy::carry || micros == 0) continue;
        if (policy == Policy::scale) gradients.push_back(sum / items);
        sum = items = micros = 0;
    }
    return gradients;
}
}  // namespace right

#include "06_the_tail.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& what, const std::vector<Epoch>& epochs, int size) {
        for (const auto& [policy, name] :
             {std::pair{Policy::scale, "scale"}, {Policy::drop, "drop"}, {Policy::carry, "carry"}}) {
            look.with(what + ", Policy::" + name);
            std::vector<double> given;
            if (look.runs([&, wanted = policy] { given = yours.updates(epochs, size, wanted); }))
                look.equal("updates", given, right::updates(epochs, size, policy));
        }
    };
    const Epoch three{{2, 2}, {4, 2}, {9, 1}};
    look_at("two epochs of 3 micro-batches, of 2, 2 and 1 items, 2 in a window", {three, three}, 2);
    look_at("two epochs of 4 micro-batches, 2 in a window, so that nothing is left over",
            {{{1, 1}, {3, 1}, {5, 1}, {7, 1}}, {{1, 2}, {3, 2}, {5, 2}, {7, 2}}}, 2);
    for (int draw = 0; draw < 3; ++draw) {
        const int size = look.whole(2, 4);
        std::vector<Epoch> epochs(static_cast<std::size_t>(look.whole(2, 3)));
        for (Epoch& epoch : epochs)
            for (int micro = look.whole(1, 9); micro > 0; --micro)
                epoch.push_back({look.uniform(-5, 5), look.whole(1, 4)});
        look_at("random epochs, " + std::to_string(size) + " in a window", epochs, size);
    }
}

const exercise::Add add(
    {.title = "what becomes of an epoch's last micro-batches",
     .minutes = 10,
     .lesson = "the-tail",
     .hints = {"When an epoch ends, which of sum, items and micros may still be larger than 0, and what does "
               "each policy want to happen to them?",
               "carry: nothing happens. scale: an update, if there is anything, and all three begin anew. "
               "drop: all three begin anew.",
               "After the inner loop: unless it is carry, push sum / items where the policy is scale and "
               "micros > 0, then set all three to 0."},
     .why = "Items that came are what an update is divided by, also in the tail: then each item of it counts "
            "as those of any other. A tail that nobody settles leaks into the next epoch's first update."},
    examine, answers);

}  // namespace
