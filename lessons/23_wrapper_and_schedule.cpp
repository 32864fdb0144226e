// Lesson 23: a wrapper must know whether gradients give a mean or a sum, and where an epoch ends.
#include "accumulate.hpp"
#include "course/kit/window_gradient.hpp"

// Eight items x = 1 to 8 have the targets y = 2 x, so the correct value of the only weight w is 2.
static Tensor items() { return Array<real>({8}, {1, 2, 3, 4, 5, 6, 7, 8}, options().device); }
static Tensor loss_of(const Tensor& w, const Tensor& x) { return mse(w * x, 2 * x).mean(); }  // of (wx - y)^2

static void one_epoch(const Tensor& w, Accumulate<real>& wrapped, std::int64_t each) {
    for (const Tensor& x : split(items(), each)) {
        loss_of(w, x).backward();
        wrapped.step(each);  // the number of items
    }
}

static std::string error_of(const auto& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

LESSON(one_of("micro", "micro-batches of the eight items", 4, {2, 4, 8})) {
    const int n = setting("micro"), each = 8 / n;

    step("We have eight items: x = 1 to 8, targets y = 2 x. One weight w begins at 0 and should become 2.");
    note("The loss is the mean of (w x - y)^2. First we make one update with all eight items.");
    const Tensor at_once = zeros({});  // one number
    code(2);
    loss_of(at_once, items()).backward();
    sgd_step({at_once}, 0.02);  // learning rate 0.02
    show("gradient", at_once.grad(), "w after the update", at_once);

    step("Now we put a wrapper around the optimizer. The wrapper prints what it will do.");
    const Tensor w = zeros({});
    Sgd sgd({w}, {.learning_rate = 0.02});
    code(1);
    Accumulate wrapped(sgd, n, Reduction::mean);  // divides by n
    note(wrapped.announcement());

    step("The loop calls step() after each backward(). Items in a micro-batch: {}.", each);
    note("The wrapper counts calls of step(). Only call number {} makes an update.", n);
    auto calls = table({"x", "updated", "w.grad afterwards", "w afterwards"});
    code(3);
    for (const Tensor& x : split(items(), each)) {
        loss_of(w, x).backward();
        const bool updated = wrapped.step(each);
        calls.row(x, updated, gradient(w), w);  // gradient() gives "-" if w has none
    }
    check_close("w is 0.02 times 102", w, 2.04, roundings(20) * 2.04);  // 102 is the length of the gradient

    ask("only-skips", "n", n, "sum", 2.04 * n, "part", 2.04 / n);
    const Tensor skipped = zeros({});
    Sgd skipping_sgd({skipped}, {.learning_rate = 0.02});
    code(1);
    Accumulate skipping(skipping_sgd, n, Reduction::sum);
    one_epoch(skipped, skipping, each);  // skips updates, but divides nothing
    auto ways = table({"micro-batches", "items in each", "reduction", "w"});
    ways.row(1, 8, "mean", at_once);
    ways.row(n, each, "mean", w);
    ways.row(n, each, "sum", skipped);
    check_close("the mean agrees with the full batch", w, at_once, roundings(40) * 2.04);     // 20 in each
    check_close("the sum goes N times as far", skipped, 2.04 * n, roundings(20) * 2.04 * n);  // 20 roundings
    note("You must choose a reduction, mean or sum: Accumulate(sgd, {}) alone does not compile.", n);

    step("Suppose the loop calls backward() twice, but step() only once.");
    note("In PyTorch, a wrapper does not notice this mistake. tally's wrapper counts calls of backward():");
    const std::string twice = error_of([&] {
        loss_of(w, items()).backward();
        loss_of(w, items()).backward();
        wrapped.step(8);
    });
    show("backward() twice", twice);
    wrapped.window().discard();  // begins the next window without an update
    check("a second backward() is an error", twice.starts_with("[accumulate] 2 backward() calls"));
    note("Micro-batches of unequal sizes give a wrong mean, so the loop tells step() the number of items:");
    const std::string unequal = error_of([&] {
        for (const std::int64_t size : {2, 3}) {
            loss_of(w, slice(items(), 0, 0, size)).backward();  // along axis 0, from 0 to size
            wrapped.step(size);
        }
    });
    show("2 items, then 3", unequal);
    check("another size is an error", unequal.starts_with("[accumulate] this micro-batch has 3 items"));
    wrapped.window().discard();

    step("An epoch has 8 micro-batches of one item, 3 for each update. Two micro-batches are left over.");
    note("step() cannot see that an epoch ends, so the loop then calls flush(), which follows a policy:");
    note("scale updates with both micro-batches, drop discards both, carry keeps both for the next epoch.");

    ask("left-over");
    auto ends = table({"end of the epoch", "updates", "left open", "w", "w an epoch later"});
    const auto train = [&](const char* name, Tail tail, bool flushes) {
        const Tensor v = zeros({});
        Sgd inner({v}, {.learning_rate = 0.002});  // so small that two epochs do not reach 2
        Accumulate outer(inner, 3, Reduction::mean, tail);
        one_epoch(v, outer, 1);
        if (flushes) outer.flush();
        const Window<real>& window = outer.window();
        const std::int64_t updates = window.updates();
        const std::int64_t open = window.micro_batches();  // not in an update yet
        const Array<real> first = v.value().clone();
        one_epoch(v, outer, 1);
        if (flushes) outer.flush();
        ends.row(name, updates, open, first, v);
    };
    train("no flush()", Tail::scale, false);  // without flush() the policy does nothing
    train("flush(), scale", Tail::scale, true);
    train("flush(), drop", Tail::drop, true);
    train("flush(), carry", Tail::carry, true);
    const std::vector<double> later = ends.column("w an epoch later").values;
    check_equal("no flush() is the same as carry", later[0], later[3]);
}
