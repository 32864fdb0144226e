// Lesson 20: a contrastive loss compares items, so micro-batches have an easier task and another gradient.
#include "course/kit/window_gradient.hpp"

static Tensor column(const std::vector<real>& numbers) {
    return Array<real>({std::int64_t(numbers.size()), 1}, numbers, options().device);
}

static Tensor weight(double value) { return parameter(Array<real>({1}, {real(value)}, options().device)); }

LESSON(whole_number("micro", "micro-batches of two pairs", 2, 2, 4)) {
    const int n = setting("micro"), items = 2 * n;
    const Tensor x = slice(column({0.5, -1, 2, 0.25, -0.75, 1.25, -1.5, 0.75}), 0, 0, items);
    const Tensor y = slice(column({0.4, -0.6, 1.5, 0.1, -0.5, 0.9, -1.2, 0.3}), 0, 0, items);
    const Tensor a = weight(0.7), b = weight(-0.3);
    const auto gradients = [&] { return std::vector{a.grad().item(), b.grad().item()}; };

    step("Two encoders map {} pairs (x, y) to z = a x and u = b y. Each z must find its pair's u.", items);
    note("Each z is multiplied by all u of the batch, and the loss is the cross entropy of these products.");
    code(2);
    const Tensor loss = info_nce(x * a, y * b).mean();
    loss.backward();
    const std::vector<real> full = gradients();
    show("loss", loss, "a.grad and b.grad", full);

    step("Now split the pairs into micro-batches of two. Divide the loss of each micro-batch by {}.", n);
    a.zero_grad(), b.zero_grad();
    const auto x_micro = split(x, 2), y_micro = split(y, 2);
    double micro_loss = 0;
    code(3);
    for (int k = 0; k < n; ++k) {
        const Tensor part = info_nce(x_micro[k] * a, y_micro[k] * b).mean() / n;
        part.backward();
        micro_loss += part.item();
    }
    const std::vector<real> micro = gradients();

    const std::string in_one = short_number(loss.item());
    const auto percent = std::lround(100 * micro_loss / loss.item());
    ask("an-easier-task", "items", items, "others", items - 1, "loss", in_one, "percent", percent);
    auto losses = table({"pairs", "loss", "a.grad", "b.grad"});
    losses.row(say("{}", items), loss, full[0], full[1]);
    losses.row(say("{} x 2", n), micro_loss, micro[0], micro[1]);
    check("micro-batches have a smaller loss", micro_loss < 0.6 * loss.item());
    check("micro-batches have another gradient", furthest(micro, full) > 0.1);
    const Tensor products = slice(x * a, 0, 0, 1) * reshape(y * b, {1, items});
    show("products of the first z", products);
    note("In the batch, the first z is multiplied by every u. In a micro-batch, it is multiplied by two u.");

    ask("what-stays");
    std::vector<Tensor> z_parts, u_parts;
    {
        const NoGrad no_graph;
        for (const Tensor& micro_x : x_micro) z_parts.push_back(micro_x * a);
        for (const Tensor& micro_y : y_micro) u_parts.push_back(micro_y * b);
    }
    code(3);
    const Tensor z = parameter(concat(z_parts).value());
    const Tensor u = parameter(concat(u_parts).value());
    info_nce(z, u).mean().backward();
    show("z.grad", values(z.grad()));

    ask("the-second-pass", "n", n);
    a.zero_grad(), b.zero_grad();
    const auto dz = split(constant(z.grad().clone()), 2), du = split(constant(u.grad().clone()), 2);
    code(3);
    for (int k = 0; k < n; ++k) {
        (x_micro[k] * a).backward(dz[k].value());
        (y_micro[k] * b).backward(du[k].value());
    }
    const std::vector<real> repaired = gradients();
    auto all = table({"", "full batch", "micro-batches", "repaired"});
    all.row("a.grad", full[0], micro[0], repaired[0]);
    all.row("b.grad", full[1], micro[1], repaired[1]);
    check_close("repaired = full batch", repaired, full, 1e-6);

    step("cached_backward() encodes each item twice: first without a graph, then with one.");
    a.zero_grad(), b.zero_grad();
    const auto loss_of_all = [](const auto& encoded) { return info_nce(encoded[0], encoded[1]).mean(); };
    code(3);
    const auto encode_x = [&](std::size_t k) { return x_micro[k] * a; };
    const auto encode_y = [&](std::size_t k) { return y_micro[k] * b; };
    void(cached_backward<real>(std::size_t(n), {encode_x, encode_y}, loss_of_all));
    check_equal("the same bits as in the two passes", gradients(), repaired);
}
