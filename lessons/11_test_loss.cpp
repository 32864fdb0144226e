// Lesson 11: a mean over batches of unequal sizes estimates another number than the mean over items.
#include "course/kit/window_gradient.hpp"

static constexpr std::int64_t images = 10000;

// Each image has a loss between 0 and 0.5. The last 16 images are hard: their losses are larger by 0.5.
static Tensor losses_of_images(double more) {
    std::vector<real> losses;
    for (std::int64_t i = 0; i < images; ++i) {
        const std::int64_t easy = 7919 * i % 1024;
        const std::int64_t hard = i < images - 16 ? 0 : 1024;
        losses.push_back(real(easy + hard) / 2048 + real(more));
    }
    return parameter(Array<real>({images}, losses, options().device));
}

LESSON(one_of("items", "test images in a batch", 64, {32, 64, 128})) {
    const int size = setting("items");
    const Tensor losses = losses_of_images(0);
    const std::vector<Tensor> batches = split(losses, size);

    step("A test computes one loss for each of 10000 images. The test loss is the mean of these losses.");
    const Tensor last_16 = slice(losses, 0, images - 16, images);
    show("the mean of the last 16 images", mean(last_16), "the mean of all images", mean(losses));
    note("A published program takes {} images at a time, and computes the mean of the batch means:", size);
    code(3);
    const auto mean_of_means = [](const std::vector<Tensor>& all) {
        Tensor total = Array<real>::zeros({}, options().device);
        for (auto& batch : all) total = total + mean(batch);
        return total / double(all.size());
    };
    auto sizes = table({"images at a time", "batches", "images in the last batch"});
    for (const std::int64_t at_a_time : {size, 16}) {
        const std::vector<Tensor> all = split(losses, at_a_time);
        sizes.row(at_a_time, all.size(), all.back().shape()[0]);
    }

    ask("one-of-the-last", "size", size, "ratio", size / 16, "batches", batches.size());
    note("backward() computes the weight of each image, in units of 1/10000:");
    code(3);
    const auto weights_of = [&](std::int64_t at_a_time) {
        losses.zero_grad();
        mean_of_means(split(losses, at_a_time)).backward();
        return scaled(losses.grad(), images);
    };
    auto weight = table({"images at a time", "of the last image", "of the first image", "ratio"});
    for (const std::int64_t at_a_time : {size, 16}) {
        const std::vector<double> all = weights_of(at_a_time);
        weight.row(at_a_time, all.back(), all.front(), all.back() / all.front());  // 8 roundings
    }
    check_close("the ratio of batch sizes", weight.column("ratio"), {size / 16, 1}, roundings(8) * 8);
    graph("test-loss", "Three losses in batches of two and one: the mean of the two means", [](Picture& p) {
        const Tensor own = parameter(Array<real>({3}, {0.25, 0.5, 1}, options().device));
        const Tensor two = mean(slice(own, 0, 0, 2)), one = mean(slice(own, 0, 2, 3));
        const Tensor result = (two + one) / 2;
        p.name(own, "losses").name(result, "test loss");
        p.backward(result);
    });

    ask("which-is-larger", "size", size);
    auto estimates = table({"images at a time", "mean of the means", "minus the mean of all"});
    for (const std::int64_t at_a_time : {size, 16}) {
        const Tensor result = mean_of_means(split(losses, at_a_time));
        estimates.row(at_a_time, result, result - mean(losses));
    }

    step("h is the mean loss of the last batch, and m the mean loss of all images.");
    note("The mean of means is wrong by (h - m) (1 - 16 / {}), divided by {} batches.", size, batches.size());
    const double h = mean(last_16).item(), m = mean(losses).item();
    const double by_size = mean_of_means(batches).item();
    const auto formula = [&](double last) { return (last - m) * (1 - 16.0 / size) / double(batches.size()); };
    show("the error by the formula", formula(h));
    // The program adds at most 313 means below 1, so the mean of means rounds at most 320 times.
    check_close("the formula agrees", by_size - m, formula(h), roundings(320));

    ask("shuffle", "size", size);
    const auto shuffled = [&](int test) {
        const Items order = Items::shuffled(images, options().seed, test);
        return Tensor(rows(losses.value().to(Device::cpu), order).to(options().device));
    };
    std::vector<double> errors;
    std::vector<double> by_formula;
    code(3);
    for (int test = 0; test < 200; ++test) {
        const std::vector<Tensor> parts = split(shuffled(test), size);
        errors.push_back(mean_of_means(parts).item() - m);
        by_formula.push_back(formula(mean(parts.back()).item()));
    }
    const auto [least, most] = std::minmax_element(errors.begin(), errors.end());
    show("lowest, mean and highest error x 10000", {1e4 * *least, 1e4 * mean_of(errors), 1e4 * *most});
    check_close("the formula agrees in each test", errors, by_formula, roundings(320));  // as above

    ask("the-repair", "size", size);
    code(3);
    const auto sum_over_count = [](const auto& all, double total = 0, double count = 0) {
        for (const Tensor& batch : all) total += sum(batch).item();
        for (const Tensor& batch : all) count += double(batch.shape()[0]);
        return total / count;
    };
    const double repaired = sum_over_count(batches), of_16 = sum_over_count(split(losses, 16));
    show("sum / count, for both batch sizes", {repaired, of_16});
    // All losses are multiples of 1/2048, and their sum is below 2^13, so float32 adds them without rounding.
    check_equal("the batch size does not change the result", repaired, of_16);
    std::vector<double> in_any_order;
    for (int test = 0; test < 200; ++test)
        in_any_order.push_back(sum_over_count(split(shuffled(test), size)));
    check_equal("nor does the order of the images", in_any_order, std::vector<double>(200, repaired));

    ask("which-seems-better", "size", size);
    const Tensor worse = losses_of_images(1.0 / 2048);  // 1/2048 is 0.0005
    const Tensor b_by_16 = mean_of_means(split(worse, 16));
    auto networks = table({"network", "images at a time", "mean of the means", "sum / count"});
    networks.row("A", size, by_size, repaired);
    networks.row("B", 16, b_by_16, sum_over_count(split(worse, 16)));
    check("the program reports a smaller loss for B", b_by_16.item() < by_size);
}
