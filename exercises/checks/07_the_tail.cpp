// Exercise 7, the tail: the answer, the mistakes that are known, and the check.
#include "07_the_tail.hpp"

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

namespace always_carry {
std::vector<double> updates(const std::vector<Epoch>& epochs, int size, Policy) {
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
    }
    return gradients;
}
}  // namespace always_carry

namespace always_scale {
std::vector<double> updates(const std::vector<Epoch>& epochs, int size, Policy) {
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
        if (micros > 0) gradients.push_back(sum / items);
        sum = items = micros = 0;
    }
    return gradients;
}
}  // namespace always_scale

namespace tail_by_a_full_window {
std::vector<double> updates(const std::vector<Epoch>& epochs, int size, Policy policy) {
    std::vector<double> gradients;
    double sum = 0;
    int items = 0, full = 0;
    int micros = 0;
    for (const Epoch& epoch : epochs) {
        for (const Micro& micro : epoch) {
            sum += micro.sum;
            items += micro.items;
            if (++micros == size) {
                gradients.push_back(sum / items);
                full = items;
                sum = items = micros = 0;
            }
        }
        if (policy == Policy::carry || micros == 0) continue;
        if (policy == Policy::scale) gradients.push_back(sum / (full > 0 ? full : items));
        sum = items = micros = 0;
    }
    return gradients;
}
}  // namespace tail_by_a_full_window

namespace dropped_items_stay {
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
        if (policy == Policy::scale) {
            gradients.push_back(sum / items);
            sum = items = 0;
        }
        micros = 0;
    }
    return gradients;
}
}  // namespace dropped_items_stay

namespace scale_does_not_start_anew {
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
        if (policy == Policy::scale && micros > 0) gradients.push_back(sum / items);
        if (policy == Policy::drop) sum = items = micros = 0;
    }
    return gradients;
}
}  // namespace scale_does_not_start_anew

namespace update_without_items {
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
        if (policy == Policy::carry) continue;
        if (policy == Policy::scale) gradients.push_back(sum / items);
        sum = items = micros = 0;
    }
    return gradients;
}
}  // namespace update_without_items

struct Functions {
    decltype(&::updates) updates;
};

void examine(exercise::Look& look, const Functions& yours) {
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
    {.number = 7,
     .slug = "the-tail",
     .title = "what becomes of an epoch's last micro-batches",
     .minutes = 10,
     .lesson = "the-tail",
     .functions = {"updates"},
     .hints = {"When an epoch ends, which of sum, items and micros may still be larger than 0, and what does "
               "each policy want to happen to them?",
               "carry: nothing happens. scale: an update, if there is anything, and all three begin anew. "
               "drop: all three begin anew.",
               "After the inner loop: unless it is carry, push sum / items where the policy is scale and "
               "micros > 0, then set all three to 0."},
     .why = "Items that came are what an update is divided by, also in the tail: then each item of it counts "
            "as those of any other. A tail that nobody settles leaks into the next epoch's first update."},
    examine, Functions{right::updates},
    {{"always_carry",
      {always_carry::updates},
      "Nothing happens at the end of an epoch, whatever the policy: what is left over leaks into the next "
      "epoch's first update, which is what carry means, and no other."},
     {"always_scale",
      {always_scale::updates},
      "Each tail makes an update of its own, whatever the policy. drop wants none, and carry wants it to "
      "wait."},
     {"tail_by_a_full_window",
      {tail_by_a_full_window::updates},
      "The tail is divided by the items of a full window, as most wrappers do it: its update is too small. "
      "Divide by the items that came."},
     {"dropped_items_stay",
      {dropped_items_stay::updates},
      "With drop the number of micro-batches begins anew, but their sum and their items stay: what was "
      "dropped comes back in the next update."},
     {"scale_does_not_start_anew",
      {scale_does_not_start_anew::updates},
      "With scale the tail makes its update and is then counted a second time, in the next epoch: set sum, "
      "items and micros to 0."},
     {"update_without_items",
      {update_without_items::updates},
      "Where nothing is left over there is nothing to divide: 0 / 0 is no number. An empty tail makes no "
      "update."}});

}  // namespace
