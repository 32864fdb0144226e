// calls() returns the calls that change a training run. Each call also applies its effect to a Plain, which
// computes the expected numbers without tally.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "../lessons/accumulate.hpp"
#include "../lessons/adam_a.hpp"
#include "folder.hpp"
#include "here.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/sgd_step.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/memory/memory.hpp"
#include "tally/train/clip.hpp"
#include "tally/train/grad_cache.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/micro_batch.hpp"
#include "tally/train/module.hpp"
#include "tally/train/trainer.hpp"
#include "tally/train/window.hpp"

namespace tally::test::misuse {

using lesson::Accumulate, lesson::AdamA;
using A = Array<double>;
using Numbers = std::vector<double>;

inline const Numbers first_items{1, 2}, second_items{3, 6}, other_items{4};
inline constexpr double rate = 0.5;

inline double total(const Numbers& x) {
    double sum = 0;
    for (const double each : x) sum += each;
    return sum;
}

// Defines a module with one weight w. The loss of an item x is x w²/2, so the gradient is x w. All numbers
// have few significant bits, so no operation rounds.
struct Program : Module<double> {
    Tensor64 w = parameter(A({1, 1}, {1.0}).to(here()));
    Sgd<double> sgd{{w}, {.learning_rate = rate}};
    MovingAverage<double> average{{w}};
    std::optional<Window<double>> window;
    inline static Sum how = Sum::running;  // how the windows of open() add gradients
    TrainingState at_start, of_average;
    Folder folder;

