// A Timeline shows the live bytes of a device, event by event, as a picture and as a strip of text.
//
//     memory::reset_peak();          // so that the timeline includes peaks within an operation
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

namespace detail {
// Options of Timeline::strip().
struct StripOptions {
    int columns = 72;
    bool ascii = false;  // ASCII characters instead of blocks
};
}  // namespace detail

// Records the live bytes of all threads after each operation of this thread, while the operands still exist,
// and after each backward function.
class Timeline final : Observer {
public:
    using StripOptions = detail::StripOptions;

    explicit Timeline(Device device = Device::cpu);

    struct Sample {
        std::uint64_t event = 0;  // counted from 1
        bool forward = true;      // false: a backward function
        std::size_t in_use = 0;
        std::array<std::size_t, memory::detail::memory_classes> in_use_by{};
    };
    struct Peak {
        std::size_t bytes = 0;
        Sample at;            // the sample of its event
        std::string op;       // operation of the event
        std::string where;    // see ScopeName
        bool within = false;  // reached within the operation, and higher than after it
    };

    const std::vector<Sample>& samples() const { return samples_; }  // at most `most_samples`
    const Peak& peak() const { return peak_; }
    std::uint64_t events() const { return events_; }
    static constexpr std::size_t most_samples = 1 << 14;  // of more, the highest of 2, 4, ... are kept

    // Returns a chart of block or ASCII characters, and a line that describes the peak.
    std::string strip(const StripOptions& options = {}) const;
    std::string strip(int, bool = false) const = delete;  // write strip({.columns = 60, .ascii = true})
    // svg() draws this part of the temporary bytes, for example an optimizer's averages, as a separate band.
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
    void require_samples() const;

    Device device_;
    std::vector<Sample> samples_;
    std::uint64_t events_ = 0, each_stands_for_ = 1;
    std::size_t highest_before_;  // the device's peak at the last event
    Peak peak_;
    const Observer::Scope scope_{*this};
};

namespace detail {
// Returns the highest sample of each of `count` equal ranges, or all samples if there are fewer.
std::vector<Timeline::Sample> highest(const std::vector<Timeline::Sample>& samples, std::size_t count);

std::string to_text(const Timeline::Peak& peak);  // "45.0 MiB within event 12, computing 'linear'"
}  // namespace detail

}  // namespace tally
