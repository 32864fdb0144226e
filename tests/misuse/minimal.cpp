// Runs forty small programs, each of which once gave a wrong number without an error: minimal [NUMBER].
//
// Each case runs in a separate process and prints one line. The line begins with `ok` if the number is right or
// the compiler rejects the call, and with `Error` if tally rejects the call. `NOTE` marks a documented limit,
// and `WRONG` a wrong number. The program fails if a case prints WRONG or crashes.
#include <unistd.h>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <thread>
#include <type_traits>

#include "../../lessons/accumulate.hpp"
#include "tally/tally.hpp"
#include "tally/train.hpp"

using namespace tally;

namespace {

using A = Array<float>;
using I = Array<std::int32_t>;

template <class... X> std::string words(const X&... x) {
    std::ostringstream out;
    ((out << " " << x), ...);
    return out.str();
}
template <class... X> std::string wrong(const X&... x) { return "WRONG:" + words(x...); }
std::string when(bool right, const std::string& got) { return right ? "ok" : "WRONG:" + got; }
std::string near(double got, double right, double within = 1e-5) {
    return when(std::abs(got - right) <= within * std::max(1., std::abs(right)), words(got, "for", right));
}
// `similar` tells whether a correct call with the same arguments compiles. Without it, a misspelled name would
// pass as rejected.
std::string compiler_rejects(bool compiles, bool similar) {
    if (!similar) return "WRONG: the correct call does not compile";
    return compiles ? "WRONG: the call compiles" : "ok: the compiler rejects the call";
}
bool inside(const A& a, float low, float high) {
    for (float v : a.span()) {
        if (!(low <= v && v <= high)) return false;
    }
    return true;
}
bool same(const A& a, const A& b) { return a.to_vector() == b.to_vector(); }
Tensor items_of(std::int64_t n) { return reshape(arange(n), {n, 1}); }

// ---- shapes, values and random numbers ----

std::string shape_from_the_end() {
    const Tensor x = ones({2, 5});
    if (x.shape()[-1] != 5) return wrong(x.shape()[-1], "for 5");
    return wrong(x.shape()[2], "for an error");
}
std::string value_of_a_temporary() {
    Tensor w = parameter({1.f, 2.f});
    const auto& y = (w * 2).value();
    const Tensor z = ones({2}) * 7;
    return when(y.span()[0] == 2 && y.span()[1] == 4, words(y.span()[0], y.span()[1]));
}
template <class V> constexpr bool spans_of_a_temporary = requires(V w) { (w * 2).value().span(); }
|| requires(V w) { (w * 2).value().data(); };
template <class V> constexpr bool spans_of_a_name = requires(V value) { value.span(), value.data(); };
std::string span_of_a_temporary() {
    return compiler_rejects(spans_of_a_temporary<Tensor>, spans_of_a_name<A>);
}
template <class V> constexpr bool bare_smoothing = requires(V x, I i) { cross_entropy(x, i, 0.1); };
template <class V> constexpr bool smoothing = requires(V x, I i) { cross_entropy(x, i, {.smoothing = 0.1}); };
std::string smoothing_by_position() { return compiler_rejects(bare_smoothing<Tensor>, smoothing<Tensor>); }
template <class V> constexpr bool rows_of_a_braced_pair = requires(V a) { rows(a, {0, 2}); };
template <class V> constexpr bool rows_of_items = requires(V a) { rows(a, Items(0, 2)); };
std::string braces_of_rows() { return compiler_rejects(rows_of_a_braced_pair<A>, rows_of_items<A>); }
std::string bounds_by_position() {  // the second argument was once the seed
    const A u = uniform<float>({1000}, -1, 1).value(), n = randn<float>({1000}, 5, 2).value();
    if (!inside(u, -1, 1) || inside(u, 0, 1)) return wrong("uniform numbers between -1 and 1:", u);
    const double average = mean(constant(n)).item(), spread = std::sqrt(var(constant(n)).item());
    return when(std::abs(average - 5) < 0.3 && std::abs(spread - 2) < 0.3,
                words(average, "for 5;", spread, "for 2"));
}
std::string bounds_in_reverse() {
    const Tensor u = uniform({3}, 1, -1);
    return when(!same(u.value(), A({3}, {1, 1, 1})) && inside(u.value(), -1, 1), words(u.value()));
}
std::string small_numbers_printed() {
    const std::string printed = words(parameter({1e-6f}).value());
    return when(printed.find("e-06") != printed.npos || printed.find("e-6") != printed.npos, printed);
}
std::string long_sums() {
    Tensor b = parameter(zeros({1}));
    sum(linear(zeros({1000000, 1}), zeros({1, 1}), b) * full({1000000, 1}, 0.1)).backward();
    const double average = mean(full({10000000}, 0.1)).item();
    if (std::abs(average - 0.1) > 1e-6) return wrong("the mean of 10^7 times 0.1 is", average);
    const double bias = b.grad().item();
    if (std::abs(bias - 100000) <= 1) return "ok";
    if (std::abs(bias - 100000) > 2000) return wrong("the bias gradient is", bias);
    return "NOTE: the bias gradient of 10^6 times 0.1 is" + words(bias) +
           " for 100000 (docs/tensors.md), the mean of 10^7 is right";
}

// ---- custom operations and steps ----

std::string backward_that_forgets_an_input() {
    Tensor u = parameter({1.f}), w = parameter({3.f});
    const auto mine = [](Tensor a, Tensor b) {
        return custom(
            "mine", [](const A& p, const A& q) { return A({1}, {p.span()[0] * q.span()[0]}); },
            [](GradInputs<A> to, const A& dy, const A&, const A&, const A& q) {
                to.add(0, A({1}, {dy.span()[0] * q.span()[0]}));
            },
            a, b);
    };
    (mine(u, w) + w * 0.5).backward();
    return near(w.grad().item(), 1.5);
}
std::string backward_that_overwrites() {
    Tensor w = parameter({1.f});
    const auto op = [](Tensor t) {
        return custom(
            "op", [](const A& in) { return in.clone(); },
            [](GradInputs<A> to, const A& dy, const A&, const A&) {
                detail::grad_buffer(to.into(0)).dst[0] = dy.span()[0];
            },
            t);
    };
    op(w).backward();
    op(w).backward();
    return near(w.grad().item(), 2);
}
std::string decay_of_adamw() {
    Tensor w = parameter({1.f});
    sum(w * 0).backward();
    AdamW<float> o({w}, {.learning_rate = 0.1});
    o.step();
    return near(w.item(), 0.999);
}
std::string one_parameter_twice() {
    Tensor w = parameter({1.f});
    sum(w).backward();
    sgd_step({w, w}, 0.1);
    return near(w.item(), 0.9);
}

// ---- windows ----

template <class W> constexpr bool adds_a_bare_count = requires(W& win, Loss<A> loss) { win.add(loss, 2); };
template <class W> constexpr bool adds_a_weight = requires(W& w, Loss<A> l) { w.add(l, {.weight = 2}); };
std::string count_for_a_weight() {
    return compiler_rejects(adds_a_bare_count<Window<float>>, adds_a_weight<Window<float>>);
}

// Trains one weight in a window.
struct Training {
    explicit Training(float at = 1, Window<float>::Options options = {})
        : w(parameter({at})), optimizer({w}, {.learning_rate = 1}), window(optimizer, options) {}
    Tensor w;
    Sgd<float> optimizer;
    Window<float> window;
};

std::string loss_of_another_model() {
    Training t(0);
    Tensor v = parameter({0.f});
    t.window.add(Loss(t.w * 2));
    t.window.add(Loss(v * 2));
    t.window.finish();
    return near(t.w.item(), -2);
}
std::string regularizer_with_each_micro_batch() {
    Training t;
    for (int k = 0; k < 4; ++k) {
        t.window.add(Loss(t.w * 0));
        t.window.add_regularizer(sum(t.w * t.w) * 0.1);
    }
    t.window.finish();
    return near(t.w.item(), 0.8);
}
std::string average_of_other_parameters() {
    Tensor w = parameter({1.f}), v = parameter({1.f});
    Sgd<float> o({w}, {.learning_rate = 1});
    MovingAverage<float> avg({v}, {.decay = 0.5});
    Window<float> win(o, {.average = &avg});
    win.add(Loss(w * 2));
    win.finish();
    return wrong("no error; the average is", avg.value(0));
}
std::string average_counted_twice() {
    Tensor w = parameter({1.f});
    Sgd<float> o({w}, {.learning_rate = 1});
    MovingAverage<float> avg({w}, {.decay = 0.5});
    Window<float> win(o, {.average = &avg});
    for (int u = 0; u < 2; ++u) {
        win.add(Loss(w * 2));
        win.finish();
        avg.update();
    }
    return near(avg.value(0).item(), -2);
}
std::string parameter_replaced() {
    Tensor w = parameter({1.f});
    Sgd<float> o({w}, {.learning_rate = 0.1});
    w = parameter({2.f});
    sum(w * w).backward();
    o.step();
    return near(w.item(), 1.6);
}
std::string batch_norm_moved() {
    auto b = std::make_unique<BatchNorm<float>>(1);
    Sgd<float> o(b->parameters(), {.learning_rate = 0.1});
    Window<float> win(o, {});
    win.add(Loss((*b)(items_of(4), win.begin_micro_batch(4))));
    auto moved = std::make_unique<BatchNorm<float>>(std::move(*b));
    b.reset();
    auto other = std::make_unique<BatchNorm<float>>(1);
    win.finish();
    const float right = moved->running.mean.item(), others = other->running.mean.item();
    return when(std::abs(right - 0.15) < 1e-6 && others == 0, words(right, "for 0.15;", others, "for 0"));
}
// Returns the dropout mask of four items in micro-batches of `size` items with `rows` rows each. Calls
// begin_micro_batch(said), or gives the right number of items if `said` is 0.
A masks(std::int64_t size, std::int64_t rows, std::int64_t said) {
    Dropout<float> d(0.5, 3);
    Training t;
    std::vector<Tensor> parts;
    for (const Items& i : split(Items::in_order(4), size)) {
        ForwardPass& p = t.window.begin_micro_batch(said ? said : i.count());
        parts.push_back(reshape(d(ones({i.count() * rows, 1}), p), {-1}).detach());
        t.window.add(Loss(t.w * 1));
    }
    t.window.discard();
    return concat(parts).value();
}
std::string pass_of_fewer_items() {
    const A right = masks(2, 1, 0), got = masks(2, 1, 1);
    return when(same(got, right), words(got, "for", right));
}
std::string flattened_tokens() {
    const A one = masks(4, 2, 0), two = masks(2, 2, 0);
    return when(same(one, two), words(one, "and", two));
}
std::string model_without_its_pass() {
    Sequential<float> m{Linear<float>(8, 8, {.seed = 1}), Dropout<float>(0.5)};
    Sgd<float> o(m.parameters(), {.learning_rate = 1});
    Window<float> win(o, {});
    (void)win.begin_micro_batch(1);
    const Tensor y = m(ones({1, 8}));
    win.add(Loss(y));
    win.finish();
    return wrong("no error, and nothing is dropped:", y.value());
}
std::string passes_by_hand() {
    BatchNorm<float> b(1);
    for (int u = 0; u < 10; ++u) {
        ForwardPass p{.training = true};
        (void)b(items_of(4) + 5, p);
    }
    (void)b(items_of(4) + 5);  // runs in evaluation mode
    return near(b.running.mean.item(), 6.5 * (1 - std::pow(0.9, 10)));
}
std::string one_pass_for_all_windows() {
    Dropout<float> d(0.5, 3);
    Training t;
    ForwardPass& p = t.window.begin_micro_batch(1);
    std::vector<A> masks;
    for (int u = 0; u < 2; ++u) {
        masks.push_back(d(ones({1, 12}), p).value());
        t.window.add(Loss(t.w * 1));
        t.window.finish();
    }
    return when(!same(masks[0], masks[1]), words("the same mask twice:", masks[0]));
}
Sequential<float> normed() {
    return Sequential<float>{Linear<float>(1, 1, {.seed = 1}), BatchNorm<float>(1)};
}
std::string saved_without_the_model() {
    TrainingState s;
    float trained = 0;
    {
        auto m = normed();
        Sgd<float> o(m.parameters(), {.learning_rate = 0.1});
        Window<float> win(o, {});
        win.add(Loss(m(items_of(4), win.begin_micro_batch(4))));
        win.finish();
        trained = m(ones({1, 1})).item();
        win.save(s, "w");
    }
    auto m = normed();
    Sgd<float> o(m.parameters(), {.learning_rate = 0.1});
    Window<float> win(o, {});
    win.load(s, "w");
    return near(m(ones({1, 1})).item(), trained);
}

// ---- modules and trainers ----

struct Forgets : Layer<float> {
    Tensor forward(Tensor x, ForwardPass&) override { return x; }
};
struct Lists : Forgets {
    void list(Members&) override {}
};
std::string layer_without_a_list() {
    return compiler_rejects(!std::is_abstract_v<Forgets>, !std::is_abstract_v<Lists>);
}

// Returns a Trainer of `model` whose loss function runs `trained`.
Trainer<float> trainer(Layer<float>& model, Layer<float>& trained, Optimizer<float>& o,
                       Trainer<float>::Options options = {}) {
    return Trainer<float>(
        model, o, 4,
        [&trained](const Items& i, ForwardPass& p) {
            return mse(trained(ones({i.count(), 1}), p), zeros({i.count(), 1}));
        },
        options);
}
Linear<float> small(std::uint64_t seed) { return Linear<float>(1, 1, {.seed = seed}); }

std::string layer_added_later() {
    Sequential<float> m{small(1)};
    Sgd<float> o(m.parameters(), {.learning_rate = 0.1});
    m.add(small(2));
    const float before = m.parameters()[2].item();
    trainer(m, m, o).train();
    return when(m.parameters()[2].item() != before, " the added layer did not change");
}
std::string optimizer_of_another_model() {
    Sequential<float> m{small(1)}, other{small(1)};
    Sgd<float> o(m.parameters(), {.learning_rate = 0.1});
    auto t = trainer(other, m, o);
    t.train();
    return wrong("no error;", t.updates(), "updates");
}
std::string trained_with(const Trainer<float>::Options& options) {
    auto l = small(1);
    Sgd<float> o(l.parameters(), {.learning_rate = 0.1});
    trainer(l, l, o, options).train();
    return wrong("no error");
}
std::string nothing_to_save_into() { return trained_with({.save_steps = 1}); }
std::string two_files_of_one_name() {
    return trained_with({.checkpoint = "one.file", .metrics_csv = "one.file"});
}
std::string other_inputs_each_pass() {
    Sequential<float> m{Linear<float>(1, 2, {.seed = 1}), BatchNorm<float>(2),
                        Linear<float>(2, 1, {.seed = 2})};
    Sgd<float> o(m.parameters(), {.learning_rate = 0.1});
    Window<float> win(o, {});
    std::uint64_t k = 0;
    add_with_exact_batch_norm<float>(
        win, m, split(Items::in_order(4), 2),
        [&](const Items& i) {
            return randn({i.count(), 1}, {.seed = ++k});
        },
        [](const auto& y, const Items&) { return Loss(y * y); });
    win.finish();
    return wrong("no error for", k, "different inputs");
}
std::string two_backwards_before_a_step() {
    Tensor w = parameter({1.f});
    Sgd<float> o({w}, {.learning_rate = 1});
    lesson::Accumulate<float> a(o, 2, Reduction::mean);
    sum(w * 2).backward();
    sum(w * 4).backward();
    a.step(1);
    sum(w * 6).backward();
    a.step(1);
    return near(w.item(), -3);
}
std::string step_with_averages_swapped_in() {
    Tensor w = parameter({1.f});
    Sgd<float> o({w}, {.learning_rate = 0.1});
    MovingAverage<float> avg({w}, {.decay = 0.5});
    avg.update();
    w.assign(A{3});
    avg.update();
    avg.swap();
    sum(w).backward();
    o.step();
    return wrong("no error;", w.item());
}
std::string value_taken_away() {
    Tensor w = parameter({1.f});
    w.modify_value([](A& v) { const A out = std::move(v); });
    return wrong("no error;", (w * 2).value());
}
struct Loop : Layer<float> {
    void list(Members& m) override { m.child("me", *this); }
    Tensor forward(Tensor t, ForwardPass&) override { return t; }
};
std::string module_in_itself() {
    Loop m;
    return wrong("no error;", m.parameters().size());
}
std::string resumed_after_a_nan() {
    const Window<float>::Options options{.non_finite = NonFinite::drop_window, .noise = true};
    TrainingState s;
    {
        Training t(1, options);
        t.window.add(Loss(t.w * NAN));
        t.window.save(s, "w");
    }
    Training t(1, options);
    try {
        t.window.load(s, "w");
    } catch (const Error& e) {
        return wrong(e.what(), "instead of a loaded window");
    }
    return "ok";
}

// ---- threads and files ----

template <class F> void in_four_threads(F f) {
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; ++k) {
        threads.emplace_back([&] {
            for (int i = 0; i < 300000; ++i) {
                try {
                    f();
                } catch (const Error&) {  // every thread may get an Error
                }
            }
        });
    }
    for (auto& each : threads) each.join();
}
std::string split_in_threads() {
    const Tensor data = ones({4, 2});
    in_four_threads([&] { (void)split(data, 2); });
    return when(data.node()->handles == 1, words(data.node()->handles, "handles for 1"));
}
std::string rejected_in_threads() {
    Linear<float> m(2, 1, {.seed = 1});
    in_four_threads([&] { (void)m(ones({1, 2})); });
    const A right = matmul(ones({1, 2}), m.weight).value();
    return when(m.weight.node()->handles == 1 && m(ones({1, 2})).item() == right.item() + m.bias.item(),
                words(m.weight.node()->handles, "handles for 1"));
}
std::string two_values_for_one_weight() {
    Sequential<float> two{small(1), small(2)}, tied{small(3), small(4)};
    two.save_weights("two.st");
    dynamic_cast<Linear<float>&>(tied.layer(1)).weight = dynamic_cast<Linear<float>&>(tied.layer(0)).weight;
    tied.load_weights("two.st");
    return wrong("no error;", tied.parameters()[0].value());
}

