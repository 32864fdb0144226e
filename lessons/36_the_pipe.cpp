// Lesson 36: each process computes one stage of a model, and micro-batches shorten the time that stages wait.
#include "stages.hpp"

static Tensor number_of_items(int items) {
    return Tensor(Array<real>({}, {real(items)}).to(options().device));
}
static void divide_gradient(const Tensor& W, int divisor) {
    const Array<real> quotient = (constant(W.grad()) / double(divisor)).value();
    W.zero_grad();
    W.backward(quotient);  // adds to the empty gradient
}

// Runs 3 m micro-batches in three runs of the pipe.
static void three_runs(ProcessGroup& here, const Tensor& W, int m, const auto& after_each_run) {
    Pipe<real> pipe = pipe_of(here, W, Order::gpipe);
    for (int run = 0; run < 3; ++run) {
        pipe.run(
            m, [&](int k) { return micro_batch(run * m + k); }, loss);
        after_each_run();
    }
}

LESSON(whole_number("ranks", "processes, with a stage each", 4, 2, 5),
       whole_number("micro", "micro-batches of a run", 8, 2, 12)) {
    const int p = setting("ranks"), m = setting("micro");
    const double before = p - 1;  // stages before the last one

    step("Each of {} layers h = tanh(h W) is a stage, and runs in its own process.", p);
    note("Stages pass results to the next stage, and gradients to the one before.");
    code(3);
    const auto losses = on_ranks([&](ProcessGroup& here) {
        Pipe<real> pipe = pipe_of(here, layer(here.rank()), Order::gpipe);
        return pipe.run(1, micro_batch, loss).loss;
    });
    note("F is a forward pass. B is a backward pass, which takes twice as long. A dot means waiting.");
    const Timetable one_batch = Timetable::of(Order::gpipe, p, 1);
    graph("one-batch", say("One batch: {} stages", p), one_batch);
    show("share of the time that a stage waits", one_batch.bubble());
    check_close("one stage works, the others wait", one_batch.bubble(), before / p, 1e-12);
    check_equal("all processes know the loss", losses, std::vector<double>(losses.size(), losses[0]));

    const double waits = before / (m + before), of_work = before / m, all_stages = (before + 1) / (m + p);
    ask("how-long", "m", m, "right", waits, "uncut", before / p, "work", of_work, "all", all_stages);
    const Timetable gpipe = Timetable::of(Order::gpipe, p, m);
    graph("gpipe", say("GPipe: {} stages, {} micro-batches", p, m), gpipe);
    show("share of the time that a stage waits", gpipe.bubble());
    const auto orders = on_ranks([&](ProcessGroup& here) {
        Pipe<real> pipe = pipe_of(here, layer(here.rank()), Order::gpipe);
        return in_words(pipe.run(m, micro_batch, loss).steps);
    });
    bool as_drawn = true;
    for (int s = 0; s < p; ++s) as_drawn = as_drawn && orders[s] == in_words(gpipe.stages[s]);
    check("each process worked in the order of its line", as_drawn);

    ask("a-tenth", "p", p, "right", 9 * (p - 1), "work", 10 * (p - 1), "all", 9 * p);
    auto longer = table({"micro-batches", "waits", "(p-1)/(m+p-1)"});
    for (const int micro : std::set{1, m, 9 * (p - 1), 10 * (p - 1), 100 * p})
        longer.row(micro, Timetable::of(Order::gpipe, p, micro).bubble(), before / (micro + before));
    check_close("the formula", longer.column("waits"), longer.column("(p-1)/(m+p-1)"), 1e-12);

    ask("which-bits", "p", p, "m", m, "last", m - 1);
    const WholeModel whole(p);
    code(1);
    for (int k = 0; k < m; ++k) loss(whole(micro_batch(k)), k).backward();
    const auto piped = on_ranks([&](ProcessGroup& here) {
        const Tensor W = layer(here.rank());
        pipe_of(here, W, Order::gpipe).run(m, micro_batch, loss);
        return W.grad().to_vector();
    });
    auto bits = table({"stage", "first number, one process", "first number, pipe"});
    for (int s = 0; s < p; ++s) bits.row(s, whole.gradients()[s][0], piped[s][0]);
    check_equal("all gradients have the same bits", joined(piped), joined(whole.gradients()));

    ask("three-divisions", "m", m, "right", m * m * m, "twice", m * m, "sum", 3 * m);
    code(3);
    const auto divided = on_ranks([&](ProcessGroup& here) {
        const Tensor W = layer(here.rank());
        three_runs(here, W, m, [&] { divide_gradient(W, m); });
        return W.grad().to_vector();
    });
    auto runs = table({"run", "divided by", "its share", "should be"});
    std::vector<double> expected(16 * 16);
    for (int run = 0; run < 3; ++run) {
        const WholeModel one(p);
        for (int k = 0; k < m; ++k) loss(one(micro_batch(run * m + k)), k).backward();
        const std::vector<real> alone = one.gradients()[0];
        const double divisor = std::pow(m, 3 - run);
        for (std::size_t i = 0; i < alone.size(); ++i) expected[i] += alone[i] / divisor;
        runs.row(run + 1, int(divisor), std::pow(m, run) / (1.0 + m + m * m), 1 / 3.0);
    }
    show("first number of stage 0", divided[0][0], "g1/m^3 + g2/m^2 + g3/m", expected[0]);
    // Both are sums of 3 m micro-batches. Here each partial sum is below 40.
    check_close("stage 0 has this sum", divided[0], expected, roundings(6 * m) * 40);

    step("A Window adds an update's gradients and divides w.grad once, by the number of items: {}.", 48 * m);
    code(3);
    const auto accumulate = [&](auto& here, const Tensor& W, auto& window) {
        three_runs(here, W, m, [&] { window.after_backward(16 * m); });
        window.finish();
    };
    const auto updated = on_ranks([&](ProcessGroup& here) {
        const Tensor W = layer(here.rank());
        Sgd<real> sgd({W}, {.learning_rate = 0.5});
        Window<real> window(sgd);
        accumulate(here, W, window);
        return W.value().to_vector();
    });
    const WholeModel alone(p);
    Sgd<real> sgd(alone.layers, {.learning_rate = 0.5});
    Window<real> window(sgd);
    for (int k = 0; k < 3 * m; ++k) window.add({loss(alone(micro_batch(k)), k), number_of_items(16)});
    window.finish();
    auto steps = table({"stage", "|step|", "|step| alone", "first weight", "first weight alone"});
    for (int s = 0; s < p; ++s) {
        const std::vector<real> start = layer(s).value().to_vector(), one = alone.weights()[s];
        steps.row(s, distance(updated[s], start), distance(one, start), updated[s][0], one[0]);
    }
    note("In this table, alone means one process with all layers.");
    check_equal("all weights have the same bits", joined(updated), joined(alone.weights()));
}
