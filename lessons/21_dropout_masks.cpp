// Lesson 21: dropout is exact in micro-batches if a mask is a function of the seed, the layer and the item.
#include "course/kit/window_gradient.hpp"

// Returns "1" for each number that dropout has kept, and "." for each 0.
static std::string mask_of(const Tensor& rows, std::int64_t item) {
    std::string mask;
    for (const double number : values(slice(rows, 0, item, item + 1))) mask += number == 0 ? "." : "1";
    return mask;
}

LESSON(one_of("micro", "equal micro-batches of the eight items", 4, {2, 4})) {
    const int n = setting("micro"), each = 8 / n;  // micro-batches, and items in each of them
    const std::uint64_t seed = options().seed, layer = 0;

    step("Here are eight items of 16 numbers. Dropout sets each number to 0 with probability 1/2.");
    note("Dropout doubles the other numbers. The masks of four items show a 1 for each kept number.");
    std::vector<real> numbers;
    for (int k = 0; k < 8 * 16; ++k) numbers.push_back(real(k / 16 + 1));  // item 0: 16 times 1, item 1: 2
    const Tensor x = Array<real>({8, 16}, numbers, options().device), w = zeros({16});
    code(2);
    const Tensor at_once = dropout(x, 0.5, {seed, layer, 0});
    mean(matmul(at_once, w)).backward();
    const Array<real> full = w.grad().clone();
    auto masks = table({"item", "its mask"});
    for (const int item : {0, 1, 2, 3}) masks.row(item, mask_of(at_once, item));

    step("PyTorch draws all masks from one random generator. Layers A and B draw masks for items 0 to 7.");
    const auto order_of_draws = [](int rows) {
        std::string order;
        for (int first = 0; first < 8; first += rows)
            for (const std::string layer_name : {"A", "B"})
                for (int item = first; item < first + rows; ++item) order += say("{}{} ", layer_name, item);
        return order;
    };
    note("Order of the masks in the full batch: {}", order_of_draws(8));

    ask("which-draw", "each", each, "draw", each + 1);
    note("Order of the masks in micro-batches: {}", order_of_draws(each));
    show("draw for B0, full batch", order_of_draws(8).find("B0") / 3 + 1);
    show("draw for B0, micro-batches", order_of_draws(each).find("B0") / 3 + 1);

    step("tally computes masks from a key: seed, layer and the number of a micro-batch's first item.");
    std::vector<Tensor> by_place;
    w.zero_grad();
    code(2);
    for (const Tensor& micro : split(x, each)) {
        by_place.push_back(dropout(micro, 0.5, {seed, layer, 0}));
        (mean(matmul(by_place.back(), w)) / n).backward();
    }
    const Array<real> gradient_by_place = w.grad().clone();

    ask("which-mask", "each", each);
    auto compared = table({"", "mask"});
    compared.row("item 0, full batch", mask_of(at_once, 0));
    compared.row(say("item {}, full batch", each), mask_of(at_once, each));
    compared.row(say("item {}, micro-batch", each), mask_of(by_place[1], 0));
    check("two items have the same mask", mask_of(by_place[1], 0) == mask_of(at_once, 0));

    ask("what-the-key-contains");
    w.zero_grad();
    std::uint64_t first = 0;  // the number of the micro-batch's first item in the full batch
    code(3);
    for (const Tensor& micro : split(x, each)) {
        const Tensor kept = dropout(micro, 0.5, {seed, layer, first});
        (mean(matmul(kept, w)) / n).backward();
        first += std::uint64_t(each);
    }
    auto gradients = table({"", "first four components of w.grad", "largest difference"});
    const auto first_four = [](const Array<real>& g) { return values(slice(Tensor(g), 0, 0, 4)); };
    gradients.row("full batch", first_four(full), 0.0);
    gradients.row("masks by place", first_four(gradient_by_place), furthest(gradient_by_place, full));
    gradients.row("masks by item", first_four(w.grad()), furthest(w.grad(), full));
    check_equal("masks by item: the same bits", w.grad(), full);
    check("masks by place: another gradient", furthest(gradient_by_place, full) > 0.1);

    ask("two-layers");
    const Tensor ones = Array<real>::full({250, 256}, real(1), options().device);
    const auto kept_by_both = [&](std::uint64_t second_layer) {
        const Tensor y = dropout(dropout(ones, 0.5, {seed, 0, 0}), 0.5, {seed, second_layer, 0});
        return double(mean(y).item()) / 4;  // dropout has doubled the rest twice
    };
    show("the same key twice", kept_by_both(0), "layers 0 and 1", kept_by_both(1));
    // 64000 numbers: the standard deviation of both shares is 0.002.
    check_close("1/2 and 1/4", {kept_by_both(0), kept_by_both(1)}, {0.5, 0.25}, 0.012);

    step("Accumulation is exact if the loss of an item depends on this item and the weights only.");
    note("An item's mask must not depend on the micro-batch, either. Here a micro-batch is only one item.");
    std::vector<Tensor> alone;
    for (std::uint64_t item = 0; item < 8; ++item)
        alone.push_back(dropout(split(x, 1)[item], 0.5, {seed, layer, item}));
    check_equal("the masks of the full batch", concat(alone), at_once);
}
