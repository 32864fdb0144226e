// Prints programs as text, and computes properties of programs without running the programs.
#include "programs/program.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

namespace programs {

const char* name_of(Op op) {
    static constexpr const char* names[] = {"parameter",     "constant",
                                            "neg",           "exp",
                                            "log",           "sqrt",
                                            "tanh",          "sigmoid",
                                            "relu",          "gelu",
                                            "abs",           "sin",
                                            "cos",           "add_number",
                                            "number_add",    "sub_number",
                                            "number_sub",    "mul_number",
                                            "number_mul",    "div_number",
                                            "number_div",    "pow_number",
                                            "clamp",         "clamp_below",
                                            "add",           "sub",
                                            "mul",           "div",
                                            "pow",           "maximum",
                                            "minimum",       "squared_difference",
                                            "where",         "sum",
                                            "mean",          "max",
                                            "logsumexp",     "softmax",
                                            "log_softmax",   "reshape",
                                            "permute",       "transpose",
                                            "broadcast_to",  "slice",
                                            "concat",        "split",
                                            "rows",          "embedding",
                                            "matmul",        "linear",
                                            "linear_relu",   "conv2d",
                                            "max_pool2d",    "layer_norm",
                                            "batch_norm",    "batch_norm_running",
                                            "mse",           "binary_cross_entropy",
                                            "cross_entropy", "info_nce",
                                            "dropout",       "detach",
                                            "custom_give",   "custom_into",
                                            "backward",      "grad",
                                            "zero_grad",     "free_grad"};
    static_assert(std::size(names) == op_count);
    return names[static_cast<int>(op)];
}

std::size_t size_of(const Extents& shape) {
    std::size_t size = 1;
    for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
    return size;
}

namespace {

template <class List> void write_list(std::ostream& out, const char* what, const List& list) {
    if (list.empty()) return;
    out << "  " << what << '{';
    for (std::size_t i = 0; i < list.size(); ++i) out << (i ? ", " : "") << list[i];
    out << '}';
}

}  // namespace

std::string to_string(const Program& program) {
    std::ostringstream out;
    out << std::setprecision(17) << "seed " << program.seed << ", in " << (program.wide ? "double" : "float")
        << '\n';
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
        const Step& step = program.steps[i];
        if (step.removed) continue;
        out << "  " << (is_act(step.op) ? "" : "v" + std::to_string(i) + " = ") << name_of(step.op) << '(';
        for (std::size_t k = 0; k < step.in.size(); ++k) out << (k ? ", v" : "v") << step.in[k];
        out << ')';
        if (is_leaf(step.op) || !step.index.empty()) {
            out << "  of (";
            for (std::size_t k = 0; k < step.shape.size(); ++k) out << (k ? ", " : "") << step.shape[k];
            out << ')';
        }
        write_list(out, "", step.whole);
        write_list(out, "numbers ", step.numbers);
        write_list(out, "index ", step.index);
        if (step.first) out << "  first";
        if (step.second) out << "  second";
        if (step.no_grad) out << "  in NoGrad";
        out << '\n';
    }
    for (const Block& block : program.blocks)
        out << "  checkpoint: v" << block.from << " to v" << block.to - 1 << ", capture " << block.capture
            << '\n';
    return out.str();
}

std::vector<int> last_uses(const Program& program) {
    std::vector<int> last(program.steps.size(), -1);
    for (std::size_t i = 0; i < program.steps.size(); ++i)
        if (!program.steps[i].removed)
            for (const int operand : program.steps[i].in)
                last[static_cast<std::size_t>(operand)] = static_cast<int>(i);
    return last;
}

Boundary boundary_of(const Program& program, const Block& block) {
    std::set<int> inputs, outputs;
    for (int i = block.from; i < static_cast<int>(program.steps.size()); ++i) {
        const Step& step = program.steps[static_cast<std::size_t>(i)];
        if (step.removed || is_leaf(step.op)) continue;
        for (const int operand : step.in) {
            const bool own = operand >= block.from && operand < block.to &&
                             !is_leaf(program.steps[static_cast<std::size_t>(operand)].op);
            if (i < block.to && !own) inputs.insert(operand);
            if (i >= block.to && own) outputs.insert(operand);
        }
    }
    return {{inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}};
}

int block_at(const Program& program, int step, int around) {
    for (std::size_t b = static_cast<std::size_t>(around + 1); b < program.blocks.size(); ++b)
        if (program.blocks[b].from == step &&
            (around < 0 || program.blocks[b].to <= program.blocks[static_cast<std::size_t>(around)].to))
            return static_cast<int>(b);
    return -1;
}

namespace {

// Implements Philox 4x32-10 (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", 2011).
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t stream, std::uint64_t block) {
    const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
    std::array<std::uint32_t, 4> r{low(block), low(block >> 32), low(stream), low(stream >> 32)};
    std::uint32_t left = low(key), right = low(key >> 32);
    for (int round = 0; round < 10; ++round, left += 0x9E3779B9u, right += 0xBB67AE85u) {
        const std::uint64_t p = 0xD2511F53ull * r[0], q = 0xCD9E8D57ull * r[2];
        r = {low(q >> 32) ^ r[1] ^ left, low(q), low(p >> 32) ^ r[3] ^ right, low(p)};
    }
    return r;
}

}  // namespace

std::vector<double> dropout_factors(const Step& step, const Extents& shape) {
    const double p = step.numbers.at(0);
    const auto dropped = static_cast<std::uint64_t>(std::round(p * 0x1p32));
    const std::size_t size = size_of(shape), width = size ? size / static_cast<std::size_t>(shape.at(0)) : 0;
    std::vector<double> factors(size);
    for (std::size_t i = 0; i < size; ++i) {
        const std::uint64_t item = static_cast<std::uint64_t>(step.whole[2]) + i / width, element = i % width;
        const auto words = philox(static_cast<std::uint64_t>(step.whole[0]),
                                  static_cast<std::uint64_t>(step.whole[1]), (item << 32 | element) / 4);
        factors[i] = words[element % 4] >= dropped ? 1 / (1 - p) : 0;
    }
    return factors;
}

}  // namespace programs
