// Diagram: a computation graph as plain text, and its two pictures, SVG and DOT. Knows nothing of the engine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tally {

struct Diagram {
    enum class Role : std::uint8_t { parameter, data, operation, loss };

    struct Input {
        int from = 0;          // the operand's place in `boxes`, before the box that uses it
        bool back = false;     // a dashed arrow carries a gradient back along this edge ...
        std::string gradient;  // ... with this label; say it where several arrows meet in one box and add up
    };

    struct Box {
        Role role = Role::operation;
        std::string name;
        std::string shape;     // "(3)"; "" for a scalar
        std::string value;     // "" leaves the line out
        std::string gradient;  // "" where none is wanted, "-" where none has arrived yet
        int lane = 0;          // one per micro-batch, from the top; no_lane for what several lanes share
        bool saved = false;
        bool recomputed = false;
        std::vector<Input> inputs;
    };

    static constexpr int no_lane = -1;
    static constexpr int max_boxes = 1000;  // more cannot be read; asking for it is an error

    std::string title;
    std::string description;         // what a screen reader says; "" for a sentence that counts the boxes
    std::vector<std::string> lanes;  // their names, shown where there is more than one lane
    std::vector<Box> boxes;          // in topological order
    int widest =
        0;  // pixels: longer lines wrap, if need be at several wires; 0 leaves lines as long as reads well
};

// As an SVG file, and in the words of Graphviz.
std::string to_svg(const Diagram& diagram);
std::string to_dot(const Diagram& diagram);

namespace detail {
// Gives each loss the lane of its number, and to each box the lane of the only loss it leads
// to, else no_lane.
void lanes_from_losses(Diagram& diagram);

std::string short_values(
    std::span<const double> values);  // "[-0.3536  0.0207 -0.6125]", "[ 0.5000 -1.2500 ..]"
std::string short_values(std::span<const float> values);
}  // namespace detail

}  // namespace tally
