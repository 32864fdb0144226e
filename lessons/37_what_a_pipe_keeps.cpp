// Lesson 37: a pipe keeps fewer micro-batches if a stage runs backward as early as possible.
#include "stages.hpp"

struct Ran {
    double loss, KiB;  // the most KiB that are saved for backward at one time
    int kept;          // the most micro-batches that are kept at one time
};

static std::vector<Ran> run_in(Order order, int m) {
    return on_ranks([&](ProcessGroup& here) {
        Pipe<real> pipe = pipe_of(here, layer(here.rank()), order);
        memory::reset_peak(options().device);
        const auto result = pipe.run(m, micro_batch, loss);
        const std::size_t bytes = memory::report(options().device).peak_by[int(MemoryClass::saved)];
        return Ran{result.loss, double(bytes) / 1024, result.max_live[0]};
    });
}

static std::vector<std::vector<real>> gradients_in(Order order, int m) {
    return on_ranks([&](ProcessGroup& here) {
        const Tensor W = layer(here.rank());
        pipe_of(here, W, order).run(m, micro_batch, loss);
        return W.grad().to_vector();
    });
}

LESSON(whole_number("ranks", "processes, with a stage each", 4, 2, 5),
       whole_number("micro", "micro-batches of a run", 8, 6, 12)) {
    const int p = setting("ranks"), m = setting("micro");
    const Timetable gpipe = Timetable::of(Order::gpipe, p, m);
    const Timetable alternating = Timetable::of(Order::one_forward_one_backward, p, m);

    step("A stage keeps the values of a micro-batch from the forward pass, F, to the backward pass, B.");
    note("GPipe computes F for all micro-batches first. So a stage keeps the values of {} micro-batches.", m);
    int kept_now = 0, most_kept = 0;
    double busy = 0;
    code(3);
    for (const Timetable::Step& work : gpipe.stages[0]) {
        kept_now += work.what == 'F' ? 1 : -1;  // a B frees the values
        most_kept = std::max(most_kept, kept_now);
        busy += work.end - work.begin;
    }
    graph("gpipe", say("GPipe: {} stages, {} micro-batches", p, m), gpipe);
    show("share of the time that a stage waits", 1 - busy / gpipe.seconds);
    show("micro-batches that stage 0 keeps", most_kept);

    ask("what-gets-smaller");
    graph("the-pipe", say("1F1B: {} stages, {} micro-batches", p, m), alternating);
    show("share of the time that a stage waits", alternating.bubble());
    const auto orders = on_ranks([&](ProcessGroup& here) {
        Pipe<real> pipe = pipe_of(here, layer(here.rank()), Order::one_forward_one_backward);
        return in_words(pipe.run(m, micro_batch, loss).steps);
    });
    bool as_drawn = true;
    for (int s = 0; s < p; ++s) as_drawn = as_drawn && orders[s] == in_words(alternating.stages[s]);
    check("each process worked in the order of its line", as_drawn);
    check_equal("the same time as GPipe", alternating.seconds, gpipe.seconds);

    ask("kept-in-stage-0", "p", p, "m", m, "behind", p - 1, "passed", 2 * (p - 1));
    note("Each process measures the bytes that are saved for backward.");
    const std::vector<Ran> all_f = run_in(Order::gpipe, m);
    const std::vector<Ran> one_f = run_in(Order::one_forward_one_backward, m);
    auto kept = table({"stage", "GPipe keeps", "1F1B keeps", "GPipe, KiB kept", "1F1B, KiB kept"});
    for (int s = 0; s < p; ++s) kept.row(s, all_f[s].kept, one_f[s].kept, all_f[s].KiB, one_f[s].KiB);
    const Numbers KiB = kept.column("1F1B, KiB kept");  // for the input and the output of the stage
    check_equal("2 KiB for each micro-batch", KiB, scaled(kept.column("1F1B keeps"), 2));

    step("With more micro-batches, a stage waits less. But GPipe keeps all micro-batches.");
    auto longer = table({"micro-batches", "waits", "GPipe keeps", "1F1B keeps"});
    for (const int micro : std::set{1, m, 9 * (p - 1), 10 * (p - 1), 100 * p}) {
        const Timetable first = Timetable::of(Order::gpipe, p, micro);
        const Timetable second = Timetable::of(Order::one_forward_one_backward, p, micro);
        longer.row(micro, second.bubble(), first.max_live[0], second.max_live[0]);
    }
    check_equal("1F1B keeps as many as there are stages", longer.column("1F1B keeps").values.back(), p);

    step("GPipe and 1F1B add the micro-batches' gradients in the order 0, 1, 2.");
    const WholeModel whole(p);
    double sum = 0;
    code(3);
    for (int k = 0; k < m; ++k) {
        const Tensor one = loss(whole(micro_batch(k)), k);
        one.backward();
        sum += double(one.item());
    }
    const auto by_gpipe = gradients_in(Order::gpipe, m);
    const auto by_1f1b = gradients_in(Order::one_forward_one_backward, m);
    auto bits = table({"stage", "one process", "GPipe", "1F1B"});
    for (int s = 0; s < p; ++s) bits.row(s, whole.gradients()[s][0], by_gpipe[s][0], by_1f1b[s][0]);
    show("loss of one process, GPipe, 1F1B", {sum, all_f[0].loss, one_f[0].loss});
    check_equal("1F1B: all gradients have the same bits", joined(by_1f1b), joined(whole.gradients()));
    check_equal("the loss has the same bits", one_f[0].loss, sum);

    const Timetable split = tally::detail::zero_bubble(p, m);
    ask("later-weights", "p", p, "before", 3 * (p - 1), "right", p - 1, "two", 2 * (p - 1));
    graph("zero-bubble", say("Zero bubble: {} stages, {} micro-batches", p, m), split);
    show("units that a stage waits", split.seconds - 3 * m);
    check_equal("no stage waits longer than p - 1", split.seconds, 3.0 * m + p - 1);
    check_equal("stage 0 keeps as many as there are stages", split.max_live[0], p);
}
