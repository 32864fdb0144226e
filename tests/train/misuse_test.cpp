// Tests every call that changes a training run, in every state of a window, a graph or a checkpoint. The
// result must be right, or the call or a later call throws an Error. rule() returns the expected outcome
// without using the library. docs/misuse.md shows all outcomes.
#include <algorithm>
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

enum State { fresh, open, adding, full, broken, finished, destroyed, open_after_backward, states };
const char* const state_names[] = {"fresh",  "open",     "in add()",  "full",
                                   "broken", "finished", "destroyed", "by after_backward()"};

// A letter is the expected outcome of a call in one state: r (right), x (rejected with an Error) or n
// (noticed by a later Error). After the call the test discards a broken window and replaces a destroyed
// window, adds micro-batches until there are two, and calls finish(). `graph` has letters for calls after the
// forward pass, inside a backward function, after the backward pass, and inside a checkpointed function. The
// letter "-" marks a call that would record further operations, which checkpoint_misuse_test.cpp tests.
struct Rule {
    std::string window, graph;
};

const Rule& rule(Kind kind) {
    static const std::map<Kind, Rule> rules{
        {Kind::harmless, {"rrrrrrrr", "rrrrr"}},
        {Kind::queries_gradient, {"rrrrrrrr", "rrr--"}},
        // A window that locks its parameters rejects these calls, and a backward pass always rejects them. In
        // other states, no gradient exists or the value may change.
        {Kind::gradient, {"rxxxxrrx", "rxrrx"}},
        {Kind::steps, {"rxxxxrrx", "rxrrx"}},
        {Kind::value, {"rxxxxrrx", "nxrrx"}},          // recorded: backward() finds a changed saved value
        {Kind::swaps_average, {"nxxxxnnx", "nxrrx"}},  // swap() must be called again before an update
        // add() finds a gradient that an earlier backward pass has written. Inside a backward function, the
        // gradient belongs to the micro-batch. The method after_backward() expects this gradient.
        {Kind::runs_backward, {"nxrxxnnr", "rrr--"}},
        {Kind::another_window, {"rxxxxrrx", ""}},
        {Kind::always_rejected, {"xxxxxxxx", ""}},
        {Kind::adds, {"nnxxxnrx", ""}},  // the micro-batch counts, so the window gets one more than planned
        {Kind::reports_backward, {"xxxxxxrx", ""}},  // rejected, because no backward pass has run
        {Kind::finishes, {"xrxnxxrr", ""}},          // full: the program's finish() finds an empty window
        {Kind::flushes, {"rrxnxrrr", ""}},
        {Kind::discards, {"rrxnrrrr", ""}},
        {Kind::begins_pass, {"nrxrrnrr", ""}},  // if one micro-batch has a ForwardPass, all need one
        {Kind::plans, {"nnrrnnrn", ""}},        // one micro-batch is planned, but two are added
        {Kind::saves, {"rrxrxrrr", ""}},
        {Kind::loads, {"rrxnrrrr", ""}},
        {Kind::once, {"rrxrxrrr", ""}},
    };
    return rules.at(kind);
}

struct Outcome {
    char what;  // r, x, n or - as above, or S for silently wrong
    std::string message;
};

std::string message_of(const std::function<void()>& attempt) {
    try {
        attempt();
    } catch (const Error& error) {
        // The messages in the table do not name a device.
        return std::regex_replace(error.what(), std::regex(" on cuda"), "");
    }
    return "";
}

bool needs_window(const Call& call) {
    return call.name.starts_with("Window::") || call.name == "add_cached" ||
           call.name == "MicroBatchSize::update";
}

std::string expected(const Call& call) {
    std::string all = rule(call.kind).window;
    if (needs_window(call)) all[destroyed] = '-';
    return all;
}

// Returns a copy of x. The backward function of the copy calls `call`.
Tensor64 call_in_backward(const std::function<void()>& call, const Tensor64& x) {
    return custom(
        "calling", [](const A& value) { return value.clone(); },
        [call](GradInputs<A> to, const A& dy, const A&, const A&) {
            call();
            to.add(0, dy);
        },
        x);
}

// Returns true if the call finds no gradient in the parameter. While a window with exact sums adds a
// micro-batch, the window has not yet added the gradient to the parameter.
bool finds_no_gradient(const Call& call, int state) {
    return Program::how == Sum::exact && state == adding &&
           std::set<std::string>{"Var::update", "sgd_step", "clip_grad_norm"}.contains(call.name);
}

