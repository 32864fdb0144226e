// A Tape computes values and gradients independently of tally. A Tape records each number, how the number was
// computed, and a bound of its rounding error.
//
// Values are long double. Each value has an error e, which bounds the rounding error of the same computation
// in the program's number type. The error e is the sum of the operands' errors, each multiplied by a
// derivative, plus one rounding error (Higham, "Accuracy and Stability of Numerical Algorithms", 3.3).
// Gradients have the same kind of bound, for which the tape also uses second derivatives. A comparison
// permits several times e, because kernels may use other formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace programs {

using Number = long double;

struct Bounded {
    Number value = 0;
    Number error = 0;
    Number size = 0;  // for a gradient: the sum of the magnitudes of the terms
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
    int copy(int x);  // returns the same number for a different array, with a separate gradient

    int without_bound(int x);  // returns a copy whose gradients have no bound

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
    int maximum(int a, int b, Number sign);  // returns the minimum if sign is -1
    int sum(const std::vector<int>& all);
    // Returns the maximum. Equal maxima share the gradient if `shared`. Otherwise the first gets all of it.
    int largest(const std::vector<int>& all, bool shared);

    const Bounded& operator[](int x) const { return nodes_[static_cast<std::size_t>(x)].y; }
    std::size_t size() const { return nodes_.size(); }
    double unit() const { return unit_; }
    double tiny() const { return tiny_; }
    double huge() const { return huge_; }
    // Returns true if rounding errors may reverse a decision, for example which of two numbers is larger.
    bool undecided() const { return undecided_; }
    double closest() const { return closest_; }  // the smallest margin of all decisions

    // Computes the gradients of all numbers on which the seeded numbers depend. A number marked in `reached`
    // receives a gradient even if the gradient is 0, because 0 times an infinite slope is NaN.
    void backward(const std::vector<int>& from, const std::vector<Number>& seed, std::vector<bool> reached,
                  std::vector<Bounded>& adjoint) const;

private:
    struct Node {
        Bounded y;
        Edge a, b;
        int same_as;  // the original number if this number is a copy
        bool needs;
    };
    const Node& at(int x) const { return nodes_[static_cast<std::size_t>(x)]; }
    int put(Bounded y, Edge a, Edge b = {}, int same_as = -1);
    // Adds y = f(x) with the derivative `slope`, a bound `bend` of f'', and the rounding errors of both.
    int unary(int x, Number y, Number slope, Number bend, Number rounding, Number slope_rounding);
    bool equal(int a, int b) const;  // whether a == b with every rounding
    bool close(int a, int b);        // whether rounding may change the order
    void decide(Number margin, Number scale);

    std::vector<Node> nodes_;
    bool special_;
    double unit_, tiny_, huge_;
    bool undecided_ = false;
    double closest_ = 1;
};

}  // namespace programs
