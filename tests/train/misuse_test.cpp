// Every call that changes something, in every state of a window, of a graph and of a checkpoint: right,
// refused at once or noticed later, and never wrong in silence. What must come out is written down here by
// rule, apart from what does; docs/misuse.md shows it.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tally/autograd/ops/custom.hpp"
#include "tally/checkpoint/checkpoint.hpp"
#include "train/misuse_calls.hpp"

namespace tally::test {
namespace {

using namespace misuse;

// ---- states of a window ----

enum State { fresh, open, adding, full, broken, finished, dead, swept_open, states };
const char* const state_names[] = {"fresh",  "open",     "in add()", "full",
                                   "broken", "finished", "dead",     "by after_backward()"};

// What must come of a call in these states: r(ight), refused (x), n(oticed). Then the program goes on
// with what is missing to two micro-batches, and finishes; a broken window it discards first, a dead one
// it opens anew.
//
// And of a call between a forward and its backward, inside a rule of it, after it, and inside a checkpointed
// function; - there: other operations than the first time, which checkpoint_misuse_test.cpp has.
struct Rule {
    std::string window, graph;
};

const Rule& rule(Kind kind) {
    static const std::map<Kind, Rule> rules{
        {Kind::harmless, {"rrrrrrrr", "rrrrr"}},
        {Kind::asks, {"rrrrrrrr", "rrr--"}},
        // The window's while it holds them; else there is no gradient, or the value may change. In a graph,
        // never while it is on its way.
        {Kind::gradient, {"rxxxxrrx", "rxrrx"}},
        {Kind::steps, {"rxxxxrrx", "rxrrx"}},
        {Kind::value, {"rxxxxrrx", "nxrrx"}},  // recorded: a rule has saved the value
        {Kind::lends, {"nxxxxnnx", "nxrrx"}},  // no update before swap() is called again
        // add() finds a gradient that is not its own; inside a rule it belongs to the micro-batch;
        // after_backward() is told.
        {Kind::sweeps, {"nxrxxnnr", "rrr--"}},
        {Kind::another_window, {"rxxxxrrx", ""}},
        {Kind::refused_always, {"xxxxxxxx", ""}},
        {Kind::adds, {"nnxxxnrx", ""}},      // counted; but then one more comes than was planned
        {Kind::tells, {"xxxxxxrx", ""}},     // of no backward()
        {Kind::finishes, {"xrxnxxrr", ""}},  // full: the second finish() has nothing
        {Kind::flushes, {"rrxnxrrr", ""}},
        {Kind::discards, {"rrxnrrrr", ""}},
        {Kind::passes, {"nrxrrnrr", ""}},  // if one micro-batch has a pass, the next one needs one, too
        {Kind::plans, {"nnrrnnrn", ""}},   // for one, given two
        {Kind::saves, {"rrxrxrrr", ""}},
        {Kind::loads, {"rrxnrrrr", ""}},
        {Kind::once, {"rrxrxrrr", ""}},
    };
    return rules.at(kind);
}

struct Outcome {
    char what;  // r, x, n, -, or S: wrong in silence
    std::string says;
};

std::string message_of(const std::function<void()>& attempt) {
    try {
        attempt();
    } catch (const Error& error) {
        return std::regex_replace(error.what(), std::regex(" on cuda"), "");  // the same table everywhere
    }
    return "";
}

bool needs_window(const Call& call) {
    return call.name.starts_with("Window::") || call.name == "add_cached" ||
           call.name == "MicroBatchSize::update";
}

std::string expected(const Call& call) {
    std::string all = rule(call.kind).window;
    if (needs_window(call)) all[dead] = '-';
    return all;
}

// x, and the call from inside its rule.
Tensor64 calling_inside(const std::function<void()>& call, const Tensor64& x) {
    return custom(
        "calling", [](const A& value) { return value.clone(); },
        [call](GradInputs<A> to, const A& dy, const A&, const A&) {
            call();
            to.add(0, dy);
        },
        x);
}

// What these would change has not come yet of the micro-batch that an exact window is adding: like a running
// one's first.
bool finds_no_gradient(const Call& call, int state) {
    return Program::how == Sum::exact && state == adding &&
           std::set<std::string>{"Var::update", "sgd_step", "clip_grad_norm"}.contains(call.name);
}

Outcome observe(const Call& call, State state) {
    if (state == dead && needs_window(call)) return {'-', ""};
    if (state == swept_open && Program::how == Sum::exact) return {'-', ""};  // has no after_backward()
    Program program;
    Plain plain;
    program.open();
    const auto add = [&](const Numbers& x) {
        if (state == swept_open) {
            program.loss(x).sum.backward();
            program.window->after_backward(static_cast<double>(x.size()));
        } else {
            program.window->add(program.loss(x));
        }
        plain.add(x);
    };
    const auto finish = [&] {
        program.window->finish();
        plain.finish();
    };
    std::string refused;
    const auto call_it = [&] {
        refused = message_of([&] { call.does(program); });
        if (refused.empty() && !finds_no_gradient(call, state)) call.means(plain);
    };
    if (state != fresh) add(first_items);
    if (state == full || state == finished) add(second_items);
    if (state == finished) finish();
    if (state == broken) message_of([&] { program.window->transaction([] { throw Error("broken"); }); });
    if (state == dead) {
        program.window.reset();
        plain.reset();
        message_of([&] { program.sgd.step(); });  // which says so, once
    }

    if (state != adding) call_it();
    const std::string noticed = message_of([&] {  // and the program goes on
        if (state == dead) program.open();
        if (state == broken) {
            program.window->discard();
            plain.reset();
        }
        if (state == fresh || state == broken || state == finished || state == dead) add(first_items);
        if (state == adding) {
            Loss<A> loss = program.loss(second_items);
            loss.sum = calling_inside(call_it, loss.sum);
            program.window->add(loss);
            plain.add(second_items);
        } else if (state != full) {
            add(second_items);
        }
        finish();
    });
    const bool same = program.w.item() == plain.w;
    if (!noticed.empty()) return {refused.empty() ? 'n' : 'S', noticed};
    if (!same) return {'S', refused};
    return {refused.empty() ? 'r' : 'x', refused};
}

// ---- states of a graph, without a window ----

enum Moment { recorded, in_sweep, spent, first_run, second_run, moments };
const char* const moment_names[] = {"recorded", "being swept", "spent", "first run", "again"};

// The gradient is that of x w²/2 + 8 w, where the call may come from inside w², whose gradient comes last.
Outcome observe(const Call& call, Moment moment) {
    if (rule(call.kind).graph[moment] == '-') return {'-', ""};
    Program program;
    Plain plain;
    std::string refused;
    const auto call_it = [&] {
        refused = message_of([&] { call.does(program); });
        if (refused.empty()) call.means(plain);
    };
    const auto sweep = [&](bool with_call) {
        int runs = 0;
        const auto square = [&, with_call](const Tensor64& x) {
            ++runs;
            if (with_call && moment == first_run && runs == 1) call_it();
            if (with_call && moment == second_run && runs == 2) call_it();
            return matmul(x, program.w * program.w);
        };
        const Tensor64 x = constant(number(4));
        Tensor64 y = moment == first_run || moment == second_run ? checkpoint(square, x) : square(x);
        if (with_call && moment == in_sweep) y = calling_inside(call_it, y);
        y = sum(y * 0.5) + sum(program.w * 8.);
        const double w = plain.w;
        if (with_call && moment == recorded) call_it();
        y.backward();
        plain.gradient += w * 4 + 8;
    };
    const std::string noticed = message_of([&] {
        sweep(true);
        if (moment == spent) {
            call_it();
            sweep(false);
        }
    });
    const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-5; };  // clipping rounds
    const bool same = near(program.w.item(), plain.w) && program.w.has_grad() &&
                      near(program.w.grad().item(), plain.gradient);
    if (!noticed.empty()) return {refused.empty() ? 'n' : 'S', noticed};
    if (!same)
        return {'S', refused + " w " + std::to_string(program.w.item()) + " for " + std::to_string(plain.w) +
                         ", gradient for " + std::to_string(plain.gradient)};
    return {refused.empty() ? 'r' : 'x', refused};
}

}  // namespace

