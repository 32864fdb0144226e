// Tests Profile with a simulated clock. Every nanosecond and every saved byte is counted once, and the trace
// is valid JSON.
#include "tally/tools/profile.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "autograd/random_graph.hpp"
#include "autograd/support.hpp"
#include "catch.hpp"
#include "folder.hpp"
#include "tally/tools/scope_name.hpp"
#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>
#endif

using namespace tally;
using namespace tally::test;

namespace {

std::uint64_t now = 0;  // the time of the simulated clock in nanoseconds
std::uint64_t simulated_clock() { return now; }
std::uint64_t clock_with_steps() { return now += 7; }

Tensor weights(const Shape& shape = {8, 16}) { return parameter(Array<float>::full(shape, 0.5f)); }

// Returns an operation whose forward and backward functions take the given numbers of nanoseconds.
Tensor timed_operation(const std::string& name, std::uint64_t forward, std::uint64_t backward, Tensor x) {
    return custom(
        name,
        [=](const Array<float>& in) {
            now += forward;
            return in.clone();
        },
        [=](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&, const Array<float>&) {
            now += backward;
            to.add(0, dy);
        },
        std::move(x));
}

Profile::Row row(const Profile& profile, const std::string& name) {
    for (const Profile::Row& each : profile.rows())
        if (each.name == name) return each;
    FAIL("no row " + name);
    return {};
}

}  // namespace

TEST_CASE("Profile: calls are counted, and durations of operations and backward functions are added") {
    const Tensor w = weights();
    Profile profile(Device::cpu, simulated_clock);
    for (int i = 0; i < 3; ++i) {
        Tensor y = timed_operation("slow", 100, 1000, timed_operation("fast", 2, 3, w));
        now += 50;  // counts as time of the next event
        y = sum(std::move(y));
        now += 70;
        profile.mark("load");
        now += 11;
        y.backward();
    }
    CHECK(row(profile, "slow").calls == 3);
    CHECK(row(profile, "slow").backward_calls == 3);
    CHECK(row(profile, "slow").forward == 300);
    CHECK(row(profile, "slow").backward == 3000);
    CHECK(row(profile, "fast").forward == 6);
    CHECK(row(profile, "fast").backward == 9);
    CHECK(row(profile, "sum").forward == 150);
    CHECK(row(profile, "load").marked);
    CHECK(row(profile, "load").total() == 210);
    CHECK(profile.between() == 33);
    CHECK(profile.nanoseconds() == 300 + 3000 + 6 + 9 + 150 + 210 + 33);
    std::vector<std::string> names;
    for (const Profile::Row& each : profile.rows()) names.push_back(each.name);
    CHECK(names == std::vector<std::string>{"slow", "load", "sum", "fast"});
}

TEST_CASE("Profile: operations and backward passes inside a backward function have their own time") {
    const Tensor w = weights(), v = weights();
    const Profile profile(Device::cpu, simulated_clock);
    const Tensor y = custom(
        "outer", [](const Array<float>& x) { return x.clone(); },
        [&](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&, const Array<float>&) {
            now += 1;
            const Tensor z = timed_operation("inner", 20, 300, v);
            now += 4000;
            z.backward(dy);
            now += 50000;
            to.add(0, dy);
        },
        w);
    y.backward(w.value());
    CHECK(row(profile, "outer").backward == 54000);  // the nanosecond before 'inner' counts for 'inner'
    CHECK(row(profile, "inner").forward == 21);
    CHECK(row(profile, "inner").backward == 300);
    CHECK(profile.between() == 0);
}

TEST_CASE("Profile: it continues after a backward function that throws") {
    const Tensor w = weights();
    const Profile profile(Device::cpu, simulated_clock);
    const auto throws = [](GradInputs<Array<float>>, const Array<float>&, const Array<float>&,
                           const Array<float>&) { throw std::runtime_error("no"); };
    const auto copy = [](const Array<float>& x) { return x.clone(); };
    CHECK_THROWS_AS(sum(custom("throws", copy, throws, w)).backward(), std::runtime_error);
    const Tensor y = sum(timed_operation("fine", 10, 20, w));
    now += 5;
    y.backward();
    CHECK(row(profile, "throws").backward_calls == 1);
    CHECK(row(profile, "throws").backward == 0);
    CHECK(row(profile, "fine").backward == 20);
    CHECK(profile.between() == 5);
}

