// A Program describes a random program by its operations, operands and requests for gradients. This file does
// not depend on tally.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace programs {

using Extents = std::vector<std::int64_t>;

// The first two enumerators are leaves. The last four enumerators request or clear gradients. All other
// enumerators compute values.
enum class Op {
    parameter,
    constant,
    neg,
    exp,
    log,
    sqrt,
    tanh,
    sigmoid,
    relu,
    gelu,
    abs,
    sin,
    cos,
    add_number,
    number_add,
    sub_number,
    number_sub,
    mul_number,
    number_mul,
    div_number,
    number_div,
    pow_number,
    clamp,
    clamp_below,
    add,
    sub,
    mul,
    div,
    pow,
    maximum,
    minimum,
    squared_difference,
    where,
    sum,
    mean,
    max,
    logsumexp,
    softmax,
    log_softmax,
    reshape,
    permute,
    transpose,
    broadcast_to,
    slice,
    concat,
    split,
    rows,
    embedding,
    matmul,
    linear,
    linear_relu,
    conv2d,
    max_pool2d,
    layer_norm,
    batch_norm,
    batch_norm_running,
    mse,
    binary_cross_entropy,
    cross_entropy,
    info_nce,
    dropout,
    detach,
    custom_give,
    custom_into,
    backward,
    grad,
    zero_grad,
    free_grad
};
inline constexpr int op_count = static_cast<int>(Op::free_grad) + 1;
const char* name_of(Op op);
inline bool is_leaf(Op op) { return op <= Op::constant; }
inline bool is_act(Op op) { return op >= Op::backward; }

// Each step has an index. The operation determines what the other fields mean (evaluator.cpp).
struct Step {
    Op op = Op::constant;
    std::vector<int> in;                 // earlier steps, or for grad the result and then the targets
    std::vector<std::int64_t> whole;     // axes, extents, bounds, stride and padding
    std::vector<double> numbers;         // values of a leaf, or the seed of backward or grad
    Extents shape;                       // shape of a leaf or of the indices
    std::vector<std::int32_t> index;     // indices, labels, conditions
    bool first = false, second = false;  // flags: keepdims, transposed operands, or mean
    bool no_grad = false;
    bool removed = false;  // shrunk() has removed the step
};

// In runs with checkpoints, the steps from `from` to `to` - 1 form one checkpointed function. Blocks may be
// nested. Bit k of `capture` is 1 if the function captures input k, and 0 if input k is an argument.
struct Block {
    int from, to;
    std::uint64_t capture;
};

struct Program {
    std::uint64_t seed = 0;
    bool wide = false;     // whether the program uses double instead of float
    bool special = false;  // some numbers are 0, -0, huge or tiny
    std::vector<Step> steps;
    std::vector<Block> blocks;  // an outer block precedes its inner blocks
};

std::string to_string(const Program& program);

// Returns for each value the last step that reads the value, or -1.
std::vector<int> last_uses(const Program& program);

// A Boundary lists the outside values that a block reads, and the values of the block that later steps read.
struct Boundary {
    std::vector<int> inputs, outputs;
};
Boundary boundary_of(const Program& program, const Block& block);

// Returns the outermost block in `around` that begins at `step`, or -1. -1 as `around` means all blocks.
int block_at(const Program& program, int step, int around);

// An Invalid is thrown if no library can run the program, for example because shapes do not fit.
struct Invalid : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::size_t size_of(const Extents& shape);

// An Rng generates random numbers that are the same with every standard library (splitmix64).
class Rng {
public:
    explicit Rng(std::uint64_t seed) : state_(seed) {}
    std::uint64_t bits() {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    std::int64_t whole(std::int64_t low, std::int64_t high) {  // both bounds are included
        return low + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
    }
    bool one_in(int n) { return whole(1, n) == 1; }
    double between(double low, double high) {
        return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
    }
    template <class List> const auto& of(const List& list) {
        return list[static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(list.size()) - 1))];
    }

private:
    std::uint64_t state_;
};

// Returns the factor of each element: 0 for a dropped element, and 1 / (1 - p) for a kept element. In the
// step, `whole` is {seed, layer, first item}, and `numbers` is {p}.
std::vector<double> dropout_factors(const Step& step, const Extents& shape);

}  // namespace programs