Outcome observe(const Call& call, State state) {
    if (state == destroyed && needs_window(call)) return {'-', ""};
    if (state == open_after_backward && Program::how == Sum::exact) return {'-', ""};
    Program program;
    Plain plain;
    program.open();
    const auto add = [&](const Numbers& x) {
        if (state == open_after_backward) {
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
    std::string rejected;
    const auto run_call = [&] {
        rejected = message_of([&] { call.does(program); });
        if (rejected.empty() && !finds_no_gradient(call, state)) call.means(plain);
    };
    if (state != fresh) add(first_items);
    if (state == full || state == finished) add(second_items);
    if (state == finished) finish();
    if (state == broken) message_of([&] { program.window->add_in_passes([] { throw Error("broken"); }); });
    if (state == destroyed) {
        program.window.reset();
        plain.reset();
        message_of([&] { program.sgd.step(); });  // the first step() after ~Window throws
    }

    if (state != adding) run_call();
    const std::string noticed = message_of([&] {  // now the program continues
        if (state == destroyed) program.open();
        if (state == broken) {
            program.window->discard();
            plain.reset();
        }
        if (state == fresh || state == broken || state == finished || state == destroyed) add(first_items);
        if (state == adding) {
            Loss<A> loss = program.loss(second_items);
            loss.sum = call_in_backward(run_call, loss.sum);
            program.window->add(loss);
            plain.add(second_items);
        } else if (state != full) {
            add(second_items);
        }
        finish();
    });
    const bool same = program.w.item() == plain.w;
    if (!noticed.empty()) return {rejected.empty() ? 'n' : 'S', noticed};
    if (!same) return {'S', rejected};
    return {rejected.empty() ? 'r' : 'x', rejected};
}

// ---- states of a graph without a window ----

enum Moment { recorded, in_backward, after_backward_pass, first_run, second_run, moments };
const char* const moment_names[] = {"recorded", "in backward", "after backward", "first run", "again"};

// Computes the gradient of the loss x w²/2 + 8 w. `call` may run inside the function w², whose backward
// function runs last.
Outcome observe(const Call& call, Moment moment) {
    if (rule(call.kind).graph[moment] == '-') return {'-', ""};
    Program program;
    Plain plain;
    std::string rejected;
    const auto run_call = [&] {
        rejected = message_of([&] { call.does(program); });
        if (rejected.empty()) call.means(plain);
    };
    const auto run_backward = [&](bool with_call) {
        int runs = 0;
        const auto square = [&, with_call](const Tensor64& x) {
            ++runs;
            if (with_call && moment == first_run && runs == 1) run_call();
            if (with_call && moment == second_run && runs == 2) run_call();
            return matmul(x, program.w * program.w);
        };
        const Tensor64 x = constant(number(4));
        Tensor64 y = moment == first_run || moment == second_run ? checkpoint(square, x) : square(x);
        if (with_call && moment == in_backward) y = call_in_backward(run_call, y);
        y = sum(y * 0.5) + sum(program.w * 8.);
        const double w = plain.w;
        if (with_call && moment == recorded) run_call();
        y.backward();
        plain.gradient += w * 4 + 8;
    };
    const std::string noticed = message_of([&] {
        run_backward(true);
        if (moment == after_backward_pass) {
            run_call();
            run_backward(false);
        }
    });
    const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-5; };  // clipping rounds numbers
    const bool same = near(program.w.item(), plain.w) && program.w.has_grad() &&
                      near(program.w.grad().item(), plain.gradient);
    if (!noticed.empty()) return {rejected.empty() ? 'n' : 'S', noticed};
    if (!same)
        return {'S', rejected + " w " + std::to_string(program.w.item()) + " for " + std::to_string(plain.w) +
                         ", gradient for " + std::to_string(plain.gradient)};
    return {rejected.empty() ? 'r' : 'x', rejected};
}

}  // namespace

namespace {

// A Table collects the outcomes of all calls, and lists unexpected outcomes. Calls with the same outcomes
// have one common row.
struct Table {
    struct Row {
        std::string names, outcomes;
    };
    std::vector<Row> rows;
    std::string differs;
    int cells = 0;

    template <class At, class Expected>
    void add(const Call& call, int columns, const char* const* names, At at, const Expected& wanted) {
        const std::map<char, std::string> words{
            {'r', "right"}, {'x', "rejected"}, {'n', "noticed"}, {'-', "-"}, {'S', "WRONG"}};
        std::string found, outcomes, details;
        for (int i = 0; i < columns; ++i) {
            const Outcome outcome = at(i);
            found += outcome.what;
            cells += outcome.what != '-';
            outcomes += " | " + words.at(outcome.what);
            if (outcome.what != wanted[static_cast<std::size_t>(i)])
                details += "\n    " + std::string(names[i]) + ": " + outcome.what + " " + outcome.message;
        }
        const std::string name = "`" + call.name + "`";
        const auto row = std::ranges::find(rows, outcomes, &Row::outcomes);
        if (row == rows.end())
            rows.push_back({name, outcomes});
        else
            row->names += ", " + name;
        if (found != wanted) differs += call.name + ": " + found + ", not " + wanted + details + "\n";
    }