TEST_CASE("Profile: the end of a backward function whose begin was not observed does not end another one") {
    struct Throw : Observer {
        void before_backward(const Node& node) override {
            if (std::string(node.op()) == "tanh") throw std::runtime_error("no");
        }
    } throws;
    const Observer::Scope scope(throws);
    const Tensor w = weights();
    const Profile profile(Device::cpu, simulated_clock);
    const Tensor y = custom(
        "outer", [](const Array<float>& x) { return x.clone(); },
        [&](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&, const Array<float>&) {
            CHECK_THROWS_AS(tanh(w).backward(dy), std::runtime_error);
            now += 10;
            to.add(0, dy);
        },
        w);
    y.backward(w.value());
    CHECK(row(profile, "outer").backward_calls == 1);
    CHECK(row(profile, "outer").backward == 10);
    CHECK(row(profile, "tanh").backward_calls == 0);
}

TEST_CASE("Profile: one that starts inside a backward function observes only later events") {
    const Tensor w = weights();
    std::optional<Profile> inner;
    const Tensor y = custom(
        "outer", [](const Array<float>& x) { return x.clone(); },
        [&](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&, const Array<float>&) {
            inner.emplace(Device::cpu, simulated_clock);
            timed_operation("inside", 5, 6, w).backward(dy);
            to.add(0, dy);
        },
        tanh(w));
    y.backward(w.value());
    std::set<std::string> seen;
    for (const Profile::Row& each : inner->rows()) seen.insert(each.name);
    CHECK(seen == std::set<std::string>{"inside", "tanh"});
    CHECK(row(*inner, "inside").backward == 6);
    inner.reset();
    CHECK(instrumentation::detail::observer == nullptr);
}

TEST_CASE("Profile: rows and the time between them add up to the total without the profile's own time") {
    const std::uint64_t seed = GENERATE(range(1u, 21u));
    CAPTURE(seed);
    Random random(seed);
    RandomGraph graph(random, 4);
    Profile profile(Device::cpu, clock_with_steps);  // 7 ns pass between two calls of the clock
    const std::size_t saved = in_use(MemoryClass::saved);
    graph.grow(random.whole(1, 20));
    Tensor loss = graph.loss();
    std::size_t kept = 0;
    for (const Profile::Row& each : profile.rows()) kept += each.saved_bytes;
    CHECK(kept == in_use(MemoryClass::saved) - saved);
    loss.backward();
    profile.mark("end");
    std::uint64_t time = profile.between(), events = 0;
    for (const Profile::Row& each : profile.rows()) {
        CHECK(each.forward == 7 * each.calls);
        CHECK(each.backward == 7 * each.backward_calls);
        time += each.total();
        events += each.calls + each.backward_calls;
    }
    CHECK(time == profile.nanoseconds());
    CHECK(profile.between() == 7 * (events - row(profile, "end").calls - [&] {
                                   std::uint64_t calls = 0;
                                   for (const Profile::Row& each : profile.rows())
                                       if (!each.marked) calls += each.calls;
                                   return calls;
                               }()));  // the clock is read once before each backward function
}

TEST_CASE("Profile: the profile's own time counts for nothing") {
    const Tensor w = weights();
    int readings = 0;
    const auto clock_with_own_time = [&] {
        return now += ++readings % 2 == 0 ? 5 : 1000;
    };  // the time between the two readings is spent by Profile itself
    Profile profile(Device::cpu, clock_with_own_time);
    tanh(w);
    tanh(w);
    profile.mark("end");
    CHECK(row(profile, "tanh").forward == 10);
    CHECK(row(profile, "end").forward == 5);
    CHECK(profile.nanoseconds() == 15);
}

TEST_CASE("Profile: `made` has the bytes of new results, and 0 for a view") {
    const Tensor w = weights();
    const Profile profile(Device::cpu, simulated_clock);
    const Tensor y = tanh(reshape(w + 1, {16, 8}));
    tanh(constant(w.value()));
    CHECK(row(profile, "add_number").result_bytes == 512);
    CHECK(row(profile, "reshape").result_bytes == 0);
    CHECK(row(profile, "tanh").result_bytes == 1024);
    CHECK(row(profile, "tanh").saved_bytes == 512);
}

TEST_CASE("to_string(Profile): the table has a line for each operation, the time between, and the sum") {
    const Tensor w = weights();
    Profile profile(Device::cpu, simulated_clock);
    const Tensor y = timed_operation("slow", 1500000, 2500000, w);
    now += 500000;
    y.backward(w.value());
    now += 500000;
    profile.mark("step");
    CHECK(to_string(profile) ==
          "operation  calls   forward  backward  together    share   made   kept\n"
          "slow           1    1.5 ms    2.5 ms    4.0 ms   80.0 %  512 B  512 B\n"
          "step           1  500.0 us            500.0 us   10.0 %\n"
          "(between)         500.0 us            500.0 us   10.0 %\n"
          "all            1    2.5 ms    2.5 ms    5.0 ms  100.0 %  512 B  512 B\n");
}

