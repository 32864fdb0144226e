#!/usr/bin/env python3
# What the compiler refuses, and with which words: a mean added to a window, numbers assigned to a parameter.
#
#     does_not_compile.py COMPILER INCLUDE_PATH
import subprocess
import sys

PROGRAM = """
#include "tally/train/batches.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/window.hpp"
using namespace tally;
void run(Window<float>& window, Linear<float>& layer, const Tensor& y, Array<float> numbers) {
    %s
}
"""
COMPILES = ["window.add(mse(y, y)); window.add({sum(y), sum(y)}); layer.bias = parameter(numbers); layer.bias = constant(numbers);"
            "assign(layer.bias, numbers); Tensor x = numbers; (void)x;",
            "sum(y); sum(y, 0); sum(y, {0, 1}); sum(y, {}, {.keepdims = true}); var(y, 0, {.unbiased = false, .keepdims = true});"
            "matmul(y, y, {.transpose_b = true}); squeeze(y); argmax(y, -1);"]
REFUSED = {
    "window.add(mse(y, y).mean());": "window.add() wants the loss itself, which knows its count",
    "window.add(sum(y), 2);": "window.add() wants the loss itself, which knows its count",
    "Tensor x = y; x += y;": "a variable is not changed in place",
    "Tensor x = y; x -= y;": "a variable is not changed in place",
    "Tensor x = y; x *= 2;": "a variable is not changed in place",
    "Tensor x = y; x /= y;": "a variable is not changed in place",
    "Tensor x = y; x[0] = y;": "a variable is not changed in place",
    "Tensor x = y; x.t() = y;": "a variable is not changed in place",
    "rows(std::vector<int>{1, 2}, in_order(2));": "rows() wants an array: Array<std::int32_t>({count}, labels) of labels",
    "sum(y, true);": "no matching function for call to",
    "sum(y, 0, true);": "// {.keepdims = true}",
    "max(y, {0, 1}, true);": "// {.keepdims = true}",
    "matmul(y, y, false, true);": "// {.transpose_b = true}",
    "Linear<float>(2, 3, {1, 0}, false);": "write {.bias = false}",
    "SelfAttention<float>(4, 2, {1, 0}, true);": "write {.causal = true}",
    "layer.bias = numbers;": "numbers are given to a parameter by assign(parameter, numbers)",
    "layer.bias = Array<float>({2}, {1.f, 2.f});": "numbers are given to a parameter by assign(parameter, numbers)",
}


def compiled(compiler, path, statement):
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", f"-I{path}", "-x", "c++", "-"],
                          input=PROGRAM % statement, capture_output=True, text=True)
    return done.returncode == 0, done.stderr


def main(compiler, path):
    wrong = []
    for statement in COMPILES:
        good, said = compiled(compiler, path, statement)
        if not good:
            wrong.append(f"does not compile: {statement}\n{said}")
    for statement, sentence in REFUSED.items():
        good, said = compiled(compiler, path, statement)
        if good or sentence not in said:
            wrong.append(f"{'compiles' if good else 'refused in other words'}: {statement}\n{said}")
    print("\n".join(wrong) or f"{len(REFUSED)} refused, each with its sentence")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