namespace {

// A table of the outcome of each call, and those that are not as expected.
struct Table {
    std::string text, differs;
    int cells = 0;

    template <class At, class Expected>
    void add(const Call& call, int columns, const char* const* names, At at, const Expected& wanted) {
        const std::map<char, std::string> words{
            {'r', "right"}, {'x', "refused"}, {'n', "noticed"}, {'-', "-"}, {'S', "WRONG"}};
        std::string found, line = "| `" + call.name + "` |", said;
        for (int i = 0; i < columns; ++i) {
            const Outcome outcome = at(i);
            found += outcome.what;
            cells += outcome.what != '-';
            line += " " + words.at(outcome.what) + " |";
            if (outcome.what != wanted[static_cast<std::size_t>(i)])
                said += "\n    " + std::string(names[i]) + ": " + outcome.what + " " + outcome.says;
        }
        text += line + "\n";
        if (found != wanted) differs += call.name + ": " + found + ", not " + wanted + said + "\n";
    }
};

std::string head(int columns, const char* const* names) {
    std::string line = "| call |", rule = "|---|";
    for (int i = 0; i < columns; ++i) {
        line += " " + std::string(names[i]) + " |";
        rule += "---|";
    }
    return line + "\n" + rule + "\n";
}

std::string contents(const std::string& path) {
    std::ifstream in(path);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
}

}  // namespace

