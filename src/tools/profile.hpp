// A `Profile` measures the time and the bytes of each operation.
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

// A `Profile` observes the operations of its thread. The engine reports only the end of an operation, so the
// time of an operation begins at the previous event. Use mark() to separate the time of other work from the
// time of the next operation. The time of a backward function excludes nested operations and backward passes.
// With a GPU, a `Profile` measures only the time of the host, which launches kernels.
class Profile final : Observer {
public:
    using Clock = std::function<std::uint64_t()>;  // in nanoseconds

    struct Row {
        std::string name;
        std::uint64_t calls = 0, backward_calls = 0;  // of the operation and of its backward function
        std::uint64_t forward = 0, backward = 0;      // nanoseconds
        std::size_t result_bytes = 0;                 // 0 for a result that is a view of an operand
        std::size_t saved_bytes = 0;                  // saved for backward, and not saved before
        bool marked = false;  // true if the row is not an operation, but time that mark() has separated
        std::uint64_t total() const { return forward + backward; }
    };

    explicit Profile(Device device = Device::cpu, Clock clock = steady);

    // Adds the time since the last event to the row `name` instead of the next operation.
    void mark(const std::string& name);

    std::vector<Row> rows() const;  // the longest time first
    // Returns the time from the start of the Profile to the last event, without the overhead of the Profile.
    std::uint64_t nanoseconds() const { return last_ - begin_ - own_time_; }
    std::uint64_t between() const;  // nanoseconds that are in no row, such as those before a backward pass

    // Returns one event per operation and backward function, with the live bytes of each memory class.
    std::string chrome_trace() const;
    void write_chrome_trace(const std::string& path) const;
    static constexpr std::size_t most_events = 1 << 17;  // most in a trace; later events are only in rows()
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
    struct Open {  // a backward function that is running
        std::uint64_t node;
        std::size_t row;
        std::uint64_t begin;
    };

    void on_forward(const ForwardEvent& operation) override;
    void before_backward(const Node& node) override;
    void after_backward(const Node& node) override;

    std::size_t row_of(const std::string& name, bool marked = false);
    std::uint64_t passed();  // returns the time since the last event, and makes this the last event
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
    const Observer::Scope scope_{*this};
};

std::string to_string(const Profile& profile);  // returns a table

}  // namespace tally
