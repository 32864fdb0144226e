// Profile: where the time of each operation goes, and its bytes.
//
//     Profile profile;
//     for (...) { load(); profile.mark("load"); model(x).backward(); step(); profile.mark("step"); }
//     std::cout << to_string(profile);
//     profile.write_chrome_trace("window.json");   // for chrome://tracing or ui.perfetto.dev
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tally/autograd/node.hpp"
#include "tally/autograd/observer.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

// Looks on while it lives. The engine says when an operation is finished, not when it begins: the time of
// an operation is what has passed since the event before it, so what a program does between two
// operations is counted with the second, unless mark() sets it apart. The time of a rule is its own: what
// it records and sweeps itself, as a checkpoint does, counts there. On a GPU this is the time of the
// host, which only launches.
class Profile final : Observer {
public:
    using Clock = std::function<std::uint64_t()>;  // in nanoseconds

    struct Row {
        std::string name;
        std::uint64_t calls = 0, pulls = 0;       // computed; its rule called
        std::uint64_t forward = 0, backward = 0;  // nanoseconds
        std::size_t made = 0;  // bytes of results, as the ledger counts them; none for a view of an operand
        std::size_t kept = 0;  // bytes that were not kept already
        bool marked = false;   // not an operation: what mark() has set apart
        std::uint64_t together() const { return forward + backward; }
    };

    explicit Profile(Device device = Device::cpu, Clock clock = steady);

    // What has passed since the last event belongs to no operation.
    void mark(const std::string& name);

    std::vector<Row> rows() const;  // what took longest comes first
    // From the beginning to the last event, without what this profile itself took.
    std::uint64_t nanoseconds() const { return last_ - begin_ - own_time_; }
    std::uint64_t between() const;  // of these: in none of the rows, such as what passes before a sweep

    // One event for each operation and each rule, and the live bytes after it, by class.
    std::string chrome_trace() const;
    void write_chrome_trace(const std::string& path) const;
    static constexpr std::size_t most_events = 1 << 17;  // of a trace; later ones are only summed
    std::uint64_t left_out() const { return left_out_; }

private:
    struct Event {
        std::size_t row;
        bool forward;
        std::uint64_t begin, end;
        std::string where;
        Shape shape;
        std::size_t made, kept;
        std::size_t in_use_by[memory::detail::memory_classes];
    };
    struct Open {  // a rule that is running
        std::uint64_t node;
        std::size_t row;
        std::uint64_t begin;
    };

    void on_forward(const ForwardEvent& operation) override;
    void before_backward(const Node& node) override;
    void after_backward(const Node& node) override;

    std::size_t row_of(const std::string& name, bool marked = false);
    std::uint64_t passed();  // since the last event
    void trace(Event event);
    static std::uint64_t steady();

    Device device_;
    Clock clock_;
    std::vector<Row> rows_;
    std::map<std::pair<bool, std::string>, std::size_t> places_;
    std::vector<Open> open_;
    std::vector<Event> events_;
    std::uint64_t left_out_ = 0;
    std::uint64_t begin_, last_, own_time_ = 0;
    const ObserverScope scope_{*this};
};

std::string to_string(const Profile& profile);  // a table

}  // namespace tally
