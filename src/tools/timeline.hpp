// Timeline: live bytes of a device, event by event, as a picture and as a strip of text.
//
//     memory::reset_peak();          // so that a peak within an operation is seen, too
//     Timeline timeline;
//     cross_entropy(model(x), labels).mean().backward();
//     timeline.write("window.svg");
//     std::cout << timeline.strip();
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tally/autograd/node.hpp"
#include "tally/autograd/observer.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

// How a strip of text is drawn.
struct StripOptions {
    int columns = 72;
    bool ascii = false;  // instead of blocks
};

// Looks on while it lives: at the ledger, after each operation of this thread (its operands are still there)
// and after each rule. The ledger is that of all threads.
class Timeline final : Observer {
public:
    explicit Timeline(Device device = Device::cpu);

    struct Sample {
        std::uint64_t event = 0;  // counted from 1
        bool forward = true;      // else a rule has been called
        std::size_t in_use = 0;
        std::array<std::size_t, memory::detail::memory_classes> in_use_by{};
    };
    struct Peak {
        std::size_t bytes = 0;
        Sample at;            // the event it belongs to
        std::string op;       // its operation
        std::string where;    // see Here
        bool within = false;  // more than what was left when the operation was finished
    };

    const std::vector<Sample>& samples() const { return samples_; }  // at most `most_samples`
    const Peak& peak() const { return peak_; }
    std::uint64_t events() const { return events_; }
    static constexpr std::size_t most_samples = 1 << 14;  // of more events the higher of two, four, ... stay

    // Rows of blocks, or of plain ASCII, and the peak in words.
    std::string strip(const StripOptions& options = {}) const;
    std::string strip(int, bool = false) const = delete;  // write strip({.columns = 60, .ascii = true})
    // What of the temporary bytes has a name, such as an optimizer's averages: a band of its own.
    struct Share {
        std::string name;
        std::size_t bytes;
    };
    std::string svg(const std::string& title = "Live bytes", const Share& of_temporary = {}) const;
    void write(const std::string& path, const std::string& title = "Live bytes") const;  // .svg

private:
    void on_forward(const ForwardEvent& operation) override;
    void after_backward(const Node& node) override;
    void look(const char* op, bool forward);

    Device device_;
    std::vector<Sample> samples_;
    std::uint64_t events_ = 0, each_stands_for_ = 1;
    std::size_t highest_before_;  // what the ledger called its peak at the last event
    Peak peak_;
    const ObserverScope scope_{*this};
};

namespace detail {
// The highest sample of each of `count` equal stretches, or all where there are fewer.
std::vector<Timeline::Sample> highest(const std::vector<Timeline::Sample>& samples, std::size_t count);

std::string in_words(const Timeline::Peak& peak);  // "45.0 MiB within event 12, computing 'linear'"
}  // namespace detail

}  // namespace tally
