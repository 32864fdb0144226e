// Returns example diagrams for the tests. The smallest diagram has one expression of scalars, and the largest
// has sixty operations in a row.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tally/base/text.hpp"
#include "tally/tools/diagram.hpp"

namespace tally::test {

using Role = detail::Diagram::Role;

// Builds a diagram with one call per box. If a box has a gradient, its outgoing edges send a gradient back.
class Sketch {
public:
    detail::Diagram diagram;

    int parameter(std::string name, std::string shape, std::string value, std::string gradient,
                  int lane = 0) {
        return add({Role::parameter,
                    std::move(name),
                    std::move(shape),
                    std::move(value),
                    std::move(gradient),
                    lane,
                    false,
                    false,
                    {}});
    }
    int data(std::string name, std::string shape, std::string value, int lane = 0) {
        return add(
            {Role::data, std::move(name), std::move(shape), std::move(value), "", lane, false, false, {}});
    }
    // Adds an operation. The text parts[k] labels the edge from input k.
    int operation(std::string name, std::string shape, std::string value, std::string gradient,
                  std::vector<int> from, const std::vector<std::string>& parts = {}, int lane = 0) {
        detail::Diagram::Box box{Role::operation,
                                 std::move(name),
                                 std::move(shape),
                                 std::move(value),
                                 std::move(gradient),
                                 lane,
                                 false,
                                 false,
                                 {}};
        for (std::size_t k = 0; k < from.size(); ++k) {
            const std::string& theirs = diagram.boxes[static_cast<std::size_t>(from[k])].gradient;
            const bool back = !theirs.empty() && theirs != "-";
            box.inputs.push_back({from[k], back, k < parts.size() ? parts[k] : ""});
        }
        return add(std::move(box));
    }
    int loss(std::string name, std::string shape, std::string value, std::string gradient,
             std::vector<int> from, const std::vector<std::string>& parts = {}, int lane = 0) {
        const int index = operation(std::move(name), std::move(shape), std::move(value), std::move(gradient),
                                    std::move(from), parts, lane);
        diagram.boxes.back().role = Role::loss;
        return index;
    }

private:
    int add(detail::Diagram::Box box) {
        diagram.boxes.push_back(std::move(box));
        return static_cast<int>(diagram.boxes.size()) - 1;
    }
};

// Returns the graph of lesson 1: f = (a b + c)^2 at a = 2, b = -3, c = 10.
inline detail::Diagram one_number() {
    Sketch s;
    s.diagram.title = "f = (a*b + c)^2";
    const int a = s.parameter("a", "", "2.0000", "-24.0000");
    const int b = s.parameter("b", "", "-3.0000", "16.0000");
    const int ab = s.operation("mul", "", "-6.0000", "8.0000", {a, b}, {"-24.0000", "16.0000"});
    const int c = s.parameter("c", "", "10.0000", "8.0000");
    const int sum = s.operation("add", "", "4.0000", "8.0000", {ab, c}, {"8.0000", "8.0000"});
    s.loss("square", "", "16.0000", "1.0000", {sum}, {"8.0000"});
    return s.diagram;
}

// Returns the graph of lesson 2: y = x^2 + 3x at x = 3. The graph adds two gradients at x.
inline detail::Diagram diamond() {
    Sketch s;
    s.diagram.title = "The diamond: two ways back to x, and their gradients add up";
    s.diagram.description =
        "x feeds a square and a product with 3; both meet in a sum. 6 and 3 come back and x receives 9.";
    const int x = s.parameter("x", "", "3.0000", "9.0000");
    const int square = s.operation("square", "", "9.0000", "1.0000", {x}, {"6.0000"});
    const int triple = s.operation("times 3", "", "9.0000", "1.0000", {x}, {"3.0000"});
    s.loss("add", "", "18.0000", "1.0000", {square, triple}, {"1.0000", "1.0000"});
    return s.diagram;
}

inline detail::Diagram full_batch() {
    Sketch s;
    s.diagram.title = "The full batch";
    const int w = s.parameter("w", "(3)", "[ 0.5000 -1.2500  0.7500]", "[-0.3536  0.0207 -0.6125]");
    const int x = s.data("x", "(6, 3)", "[ 0.1250 -0.7500 ..]");
    const int y = s.operation("matmul", "(6)", "[ 0.5312 -0.2500 ..]", "[ 0.1667  0.1667 ..]", {x, w});
    s.loss("mean", "", "-0.6620", "1.0000", {y});
    return s.diagram;
}

inline void micro_batches_into(Sketch& s, int w, int first_lane) {
    const std::vector<std::pair<std::string, std::string>> rows{{"[-0.1250 -0.1250 -0.0625]", "0.0469"},
                                                                {"[ 0.0625  0.1042 -0.2083]", "-0.2552"},
                                                                {"[-0.2911  0.0415 -0.3417]", "-0.4537"}};
    for (int k = 0; k < 3; ++k) {
        const int lane = first_lane + k;
        const std::string number = std::to_string(k);
        const int x = s.data("x" + number, "(2, 3)", "", lane);
        const int y = s.operation("matmul", "(2)", "", "[ 0.1667  0.1667]", {x, w},
                                  {"", rows[static_cast<std::size_t>(k)].first}, lane);
        const int mean = s.operation("mean", "", "", "0.3333", {y}, {}, lane);
        s.loss("div 3", "", rows[static_cast<std::size_t>(k)].second, "1.0000", {mean}, {}, lane);
        s.diagram.lanes.push_back("micro-batch " + std::to_string(k + 1) + " of 3");
    }
}

// Returns the graph of lesson 7, which has three micro-batches of two rows, and divides each loss by 3. The
// graph shows the box of w only once, with the sum of the gradients.
inline detail::Diagram micro_batches() {
    Sketch s;
    s.diagram.title = "Three micro-batches, one w: what comes back is added";
    const int w = s.parameter("w", "(3)", "[ 0.5000 -1.2500  0.7500]", "[-0.3536  0.0207 -0.6125]",
                              detail::Diagram::no_lane);
    micro_batches_into(s, w, 0);
    return s.diagram;
}

inline detail::Diagram full_and_micro() {
    Sketch s;
    s.diagram.title = "The full batch, and the same in three micro-batches";
    const int w = s.parameter("w", "(3)", "[ 0.5000 -1.2500  0.7500]", "[-0.7072  0.0413 -1.2250]",
                              detail::Diagram::no_lane);
    s.diagram.lanes = {"full batch"};
    const int x = s.data("x", "(6, 3)", "", 0);
    const int y = s.operation("matmul", "(6)", "", "[ 0.1667  0.1667 ..]", {x, w},
                              {"", "[-0.3536  0.0207 -0.6125]"}, 0);
    s.loss("mean", "", "-0.6620", "1.0000", {y}, {}, 0);
    micro_batches_into(s, w, 1);
    return s.diagram;
}

// Returns a graph of two layers and a loss. The output of relu is saved, and the first product is recomputed.
inline detail::Diagram two_layers() {
    Sketch s;
    s.diagram.title = "Two layers and a loss";
    const int x = s.data("x", "(16, 4)", "[ 0.2500 -0.5000 ..]");
    const int w1 = s.parameter("W1", "(4, 8)", "[ 0.3112 -0.0250 ..]", "[-0.0133  0.0021 ..]");
    const int b1 = s.parameter("b1", "(8)", "[ 0.0000  0.0000 ..]", "[ 0.0071 -0.0104 ..]");
    const int w2 = s.parameter("W2", "(8, 3)", "[ 0.1204  0.4410 ..]", "[ 0.0312 -0.0020 ..]");
    const int b2 = s.parameter("b2", "(3)", "[ 0.0000  0.0000  0.0000]", "[ 0.0333 -0.0210 -0.0123]");
    const int target = s.data("target", "(16)", "");
    const int h1 = s.operation("matmul", "(16, 8)", "[ 0.0811 -0.2031 ..]", "[ 0.0012  0.0000 ..]", {x, w1});
    s.diagram.boxes.back().recomputed = true;
    const int a1 = s.operation("add", "(16, 8)", "[ 0.0811 -0.2031 ..]", "[ 0.0012  0.0000 ..]", {h1, b1});
    const int r = s.operation("relu", "(16, 8)", "[ 0.0811  0.0000 ..]", "[ 0.0012 -0.0049 ..]", {a1});
    s.diagram.boxes.back().saved = true;
    const int h2 = s.operation("matmul", "(16, 3)", "[ 0.1930  0.0712 ..]", "[ 0.0211 -0.0407 ..]", {r, w2});
    const int a2 = s.operation("add", "(16, 3)", "[ 0.1930  0.0712 ..]", "[ 0.0211 -0.0407 ..]", {h2, b2});
    s.loss("cross_entropy", "", "1.0986", "1.0000", {a2, target});
    return s.diagram;
}

// Returns a graph in which two micro-batches pass through two layers with the same parameters. The two losses
// are added.
inline detail::Diagram shared_layers() {
    Sketch s;
    s.diagram.title = "Two micro-batches through two layers";
    const int w1 =
        s.parameter("W1", "(4, 8)", "[ 0.3112 -0.0250 ..]", "[-0.0133  0.0021 ..]", detail::Diagram::no_lane);
    const int w2 =
        s.parameter("W2", "(8)", "[ 0.1204  0.4410 ..]", "[ 0.0312 -0.0020 ..]", detail::Diagram::no_lane);
    std::vector<int> losses;
    for (int lane = 0; lane < 2; ++lane) {
        const int x = s.data("x" + std::to_string(lane), "(8, 4)", "", lane);
        const int h = s.operation("matmul", "(8, 8)", "", "[ 0.0012  0.0000 ..]", {x, w1},
                                  {"", "[-0.0066  0.0011 ..]"}, lane);
        const int r = s.operation("tanh", "(8, 8)", "", "[ 0.0012  0.0000 ..]", {h}, {}, lane);
        const int y = s.operation("matmul", "(8)", "", "[ 0.0625  0.0625 ..]", {r, w2},
                                  {"", "[ 0.0156 -0.0010 ..]"}, lane);
        losses.push_back(s.operation("mean", "", "0.5103", "1.0000", {y}, {}, lane));
        s.diagram.lanes.push_back("micro-batch " + std::to_string(lane + 1) + " of 2");
    }
    s.loss("add", "", "1.0206", "1.0000", losses, {}, detail::Diagram::no_lane);
    return s.diagram;
}

inline detail::Diagram chain_of(int operations) {
    Sketch s;
    s.diagram.title = "A chain of " + std::to_string(operations) + " operations";
    int last = s.parameter("x", "", "0.0000", "1.0000");
    for (int i = 1; i <= operations; ++i)
        last = s.operation("add 1", "", detail::short_number(i), "1.0000", {last});
    s.diagram.boxes.back().role = Role::loss;
    return s.diagram;
}

// Returns a diagram whose names, texts and numbers contain characters that must be escaped.
inline detail::Diagram odd_names() {
    Sketch s;
    s.diagram.title = "a < b && \"c\" > 'd'";
    s.diagram.description = "line one\nline two\x01 & \xFF";
    const int a = s.parameter("<w> & \"quoted\"\nand broken\\", "(3)", "[nan inf]", "-");
    const int b = s.data("a name that is much too long to be shown in a box as it is", "", "1.000e-12");
    s.loss("mul", "", "\xC3\x97 \xE2\x88\x82 \xE6\xBC\xA2", "", {a, b});
    return s.diagram;
}

inline std::vector<std::pair<std::string, detail::Diagram>> example_diagrams() {
    return {{"one_number", one_number()},
            {"diamond", diamond()},
            {"full_batch", full_batch()},
            {"micro_batches", micro_batches()},
            {"full_and_micro", full_and_micro()},
            {"two_layers", two_layers()},
            {"shared_layers", shared_layers()},
            {"chain_of_sixty", chain_of(60)},
            {"odd_names", odd_names()}};
}

}  // namespace tally::test
