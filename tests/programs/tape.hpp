// Single numbers that remember how they were made, each with a bound for what rounding may have done to it:
// the independent witness of values and gradients.
//
// Values are long double. Beside each stands e, how far a computation in the program's own type may be off:
// what its operands may be off, times the derivatives, and one rounding of its own (Higham, "Accuracy and
// Stability of Numerical Algorithms", 3.3: running error analysis). Gradients are bounded in the same way;
// how far a derivative is off is bounded by the second derivative. This is of first order, and kernels may
// compute by another formula than here, so comparisons allow a multiple of e.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace programs {

using Number = long double;

struct Bounded {
    Number value = 0;
    Number error = 0;
    Number size = 0;  // of a gradient: what was added up, without its signs
};

struct Edge {  // from a number to one that it was made of
    int to = -1;
    Number slope = 0;
    Number error = 0;
};

class Tape {
public:
    Tape(bool wide, bool special);  // special: numbers may get out of bounds

    int leaf(Number value, bool wants_gradient);
    int constant(Number value, Number error = 0);
    int forget(int x);  // its value as a constant
    void want(int x) {
        nodes_[static_cast<std::size_t>(x)].wants = true;
    }                 // a gradient, whatever it is made of
    int copy(int x);  // the same number in another array: it has a gradient of its own

    int doubt(int x);  // the same, through which gradients are not to be expected

    int neg(int x);
    int exp(int x);
    int log(int x);
    int sqrt(int x);
    int tanh(int x);
    int sigmoid(int x);
    int relu(int x);
    int gelu(int x);
    int abs(int x);
    int sin(int x);
    int cos(int x);
    int pow_number(int x, double n);
    int clamp(int x, double low, double high);
    int add(int a, int b);
    int sub(int a, int b);
    int mul(int a, int b);
    int div(int a, int b);
    int pow(int a, int b);
    int maximum(int a, int b, Number sign);  // sign -1: minimum
    int sum(const std::vector<int>& all);
    // The largest; those that are equal to it share the gradient, or the first of them gets it.
    int largest(const std::vector<int>& all, bool shared);

    const Bounded& operator[](int x) const { return nodes_[static_cast<std::size_t>(x)].y; }
    std::size_t size() const { return nodes_.size(); }
    double unit() const { return unit_; }
    double tiny() const { return tiny_; }
    double huge() const { return huge_; }
    // A decision between two cases was so close that neither may be expected.
    bool undecided() const { return undecided_; }
    double closest() const { return closest_; }  // how close any was

    // What flows from the seeded numbers to all they were made of. Numbers that are `reached` get a gradient,
    // be it 0: times a slope without bounds that is no number.
    void backward(const std::vector<int>& from, const std::vector<Number>& seed, std::vector<bool> reached,
                  std::vector<Bounded>& adjoint) const;

private:
    struct Node {
        Bounded y;
        Edge a, b;
        int same_as;  // the number that this is a copy of
        bool wants;
    };
    const Node& at(int x) const { return nodes_[static_cast<std::size_t>(x)]; }
    int put(Bounded y, Edge a, Edge b = {}, int same_as = -1);
    // y = f(x), with slope f', how far the slope may bend, and roundings of value and slope.
    int unary(int x, Number y, Number slope, Number bend, Number rounding, Number slope_rounding);
    bool equal(int a, int b) const;  // in any computation
    bool close(int a, int b);        // another computation might order them otherwise
    void decide(Number margin, Number scale);

    std::vector<Node> nodes_;
    bool special_;
    double unit_, tiny_, huge_;
    bool undecided_ = false;
    double closest_ = 1;
};

}  // namespace programs
