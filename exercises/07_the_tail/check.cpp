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

#include "07_the_tail.mistakes.hpp"

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
    look_at("two epochs of 3 micro-batches with 2, 2 and 1 items, windows of 2 micro-batches", {three, three},
            2);
    look_at("two epochs of 4 micro-batches, windows of 2, no tail",
            {{{1, 1}, {3, 1}, {5, 1}, {7, 1}}, {{1, 2}, {3, 2}, {5, 2}, {7, 2}}}, 2);
    for (int draw = 0; draw < 3; ++draw) {
        const int size = look.whole(2, 4);
        std::vector<Epoch> epochs(static_cast<std::size_t>(look.whole(2, 3)));
        for (Epoch& epoch : epochs)
            for (int micro = look.whole(1, 9); micro > 0; --micro)
                epoch.push_back({look.uniform(-5, 5), look.whole(1, 4)});
        look_at("random epochs, windows of " + std::to_string(size) + " micro-batches", epochs, size);
    }
}

const exercise::Add add(
    {.title = "the last micro-batches of an epoch",
     .minutes = 10,
     .lesson = "the-tail",
     .hints = {"At the end of an epoch, the variables `sum`, `items` and `micros` can still contain the "
               "micro-batches that are left over. With which policies must these variables be 0 when the "
               "next epoch begins?",
               "Write the missing code after the inner loop. With Policy::carry, do nothing. With "
               "Policy::scale, the left-over micro-batches make an update. With Policy::scale and "
               "Policy::drop, the variables sum, items and micros must be 0 when the next epoch begins.",
               "If `policy` is Policy::carry, do nothing at the end of an epoch. If the policy is scale and "
               "micros > 0, append sum / items to gradients. With scale and with drop, set sum, items and "
               "micros to 0 at the end."},
     .why = "Each update, also that of the left-over micro-batches, divides a sum of gradients by the number "
            "of items in this sum. Then each item counts the same. Without code for the micro-batches that "
            "are left over, their gradients become part of the first update of the next epoch."},
    examine, answers);

}  // namespace