namespace {

// The names of a class's public functions, or of a header's functions at its outermost level.
std::set<std::string> functions(const std::string& header, const std::string& type) {
    std::istringstream lines(contents(TALLY_SOURCE_DIR "/src/" + header));
    std::set<std::string> names;
    bool inside = type.empty(), open_to_all = type.empty();
    const std::string indent(type.empty() ? 0 : 4, ' ');
    const std::regex heads("^(?:template <.*> )?(class|struct) (?:\\[\\[nodiscard\\]\\] )?" + type +
                           "( final)?( :.*)? \\{$"),
        named("^" + indent + "[A-Za-z\\[][^=(]*?[ &*>]([a-z_]+)\\(.*");
    std::smatch found;
    for (std::string line; std::getline(lines, line);) {
        if (!type.empty() && std::regex_match(line, found, heads)) {
            inside = true;
            open_to_all = found[1] == "struct";
        } else if (inside && !type.empty() && line == "};") {
            inside = false;
        } else if (line == "public:") {
            open_to_all = true;
        } else if (line == "private:" || line == "protected:") {
            open_to_all = false;
        } else if (inside && open_to_all && std::regex_match(line, found, named)) {
            names.insert(found[1]);
        }
    }
    return names;
}

}  // namespace

TEST_CASE("The table of misuse knows every public function that changes something") {
    std::set<std::string> known;
    for (const Call& call : calls()) {
        const std::size_t at = call.name.rfind("::");
        const std::string name = at == std::string::npos ? call.name : call.name.substr(at + 2);
        known.insert(name.substr(0, name.find_first_of(" (")));
    }
    struct Header {
        std::string file, type;
        std::set<std::string> others;  // that read only, or are the library's own
    };
    const std::vector<Header> headers{
        {"autograd/var.hpp",
         "Var",
         {"bool", "value", "item", "shape", "requires_grad", "has_grad", "grad", "node", "is_last_handle",
          "into_node", "checked", "start", "check_thread", "t"}},
        {"train/window.hpp",
         "Window",
         {"empty", "full", "micro_batches", "planned_micro_batches", "updates", "items", "optimizer",
          "options", "noise", "share", "validate_state"}},
        {"train/optimizer.hpp",
         "Optimizer",
         {"unfinished", "expect_finished", "expect_current", "note_variables", "note_effects", "had_effects",
          "state_size", "name", "parameters", "learning_rate", "schedule_learning_rate", "drop_unused_state",
          "save", "validate_state"}},
        {"../lessons/adam_a.hpp", "AdamA", {}},
        {"train/average.hpp", "MovingAverage", {"updates", "value", "swapped", "save", "validate_state"}},
        {"train/clip.hpp", "", {"grad_norm", "count_non_finite", "measure_gradients", "clip_measured"}},
        {"autograd/sgd_step.hpp", "", {}},
        {"train/grad_cache.hpp", "", {}},
        {"train/micro_batch.hpp", "MicroBatchSize", {"now", "retries"}},
        // They have a window of their own.
        {"../lessons/accumulate.hpp",
         "Accumulate",
         {"announcement", "step", "flush", "begin_epoch", "window"}},
    };
    for (const Header& header : headers) {
        const std::set<std::string> found = functions(header.file, header.type);
        INFO(header.file << " " << header.type);
        CHECK_FALSE(found.empty());
        for (const std::string& name : found) {
            INFO(name);
            CHECK((known.contains(name) || header.others.contains(name)));
        }
        for (const std::string& name : header.others) {
            INFO(name << " is gone");
            CHECK(found.contains(name));
        }
    }
}

TEST_CASE("Misuse is refused or noticed and never wrong in silence") {
    Table windows, graphs;
    for (const Call& call : calls())
        windows.add(
            call, states, state_names, [&](int state) { return observe(call, static_cast<State>(state)); },
            expected(call));
    for (const Call& call : calls())
        if (!rule(call.kind).graph.empty() && !needs_window(call))
            graphs.add(
                call, moments, moment_names,
                [&](int moment) { return observe(call, static_cast<Moment>(moment)); },
                rule(call.kind).graph);
    INFO(windows.differs << graphs.differs);
    CHECK((windows.differs + graphs.differs).empty());
    CHECK(windows.text.find("WRONG") == std::string::npos);

    const std::string path = TALLY_SOURCE_DIR "/docs/misuse.md";
    const std::string committed = contents(path), mark = "<!-- generated -->\n";
    const std::size_t at = committed.find(mark);
    REQUIRE(at != std::string::npos);
    const std::string now = committed.substr(0, at) + mark + "\n## In each state of a window\n\n" +
                            head(states, state_names) + windows.text + "\n## In each state of a graph\n\n" +
                            head(moments, moment_names) + graphs.text;
    if (std::getenv("TALLY_WRITE_MISUSE"))
        std::ofstream(path) << now;
    else
        CHECK((now == committed));  // else write it anew, and look at what has changed
}

TEST_CASE("Misuse of a window with exact sums comes to the same") {
    const detail::ScopedValue<Sum> exact(Program::how, Sum::exact);
    Table windows;
    for (const Call& call : calls()) {
        std::string wanted = expected(call);
        wanted[swept_open] = '-';
        if (finds_no_gradient(call, adding)) wanted[adding] = 'r';
        windows.add(
            call, states, state_names, [&](int state) { return observe(call, static_cast<State>(state)); },
            wanted);
    }
    INFO(windows.differs);
    CHECK(windows.differs.empty());
    CHECK(windows.cells > 200);
}

}  // namespace tally::test