    std::string text() const {
        std::string all;
        for (const Row& row : rows) all += "| " + row.names + row.outcomes + " |\n";
        return all;
    }
};

std::string head(int columns, const char* const* names) {
    std::string line = "| calls |", rule = "|---|";
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

// Returns the names of all public functions of a class, or of all free functions of a header.
std::set<std::string> functions(const std::string& header, const std::string& type) {
    std::istringstream lines(contents(TALLY_SOURCE_DIR "/src/" + header));
    std::set<std::string> names;
    bool inside = type.empty(), is_public = type.empty();
    const std::string indent(type.empty() ? 0 : 4, ' ');
    const std::regex heads("^(?:template <.*> )?(class|struct) (?:\\[\\[nodiscard\\]\\] )?" + type +
                           "( final)?( :.*)? \\{$"),
        named("^" + indent + "[A-Za-z\\[][^=(]*?[ &*>]([a-z_]+)\\(.*");
    std::smatch found;
    for (std::string line; std::getline(lines, line);) {
        if (!type.empty() && std::regex_match(line, found, heads)) {
            inside = true;
            is_public = found[1] == "struct";
        } else if (inside && !type.empty() && line == "};") {
            inside = false;
        } else if (line == "public:") {
            is_public = true;
        } else if (line == "private:" || line == "protected:") {
            is_public = false;
        } else if (inside && is_public && std::regex_match(line, found, named)) {
            names.insert(found[1]);
        }
    }
    return names;
}

}  // namespace

TEST_CASE("misuse table: every public function that changes something is listed") {
    std::set<std::string> known;
    for (const Call& call : calls()) {
        const std::size_t at = call.name.rfind("::");
        const std::string name = at == std::string::npos ? call.name : call.name.substr(at + 2);
        known.insert(name.substr(0, name.find_first_of(" (")));
    }
    struct Header {
        std::string file, type;
        std::set<std::string> others;  // functions that only read, or that only the library calls
    };
    const std::vector<Header> headers{
        {"autograd/var.hpp",
         "Var",
         {"bool", "value", "item", "shape", "requires_grad", "has_grad", "grad", "node", "is_last_handle",
          "take_node", "node_or_throw", "run_backward", "require_own_thread", "t", "detach"}},
        {"train/window.hpp",
         "Window",
         {"empty", "full", "micro_batches", "planned_micro_batches", "updates", "items", "optimizer",
          "options", "noise", "share", "validate_state"}},
        {"train/optimizer.hpp",
         "Optimizer",
         {"unfinished", "require_finished", "require_current", "note_variables", "note_effects",
          "had_effects", "state_size", "name", "parameters", "learning_rate", "schedule_learning_rate",
          "drop_unused_state", "save", "validate_state"}},
        {"../lessons/adam_a.hpp", "AdamA", {}},
        {"train/average.hpp", "MovingAverage", {"updates", "value", "swapped", "save", "validate_state"}},
        {"train/clip.hpp", "", {"grad_norm", "count_non_finite", "measure_gradients", "clip_measured"}},
        {"train/module.hpp",
         "Module",
         {"list", "parameters", "named_parameters", "save_weights", "place", "saved_effect", "checkpoint",
          "stream"}},
        {"autograd/sgd_step.hpp", "", {}},
        {"train/grad_cache.hpp", "", {}},
        {"train/micro_batch.hpp", "MicroBatchSize", {"now", "retries"}},
        // The objects of these classes own a window.
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

TEST_CASE("misuse: every call is right, rejected or noticed, and never silently wrong") {
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
    CHECK(windows.text().find("WRONG") == std::string::npos);

    const std::string path = TALLY_SOURCE_DIR "/docs/misuse.md";
    const std::string committed = contents(path), mark = "<!-- generated -->\n";
    const std::size_t at = committed.find(mark);
    REQUIRE(at != std::string::npos);
    const std::string now = committed.substr(0, at) + mark + "\n## In each state of a window\n\n" +
                            head(states, state_names) + windows.text() + "\n## In each state of a graph\n\n" +
                            head(moments, moment_names) + graphs.text();
    if (std::getenv("TALLY_WRITE_MISUSE"))
        std::ofstream(path) << now;
    else
        CHECK((now == committed));  // if not, set TALLY_WRITE_MISUSE=1 and review the difference
}

TEST_CASE("misuse: windows with exact sums have the same outcomes") {
    const detail::ScopedValue<Sum> exact(Program::how, Sum::exact);
    Table windows;
    for (const Call& call : calls()) {
        std::string wanted = expected(call);
        wanted[open_after_backward] = '-';
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
