// Lesson 31: a GPU computes the same gradients as the CPU, each operation costs it a launch, and its threads need barriers.
#include "on_the_gpu.hpp"

// The gradient of the mean of x w on a device: n micro-batches, each loss divided by `divisor`.
static std::vector<double> gradient_on(Device device, int n, int divisor) {
    const Tensor x = toy::rows().value().to(device), w = parameter(toy::weights().value().to(device).clone());
    for (const Tensor& micro : split(x, 6 / n)) (mean(matmul(micro, w)) / divisor).backward();
    return values(w.grad());
}

LESSON_ON("cuda", equal_micro_batches({2, 3, 6})) {
    if (options().device == Device::cpu) skip("it compares a GPU with the CPU: --device cuda");
    const int n = setting("micro"), each = 6 / n;  // micro-batches of the six rows, and rows in each

    step("An array is stored on one device. An operation runs on the device of its operands.");
    const Array<real> rows = toy::rows().value().to(Device::cpu);
    code(2);
    const Array<real> there = rows.to(Device::cuda);
    const Array<real> back = there.to(Device::cpu);
    show("there is stored on", to_string(there.device()), "back is stored on", to_string(back.device()));
    check_equal("to the GPU and back: the same bits", back, rows);
    const std::string refusal = message_of([&] { void(Tensor(there) + Tensor(rows)); });
    check("two devices in one sum: the error names both",
          refusal.find("cuda") != refusal.npos && refusal.find("cpu") != refusal.npos, refusal);

    step("We repeat lessons 4 to 7 on both devices. Micro-batches: {}, rows in each: {}.", n, each);
    auto ways = table({"w.grad", "cpu", "cuda", "bits"});
    std::vector<double> cpu, cuda;
    const auto compare = [&](const char* name, int micro_batches, int divisor) {
        cpu = gradient_on(Device::cpu, micro_batches, divisor);
        cuda = gradient_on(Device::cuda, micro_batches, divisor);
        ways.row(name, cpu, cuda, same_bits(cpu, cuda) ? "same" : "differ");
    };
    compare("full batch", 1, 1);
    compare("not divided", n, 1);
    compare("divided", n, n);
    check("all three have the same bits", ways.all("bits", "same"));
    check_close("the gradient is the mean of the rows", cuda, toy::mean_of_rows, toy::bound(9));
    note("tally's kernels add in the same order on both devices, and round in the same way.");

    ask("libraries");
    auto sizes = table({"X times W", "multiply-adds", "ordered", "libraries", "max|diff|"});
    std::vector<double> apart, bounds;
    for (const auto& [b, k, m] : {std::tuple(6, 3, 1), {16, 16, 16}, {17, 16, 16}, {1024, 32, 16}}) {
        const auto on = [&, b = b, k = k, m = m](Device d, Products by) {
            return product_gradient(d, by, b, k, m);
        };
        const bool same = same_bits(on(Device::cpu, Products::ordered), on(Device::cuda, Products::ordered));
        const auto here = on(Device::cpu, Products::blas), on_gpu = on(Device::cuda, Products::blas);
        sizes.row(to_string(Shape{b, k}) + " x " + to_string(Shape{k, m}), b * k * m,
                  same ? "same" : "differ", same_bits(here, on_gpu) ? "same" : "differ",
                  furthest(here, on_gpu));
        apart.push_back(furthest(here, on_gpu));
        // Each gradient has at most b + k + 3 roundings, and magnitudes below 2 k / m.
        bounds.push_back(2 * roundings(b + k + 3) * 2 * k / m);
    }
    check("ordered products: the same bits", sizes.all("ordered", "same"));
    check_close("by libraries: equal within a bound", apart, std::vector<double>(4), bounds);

    ask("waits", "n", n, "twice", 2 * n);
    const Tensor x = there, w = parameter(toy::weights().value().to(Device::cuda).clone());
    std::vector<std::uint64_t> counted{waits(Device::cuda)};
    code(1);
    for (const Tensor& micro : split(x, each)) (mean(matmul(micro, w)) / n).backward();
    counted.push_back(waits(Device::cuda));
    const std::vector<double> gradient = values(w.grad());
    counted.push_back(waits(Device::cuda));
    for (const Tensor& micro : split(x, each)) mean(matmul(micro, w)).item();
    counted.push_back(waits(Device::cuda));
    auto waiting = table({"the CPU does this", "it waits"});
    waiting.row("all micro-batches, forward and backward", counted[1] - counted[0]);
    waiting.row("read w.grad", counted[2] - counted[1]);
    waiting.row("read the loss of each micro-batch", counted[3] - counted[2]);
    check_equal("no wait, one, and one for each loss", waiting.column("it waits"), {0, 1, n});
    note("If you print every loss, the GPU is idle after every micro-batch.");

    step("We time forward and backward of a product, in microseconds. No check depends on these times.");
    auto times = table({"X and W", "cpu", "cuda: queued", "cuda: done"});
    for (const int extent : {4, 16, 64, 256}) {
        const Microseconds here = time_on(Device::cpu, extent), on_gpu = time_on(Device::cuda, extent);
        times.row(to_string(Shape{extent, extent}), here.done, on_gpu.queued, on_gpu.done);
    }
    if (backend::name() == "simulated")
        note("A simulated device computes on the CPU. These times say nothing about a GPU.");

    const std::int64_t count = images_wanted();
    step("Both devices train lesson 22's network. Images: {}, in micro-batches of 16, rate 0.001.", count);
    const Pictures<real> pictures = generated_pictures<real>(count, options().seed);
    const auto start = train(pictures, 0, Device::cpu).weights,
               first = train(pictures, 64, Device::cpu).weights;
    const Epoch here = train(pictures, count, Device::cpu), on_gpu = train(pictures, count, Device::cuda);
    auto trained = table({"", "max|w - start|", "max|w - w cpu|", "seconds", "images/second", "waits"});
    for (const auto& [name, e] : {std::pair("cpu", &here), {"cuda", &on_gpu}})
        trained.row(name, furthest(e->weights, start), furthest(e->weights, here.weights), e->seconds,
                    double(count) / e->seconds, e->waits);
    check_close("cuda has the CPU's weights", furthest(on_gpu.weights, here.weights), 0.0,
                bound_of_training((count + 63) / 64, here.weights, furthest(first, start)));

    step("A kernel computes the loss of the toy. Two threads each compute the loss of a row, three times.");
    show_lines("add_micro_batches.cu", {3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14});

    ask("race");
    const std::string kernel = text_of("add_micro_batches.ptx");
    const std::string changed = without_last(kernel, "bar.sync");  // line 12
    const Execution with_a = execute(kernel, "forward"), with_b = execute(kernel, "reverse");
    const Execution a = execute(changed, "forward"), b = execute(changed, "reverse");
    show_losses(with_a, with_b, a, b);
    const std::vector<double> row = values(matmul(toy::rows(), toy::weights()));
    const double right = std::accumulate(row.begin(), row.end(), 0.0) / 6;
    const double lost = right + (row[5] - row[1]) / 6, bound = toy::bound(9)[0];
    check_close("with line 12: the mean of X w", {with_a.loss, with_b.loss}, {right, right}, bound);
    check_close("without it: B loses row 1, and row 5 counts twice", {a.loss, b.loss}, {right, lost}, bound);

    step("In a race, two threads access the same byte, one writes it, and no barrier is in between.");
    const bool clean = with_a.finding.empty() && with_b.finding.empty();
    check("no race with line 12, and a race in A and in B without it", clean && is_race(a) && is_race(b));
    note("A: {}", a.finding);
    note("B: {}", b.finding);
}
