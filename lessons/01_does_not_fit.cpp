// Lesson 1: a batch that does not fit is split, and the sum of the parts is not yet its gradient.
#include "course/kit/toy.hpp"

LESSON() {
    step("An article measured the memory of an update with four items: all at once, and one at a time.");
    const int batch_of_4 = 14949, one_at_a_time = 8681;  // MB
    auto measured = table({"items at once", "MB"});
    measured.row(4, batch_of_4);
    measured.row(1, one_at_a_time);
    note("On a GPU with less than 14949 MB, four items at once end with 'CUDA out of memory'.");
    note("Each item needs the same memory, and the rest is fixed: MB = fixed + items at once x MB per item.");
    code(2);
    const double per_item = (batch_of_4 - one_at_a_time) / (4 - 1.0);
    const double fixed = one_at_a_time - per_item;

    ask("fixed-part");
    auto parts = table({"items at once", "fixed", "items", "MB together"});
    for (const int items : {4, 1}) {
        const auto of_items = std::lround(items * per_item), of_fixed = std::lround(fixed);
        parts.row(items, of_fixed, of_items, of_fixed + of_items);
    }
    check_close("the line goes through both numbers", {fixed + 4 * per_item, fixed + per_item},
                {batch_of_4, one_at_a_time}, 1e-9);
    note("With one item at a time, only the memory for items shrinks. The update still uses all four items.");

    step("Our batch has six rows of three numbers. w has three weights. The memory is enough for two rows.");
    const Tensor x = toy::rows(), w = toy::weights();
    const Array<real> full = grad(mean(matmul(x, w)), {w})[0];
    auto sums = table({"rows", "w.grad afterwards"});
    code(3);
    for (const auto& [micro, rows] : toy::micro_batches(x, 2)) {
        const Tensor loss = mean(matmul(micro, w));
        loss.backward();  // adds to w.grad
        sums.row(rows, w.grad());
    }
    const Array<real> sum = w.grad().clone();
    show("three micro-batches", sum, "six rows at once", full);
    check("the two gradients are different", furthest(sum, full) > 0.1);

    step("Here is the training loop with one update. The loop reports no error, and changes the weights v.");
    const Tensor v = toy::weights();
    const auto before = v.value().clone();
    code(3);
    v.zero_grad();
    for (const auto& part : split(x, 2)) mean(matmul(part, v)).backward();
    sgd_step({v}, 0.1);
    show("v before", before, "v after", v);
    const Tensor right = toy::weights();
    mean(matmul(x, right)).backward();
    sgd_step({right}, 0.1);
    show("v after an update with six rows", right);
    check("the update is different, too", furthest(v, right) > 0.01);

    ask("which-line");
    note("Until October 2024, a widely used trainer divided the loss by a wrong number, without any error.");
    note("The repair is pull request 34191 of huggingface/transformers.");
    note("After this course, you find such a mistake in ten minutes.");
}
