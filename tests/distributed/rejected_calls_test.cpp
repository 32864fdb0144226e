// Tests that all processes throw an Error with the rank and the values if a call's arguments differ.
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "distributed/world.hpp"
#include "tally/core.hpp"
#include "tally/train.hpp"

namespace tally::test {

namespace {

bool last() { return me() + 1 == ranks(); }
std::string last_rank() { return "rank " + std::to_string(ranks() - 1); }

std::vector<Tensor> two(bool swapped = false, float first = 1) {
    const Tensor a = parameter(Array<float>::full({2, 3}, first)), b = parameter(Array<float>::full({3}, 2));
    return swapped ? std::vector<Tensor>{b, a} : std::vector<Tensor>{a, b};
}

// Calls open(true) on the last process, open(false) elsewhere. All processes must throw equal errors.
template <class F> std::string error_on_all(F open) {
    const std::string error = message_of([&] { open(last()); });
    for (const std::string& other : world().all_gather("the errors", error)) CHECK(other == error);
    return error;
}

}  // namespace

TEST_CASE("ProcessGroup: a timeout that is not positive throws an Error") {
    const auto error = [](double timeout) { return message_of([&] { ProcessGroup({.timeout = timeout}); }); };
    CHECK(error(0) == "[processes] the timeout is 0 s; pass a positive number of seconds");
    CHECK(error(-0.25) == "[processes] the timeout is -0.25 s; pass a positive number of seconds");
}

TEST_CASE("Window: windows that differ between processes throw an Error with the rank and the values") {
    if (ranks() == 1) return;
    const auto open = [](const std::vector<Tensor>& parameters, Window<float>::Options options = {},
                         double rate = 0.1, DataParallel<float>::Options how = {}) {
        Sgd<float> sgd(parameters, {.learning_rate = rate});
        DataParallel<float> across(world(), how);
        Window<float> window(sgd, options, &across);
    };
    const std::string start = "[processes] the construction of a Window: " + last_rank() + " has ",
                      advice = "; make them equal on all processes";
    CHECK(error_on_all([&](bool other) { open(other ? std::vector<Tensor>{two()[0]} : two()); }) ==
          start + "parameters: 1, rank 0 has 2" + advice);
    CHECK(error_on_all([&](bool other) { open(two(other)); }) ==
          start + "parameter 0 with shape (3), rank 0 has (2, 3)" + advice);
    CHECK(error_on_all([&](bool other) { open(two(), {.seed = other ? 7U : 0U}); }) ==
          start + "option seed 7, rank 0 has 0" + advice);
    CHECK(error_on_all([&](bool other) { open(two(), {.total = other ? 4.0 : 2}); }) ==
          start + "option total 4, rank 0 has 2" + advice);
    CHECK(error_on_all([&](bool other) { open(two(), {}, other ? 0.5 : 0.25); }) ==
          start + "optimizer/learning_rate 0.5, rank 0 has 0.25" + advice);
    CHECK(error_on_all([&](bool other) {
              open(two(), {}, 0.1,
                   {.reduce = other ? ProcessGroup::AllReduce::fast : ProcessGroup::AllReduce::rank_order});
          }) == start + "reduce fast, rank 0 has rank_order" + advice);
    CHECK_THAT(error_on_all([&](bool other) { open(two(false, other ? 3.0F : 1.0F)); }),
               contains(start + "parameter 0 with checksum "));
    CHECK_THAT(error_on_all([&](bool other) {
                   const auto parameters = two();
                   Sgd<float> sgd(parameters, {.learning_rate = 0.1});
                   Adam<float> adam(parameters, {.learning_rate = 0.1});
                   DataParallel<float> across(world());
                   Window<float> window(other ? static_cast<Optimizer<float>&>(adam) : sgd, {}, &across);
               }),
               contains(last_rank() + " has "));
    open(two());  // all processes continue
}

TEST_CASE("DataParallel: the names of a model's parameters are compared") {
    if (ranks() == 1) return;
    const std::string error = error_on_all([](bool other) {
        Sequential<float> model(Linear<float>(2, 2, {1, 0}), Linear<float>(2, 2, {1, 0}));
        std::vector<Tensor> all = model.parameters();
        if (other) std::swap(all[0], all[2]);  // both have the same shape and value
        Sgd<float> sgd(all, {.learning_rate = 0.1});
        DataParallel<float> across(world(), {.model = &model});
        Window<float> window(sgd, {}, &across);
    });
    CHECK_THAT(error, contains("parameter "));
    CHECK_THAT(error, contains("with name"));
    CHECK_THAT(error_on_all([](bool other) {
                   Linear<float> model(2, 2, {1, 0});
                   Sgd<float> sgd(model.parameters(), {.learning_rate = 0.1});
                   DataParallel<float> across(world(), {.model = other ? nullptr : &model});
                   Window<float> window(sgd, {}, &across);
               }),
               contains(" has an entry 'option ") &&
                   contains(" where rank 0 has 'parameter 0 with name'; make them equal on all processes"));
}

TEST_CASE("Window: different calls or windows are named on all processes, which continue after discard()") {
    const auto parameters = two();
    Sgd<float> sgd(parameters, {.learning_rate = 0.1});
    DataParallel<float> across(world());
    Window<float> window(sgd, {}, &across);
    const auto add = [&] {
        window.add({sum(parameters[0]) + sum(parameters[1]), constant(Array<float>::full({}, 2))});
    };
    if (ranks() > 1) {
        add();
        if (last()) add();
        const std::string flushed = message_of([&] { last() ? window.flush() : window.finish(); });
        CHECK_THAT(flushed, contains("rank 0 calls finish of window 0, after 1 micro-batches, and " +
                                     last_rank() + " calls flush of window 0, after 2 micro-batches"));
        window.discard();
        add();
        if (last()) window.discard(), add();  // the last process ends one more window
        CHECK_THAT(message_of([&] { window.finish(); }), contains(last_rank() + " calls finish of window 2"));
        window.discard();
        if (!last()) window.discard();
    }
    add();
    CHECK(window.finish().stepped);
    across.require_same_weights();
}

TEST_CASE("Window::finish: an error of one process before the step is thrown on all, and none updates") {
    if (ranks() == 1) return;
    const auto parameters = two();
    Adam<float> adam(parameters);
    DataParallel<float> across(world());
    Window<float> window(adam, {}, &across);
    const auto add = [&] { window.add({sum(parameters[0]), constant(Array<float>::full({}, 2))}); };
    add();
    if (last()) parameters[0].node()->gradient.writable()[0] = 7;  // bypasses the window's lock
    const std::string error = message_of([&] { window.finish(); });
    if (last())
        CHECK_THAT(error, contains("changed in place"));
    else
        CHECK_THAT(error, contains(last_rank() +
                                   " has failed at finish of window 0: [window] finish: the gradient"));
    window.discard();
    CHECK(parameters[0].value().data()[0] == 1);
    // It is an error if only some processes have regularizers.
    add();
    if (last()) window.add_regularizer(sum(parameters[0]));
    CHECK_THAT(message_of([&] { window.finish(); }),
               contains(last_rank() + " has terms of add_regularizer(): 1, rank 0 has 0"));
    window.discard();
    add();
    if (last()) adam.set_learning_rate(0.5);
    CHECK_THAT(message_of([&] { window.finish(); }), contains(last_rank() + " has the learning rate 0.5"));
    adam.set_learning_rate(0.5);
    window.discard();
    add();
    CHECK(window.finish().stepped);
    if (last()) {
        NoGrad off;
        add_scaled(parameters[1].node()->value, 1, Array<float>::full({3}, 1));
    }
    CHECK_THAT(message_of([&] { across.require_same_weights(); }),
               contains("require_same_weights: " + last_rank() + " has parameter 1 with checksum"));
    // All processes have already thrown an error. This test checks that they also report a second error.
    add();
    if (last()) parameters[0].node()->gradient.writable()[0] = 7;
    CHECK_THAT(message_of([&] { window.finish(); }),
               contains(last() ? "changed in place" : last_rank() + " has failed at finish of window 4"));
    window.discard();
}

TEST_CASE("Window::finish: if an allocation fails on one process, none updates") {
    if (ranks() == 1) return;
    int failures = 0;
    for (std::uint64_t nth = 1; nth < 20; ++nth) {
        const auto parameters = two();
        Adam<float> adam(parameters, {.learning_rate = 0.1});
        MovingAverage<float> average(parameters, {.decay = 0.9});
        DataParallel<float> across(world());
        Window<float> window(adam, {.average = &average}, &across);
        if (!last()) window.add({sum(parameters[0]), constant(Array<float>::full({}, 2))});
        const Array<float> held = parameters[0].value();  // a second handle, so that the step must copy
        if (last()) memory::detail::fail_allocation(nth);
        bool stepped = false;
        const std::string error = message_of([&] { stepped = window.finish().stepped; });
        memory::detail::fail_allocation(0);
        const auto all = world().all_gather("whether it stepped", stepped ? "yes" : "no");
        CHECK(std::count(all.begin(), all.end(), all[0]) == static_cast<std::ptrdiff_t>(ranks()));
        failures += stepped ? 0 : 1;
        if (!stepped) {
            CHECK(parameters[0].value().data()[0] == 1);
            CHECK(adam.state_size().now == 0);
            window.discard();
        }
        CHECK(held.data()[0] == 1);
        across.require_same_weights();
    }
    CHECK(failures > 3);  // some of the failed allocations are for Adam's state
    CHECK(failures < 19);
}

TEST_CASE("Window::finish: memory for the sums is allocated before the first sum") {
    if (ranks() == 1) return;
    for (std::uint64_t nth = 1; nth < 4; ++nth) {
        const auto parameters = two();
        Sgd<float> sgd(parameters, {.learning_rate = 0.1});
        DataParallel<float> across(world(), {.bucket = 2});
        Window<float> window(sgd, {}, &across);
        window.add({sum(parameters[0]) + sum(parameters[1]), constant(Array<float>::full({}, 2))});
        const Array<float> held = parameters[1].grad();  // the gradient of the last bucket
        if (last()) memory::detail::fail_allocation(nth);
        bool stepped = false;
        const std::string error = message_of([&] { stepped = window.finish().stepped; });
        memory::detail::fail_allocation(0);
        if (!stepped && !last())
            CHECK_THAT(error, contains(last_rank() + " has failed at finish of window 0"));
        if (!stepped) window.discard();
        CHECK(held.data()[0] == 1);
        across.require_same_weights();
    }
}

TEST_CASE("DataParallel: ending different windows of one object on different processes throws an Error") {
    if (ranks() == 1) return;
    const auto parameters = two(), more = two();
    Sgd<float> first({parameters[0]}, {.learning_rate = 0.1}),
        second({more[0]}, {.learning_rate = 0.1});  // has the same shape
    DataParallel<float> across(world());
    Window<float> one(first, {}, &across), other(second, {}, &across);
    one.add({sum(parameters[0]), constant(Array<float>::full({}, 1))});
    other.add({sum(more[0]), constant(Array<float>::full({}, 1))});
    const std::string error = message_of([&] { (last() ? other : one).finish(); });
    CHECK_THAT(error, contains(last_rank() + " has Window objects constructed before this one: "));
    CHECK_THAT(error, contains(", rank 0 has "));
}

TEST_CASE("ProcessGroup::wait_or_fail: it returns if the condition is true when an error arrives") {
    if (ranks() == 1) return;
    if (last()) {
        world().report_failure("its own call", "it cannot go on");
    } else {
        const int failing = world().size() - 1;
        REQUIRE(world().transport().wait(
            8, [&] { return world().transport().peek_message(failing) != nullptr; }));
        int calls = 0;  // the condition is false at first, and true after the error has arrived
        world().wait_or_fail("a wait", "", "it is not done", [&] { return ++calls == 2; });
        CHECK(calls == 2);
        CHECK_THAT(message_of([] { world().all_gather("a meeting"); }), contains("it cannot go on"));
    }
    world().all_gather("all go on");
}

}  // namespace tally::test