using Case = std::string (*)();
constexpr Case cases[10][4] = {
    {shape_from_the_end, value_of_a_temporary, span_of_a_temporary, smoothing_by_position},
    {braces_of_rows, bounds_by_position, bounds_in_reverse, small_numbers_printed},
    {long_sums, backward_that_forgets_an_input, backward_that_overwrites, decay_of_adamw},
    {one_parameter_twice, count_for_a_weight, loss_of_another_model, regularizer_with_each_micro_batch},
    {average_of_other_parameters, average_counted_twice, parameter_replaced, batch_norm_moved},
    {pass_of_fewer_items, flattened_tokens, model_without_its_pass, passes_by_hand},
    {one_pass_for_all_windows, saved_without_the_model, layer_without_a_list, layer_added_later},
    {optimizer_of_another_model, nothing_to_save_into, two_files_of_one_name, other_inputs_each_pass},
    {two_backwards_before_a_step, step_with_averages_swapped_in, value_taken_away, module_in_itself},
    {resumed_after_a_nan, split_in_threads, rejected_in_threads, two_values_for_one_weight},
};

int outcome(int number) {
    std::string said;
    try {
        said = cases[(number - 1) / 4][(number - 1) % 4]();
    } catch (const Error& e) {
        said = e.what()[0] == '[' ? std::string("Error: ") + e.what()
                                  : wrong("an Error that does not begin with the call:", e.what());
    } catch (const std::exception& e) {
        said = wrong("an exception that is not a tally::Error:", e.what());
    }
    std::cout << said << std::endl;
    return said.rfind("WRONG", 0) == 0;
}

}  // namespace

int main(int count, char** word) {
    if (count > 1) return outcome(std::atoi(word[1]));
    const auto program = std::filesystem::absolute(word[0]).string();
    const auto folder =
        std::filesystem::temp_directory_path() / ("tally_minimal_" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    std::filesystem::current_path(folder);
    int failed = 0;
    for (int i = 1; i <= 40; ++i) {
        std::cout << i << ": " << std::flush;
        const int rc = std::system(("'" + program + "' " + std::to_string(i)).c_str());
        if (rc != 0 && rc != 256) std::cout << "crashed with status " << rc << std::endl;
        failed += rc != 0;
    }
    std::filesystem::current_path("/");
    std::filesystem::remove_all(folder);
    std::cout << 40 - failed << " of 40 cases are right, rejected or a documented limit" << std::endl;
    return failed ? 1 : 0;
}