TEST_CASE("Profile: the number of trace events is limited, and rows continue to count") {
    const Scalar x = constant(1.0);
    int readings = 0;
    const Profile profile(Device::cpu, [&] { return now += ++readings % 2 == 0 ? 5 : 1000; });
    for (std::size_t i = 0; i < Profile::most_events + 3; ++i) x + x;
    CHECK(profile.left_out() == 3);
    CHECK(row(profile, "add").forward == 5 * (Profile::most_events + 3));  // without Profile's own time
    CHECK(row(profile, "add").calls == Profile::most_events + 3);
}

#if __has_include(<nlohmann/json.hpp>)
TEST_CASE("Profile::chrome_trace: JSON has an event for each operation and backward function") {
    const Tensor w = weights();
    Profile profile(Device::cpu, simulated_clock);
    const std::uint64_t begin = now;
    std::vector<std::size_t> live;
    {
        const ScopeName here("a \"place\" \\ here");
        const Tensor y = timed_operation("slow \"one\"\n", 1234567, 89, w);
        live.push_back(in_use(MemoryClass::saved));
        y.backward(w.value());
        live.push_back(in_use(MemoryClass::saved));
    }
    now += 1000;
    profile.mark("step");
    const Folder folder;
    profile.write_chrome_trace(folder / "trace.json");
    std::ifstream file(folder / "trace.json");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CHECK(text == profile.chrome_trace());
    const auto events = nlohmann::json::parse(text).at("traceEvents");
    std::vector<nlohmann::json> complete, counters;
    for (const auto& event : events) {
        if (event.at("ph") == "X") complete.push_back(event);
        if (event.at("ph") == "C") counters.push_back(event);
        CHECK(event.at("pid") == 1);
    }
    REQUIRE(complete.size() == 3);
    REQUIRE(counters.size() == 3);
    CHECK(complete[0].at("name").get<std::string>().find("slow \"one\"") == 0);
    CHECK(complete[0].at("cat") == "forward");
    CHECK(complete[0].at("ts").get<double>() == 0);
    CHECK(complete[0].at("dur").get<double>() == 1234.567);
    CHECK(complete[0].at("args").at("shape") == "(8, 16)");
    CHECK(complete[0].at("args").at("kept") == 512);
    CHECK_THAT(complete[0].at("args").at("where").get<std::string>(), contains(" a \"place\" \\ here"));
    CHECK(complete[1].at("cat") == "backward");
    CHECK(complete[1].at("ts").get<double>() == 1234.567);
    CHECK(complete[1].at("dur").get<double>() == 0.089);
    CHECK(complete[2].at("cat") == "program");
    CHECK(complete[2].at("dur").get<double>() == 1);
    CHECK(counters[0].at("args").at("saved") == live[0]);
    CHECK(counters[1].at("args").at("saved") == live[1]);
    CHECK(counters[2].at("ts").get<double>() == static_cast<double>(now - begin) / 1000);
}

TEST_CASE("Profile::chrome_trace: events are nested or disjoint") {
    const std::uint64_t seed = GENERATE(range(1u, 11u));
    CAPTURE(seed);
    Random random(seed);
    RandomGraph graph(random, 3);
    const Profile profile(Device::cpu, clock_with_steps);
    graph.grow(random.whole(1, 15));
    const Tensor w = weights({3, 3});
    const Tensor nested = custom(
        "outer", [](const Array<float>& x) { return x.clone(); },
        [&](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&, const Array<float>&) {
            tanh(w).backward(dy);
            to.add(0, dy);
        },
        w);
    (graph.loss() + sum(nested)).backward();
    std::vector<std::pair<std::int64_t, std::int64_t>> spans;
    const auto trace = nlohmann::json::parse(profile.chrome_trace());
    for (const auto& event : trace.at("traceEvents")) {
        if (event.at("ph") != "X") continue;
        const auto in_ns = [&](const char* what) {
            return static_cast<std::int64_t>(event.at(what).get<double>() * 1000 + 0.5);
        };
        spans.emplace_back(in_ns("ts"), in_ns("ts") + in_ns("dur"));
    }
    int inside = 0;
    for (const auto& [a, b] : spans)
        for (const auto& [c, d] : spans) {
            const bool apart = b <= c || d <= a, a_holds_c = a <= c && d <= b, c_holds_a = c <= a && b <= d;
            CHECK((apart || a_holds_c || c_holds_a));
            inside += a <= c && d < b;
        }
    CHECK(inside >= 2);  // tanh's forward and backward function inside "outer"
}
#endif