    Program() { average.save(of_average, "average"); }
    void list(Members& members) override { members.parameter("w", w); }
    Loss<A> loss(const Numbers& x) const {
        return Loss(matmul(constant(A({static_cast<std::int64_t>(x.size()), 1}, x).to(here())), w * w) * 0.5);
    }
    void open() {
        window.emplace(sgd, Window<double>::Options{.micro_batches = 2, .sum = how});
        at_start = {};
        window->save(at_start, "window");
    }
};

inline A number(double x) { return A({1, 1}, {x}).to(here()); }

// A Plain stores the expected state of a Program, and does not use the library.
struct Plain {
    double w = 1, learning_rate = rate, average = 1, gradient = 0, count = 0, once = 0;
    int micro_batches = 0;
    void backward(const Numbers& x) { gradient += w * total(x); }
    void add(const Numbers& x) {
        backward(x);
        count += static_cast<double>(x.size());
        ++micro_batches;
    }
    void reset() { gradient = count = once = micro_batches = 0; }
    void finish() {
        w -= learning_rate * (gradient / count + once);
        reset();
    }
};

// ---- what can be called ----

// The kind of a call determines which checks the library must make.
enum class Kind {
    harmless,          // does not change a parameter, gradient or window
    queries_gradient,  // returns a gradient without adding it to a parameter
    gradient,          // changes the gradient of a parameter
    value,             // changes the value of a parameter
    swaps_average,     // exchanges a parameter's value with its moving average
    steps,             // steps the optimizer
    runs_backward,     // runs a backward pass outside the window
    another_window,    // opens a second window on the same parameters
    always_rejected,   // throws for every window of this test
    adds,
    reports_backward,  // reports a micro-batch whose backward pass ran outside the window
    finishes,
    flushes,
    discards,
    begins_pass,
    plans,
    saves,
    loads,
    once
};

struct Call {
    std::string name;
    Kind kind;
    std::function<void(Program&)> does;
    std::function<void(Plain&)> means = [](Plain&) {};
};

inline std::vector<Call> calls() {
    const auto becomes = [](double x) { return [x](Plain& p) { p.w = x; }; };
    const auto ran_backward = [](Plain& p) { p.backward(other_items); };
    const auto swap = [](Plain& p) { std::swap(p.w, p.average); };
    const auto clear = [](Plain& p) { p.gradient = 0; };
    const auto set_to = [](double x) {
        return [x](Plain& p) {
            if (p.gradient != 0) p.gradient = x;
        };
    };
    const auto stepped = [](Plain& p) { p.w -= p.learning_rate * p.gradient; };
    using P = Program&;
    return {
        {"Var::zero_grad", Kind::gradient, [](P p) { p.w.zero_grad(); }, clear},
        {"Var::free_grad", Kind::gradient, [](P p) { p.w.free_grad(); }, clear},
        {"Var::modify_grad", Kind::gradient, [](P p) { p.w.modify_grad([](A& g) { g = number(9); }); },
         set_to(9)},
        {"Var::modify_value", Kind::value,
         [](P p) {
             p.w.modify_value([](A& v) {
                 const A four = number(4);
                 detail::device_copy::bytes(v.writable(), v.device(), four.data(), v.device(),
                                            sizeof(double));
             });
         },
         becomes(4)},
        {"Var::modify_value (another buffer)", Kind::value,
         [](P p) { p.w.modify_value([](A& v) { v = number(4); }); }, becomes(4)},
        {"Var::update", Kind::steps, [](P p) { p.w.update([](A& v, const A&) { v = number(4); }); },
         [](Plain& p) {
             if (p.gradient != 0) p.w = 4;
         }},
        {"Var::backward", Kind::runs_backward, [](P p) { p.loss(other_items).sum.backward(); }, ran_backward},
        {"Var::backward(seed)", Kind::runs_backward,
         [](P p) { p.loss(other_items).sum.backward(A({}, {1.0}).to(here())); }, ran_backward},
        {"sgd_step", Kind::steps, [](P p) { sgd_step({p.w}, rate); }, stepped},
        {"clip_grad_norm", Kind::gradient, [](P p) { clip_grad_norm<double>({p.w}, 0.25); }, set_to(0.25)},
        {"clip_grad_value", Kind::gradient, [](P p) { clip_grad_value<double>({p.w}, 0.25); }, set_to(0.25)},
        {"assign", Kind::value, [](P p) { p.w.assign(number(4)); }, becomes(4)},
        {"to", Kind::gradient, [](P p) { p.to(here()); }},
        {"load_weights", Kind::value,
         [](P p) {
             Program other;
             other.w.assign(number(4));
             other.save_weights(p.folder / "weights");
             p.load_weights(p.folder / "weights");
         },
         becomes(4)},
        {"Array::writable", Kind::harmless,
         [](P p) {
             A copy = p.w.value();
             copy.writable();
             copy = number(4);
         }},
        {"memory::drop_cache", Kind::harmless, [](P) { memory::drop_cache(here()); }},
        {"grad", Kind::queries_gradient, [](P p) { grad(p.loss(other_items).sum, {p.w}); }},
        {"cached_backward", Kind::runs_backward,
         [](P p) {
             cached_backward<double>(
                 1, {[&](std::size_t) {
                     return reshape(p.w * p.w, {1, 1});
                 }},
                 [](const detail::Representations<double>& of) { return sum(of[0]) * 2; });
         },
         ran_backward},

        {"Optimizer::step", Kind::steps, [](P p) { p.sgd.step(); }, stepped},
        {"Optimizer::zero_grad", Kind::gradient, [](P p) { p.sgd.zero_grad(); }, clear},
        {"Optimizer::set_learning_rate", Kind::harmless, [](P p) { p.sgd.set_learning_rate(0.25); },
         [](Plain& p) { p.learning_rate = 0.25; }},
        {"Optimizer::load", Kind::harmless,
         [](P p) {
             TrainingState state;
             p.sgd.save(state, "sgd");
             p.sgd.load(state, "sgd");
         }},
        {"AdamA::fold", Kind::gradient, [](P p) { AdamA<double>({p.w}).fold(); }, clear},
        {"MovingAverage::prepare", Kind::harmless, [](P p) { p.average.prepare(); }},
        {"MovingAverage::update", Kind::harmless, [](P p) { p.average.update(); },
         [](Plain& p) { p.average = p.w; }},
        {"MovingAverage::swap", Kind::swaps_average, [](P p) { p.average.swap(); }, swap},
        {"MovingAverage::load", Kind::harmless, [](P p) { p.average.load(p.of_average, "average"); }},

        {"Window::add", Kind::adds, [](P p) { p.window->add(p.loss(other_items)); },
         [](Plain& p) { p.add(other_items); }},
        {"add_cached", Kind::adds,
         [](P p) {
             add_cached<double>(*p.window, {Items(0, 1)}, {[&](const Items&, ForwardPass&) {
                 return reshape(p.w * p.w, {1, 1});
             }},
                                [](const detail::Representations<double>& of) { return Loss(of[0] * 2.); });
         },
         [](Plain& p) { p.add(other_items); }},
        {"Window::add_regularizer", Kind::once, [](P p) { p.window->add_regularizer(sum(p.w * p.w) * 0.5); },
         [](Plain& p) { p.once += p.w; }},
        {"Window::after_backward", Kind::reports_backward, [](P p) { p.window->after_backward(2); }},
        {"Window::add_in_passes", Kind::harmless, [](P p) { p.window->add_in_passes([] {}); }},
        {"Window::backward", Kind::harmless, [](P p) { p.window->backward([] {}); }},
        {"Window::begin_micro_batch", Kind::begins_pass, [](P p) { p.window->begin_micro_batch(1); }},
        {"Window::begin_part", Kind::always_rejected, [](P p) { p.window->begin_part(1); }},
        {"Window::plan_micro_batches", Kind::plans, [](P p) { p.window->plan_micro_batches(1); }},
        {"Window::finish", Kind::finishes, [](P p) { p.window->finish(); }, [](Plain& p) { p.finish(); }},
        {"Window::flush", Kind::flushes, [](P p) { p.window->flush(); },
         [](Plain& p) {
             if (p.micro_batches > 0) p.finish();
         }},
        {"Window::discard", Kind::discards, [](P p) { p.window->discard(); }, [](Plain& p) { p.reset(); }},
        {"Window::save", Kind::saves,
         [](P p) {
             TrainingState state;
             p.window->save(state, "window");
         }},
        {"Window::load", Kind::loads, [](P p) { p.window->load(p.at_start, "window"); },
         [](Plain& p) { p = {.average = p.average}; }},
        {"Window", Kind::another_window, [](P p) { Window<double>{p.sgd}; }},
        {"Accumulate", Kind::another_window, [](P p) { Accumulate<double>(p.sgd, 2, Reduction::sum); }},
        {"Trainer", Kind::another_window,
         [](P p) {
             Trainer<double>(p, p.sgd, 4, [&](const Items&, ForwardPass&) { return p.loss(other_items); });
         }},
        {"MicroBatchSize::update", Kind::always_rejected,
         [](P p) { MicroBatchSize(1).update<double>(*p.window, 1, [](std::int64_t) {}); }},
    };
}

}  // namespace tally::test::misuse
