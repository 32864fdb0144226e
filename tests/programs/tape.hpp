// Tape records single numbers and how they were computed, with a bound of each rounding error: an independent
// check of values and gradients.
//
// Values are long double. Each has an error e, a bound for a computation in the program's own type: the
// errors of the operands times the derivatives, plus one rounding (Higham, "Accuracy and Stability of
// Numerical Algorithms", 3.3: running error analysis). Gradients have bounds of the same kind, in which the
// second derivative bounds the error of a derivative. The bounds are of first order, and kernels may use
// other formulas, so comparisons permit a multiple of e.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace programs {

using Number = long double;

struct Bounded {
    Number value = 0;
    Number error = 0;
    Number size = 0;  // of a gradient: the sum of the magnitudes of its terms
};

struct Edge {  // from a number to one of its operands
    int to = -1;
    Number slope = 0;
    Number error = 0;
};

class Tape {
public:
    Tape(bool wide, bool special);  // special: numbers may overflow

    int leaf(Number value, bool needs_gradient);
    int constant(Number value, Number error = 0);
    int as_constant(int x);  // returns the value as a constant
    void require_gradient(int x) { nodes_[static_cast<std::size_t>(x)].needs = true; }
    int copy(int x);  // the same number in another array, with its own gradient

    int without_bound(int x);  // a copy through which no gradient has a bound

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
    // Returns the maximum. Equal maxima share the gradient if `shared`; otherwise the first gets it.
    int largest(const std::vector<int>& all, bool shared);

    const Bounded& operator[](int x) const { return nodes_[static_cast<std::size_t>(x)].y; }
    std::size_t size() const { return nodes_.size(); }
    double unit() const { return unit_; }
    double tiny() const { return tiny_; }
    double huge() const { return huge_; }
    // Returns true if two cases were so close that either may occur.
    bool undecided() const { return undecided_; }
    double closest() const { return closest_; }  // the smallest distance of all decisions

    // Computes the gradients of all numbers on which the seeded numbers depend. A number that is `reached`
    // gets a gradient even if it is 0, because 0 times an infinite slope is NaN.
    void backward(const std::vector<int>& from, const std::vector<Number>& seed, std::vector<bool> reached,
                  std::vector<Bounded>& adjoint) const;

private:
    struct Node {
        Bounded y;
        Edge a, b;
        int same_as;  // the original number if this one is a copy
        bool needs;
    };
    const Node& at(int x) const { return nodes_[static_cast<std::size_t>(x)]; }
    int put(Bounded y, Edge a, Edge b = {}, int same_as = -1);
    // Adds y = f(x) with its slope f', a bound `bend` of f'', and the roundings of value and slope.
    int unary(int x, Number y, Number slope, Number bend, Number rounding, Number slope_rounding);
    bool equal(int a, int b) const;  // in every computation
    bool close(int a, int b);        // the order may differ in another computation
    void decide(Number margin, Number scale);

    std::vector<Node> nodes_;
    bool special_;
    double unit_, tiny_, huge_;
    bool undecided_ = false;
    double closest_ = 1;
};

}  // namespace programs
