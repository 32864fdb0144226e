#!/usr/bin/env python3
# Compiles wrong programs, such as one that adds a mean to a window. The compiler must reject each of them.
#
#     does_not_compile.py COMPILER INCLUDE_PATH
import pathlib
import subprocess
import sys
import tempfile

HEADERS = """
#include "tally/train/batches.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/window.hpp"
"""
XTENSOR = '#include "tally/xtensor.hpp"\n'
PROGRAM = """
using namespace tally;
void run(Window<float>& window, Linear<float>& layer, const Tensor& y, Array<float> numbers) {
    %s
}
"""
WITH_XTENSOR = """
using namespace tally;
void run(Array<float>& numbers, const Array<float>& others) {
    %s
}
"""
COMPILES = ["window.add(mse(y, y)); window.add({sum(y), sum(y)}); layer.bias = parameter(numbers); layer.bias = constant(numbers);"
            "layer.bias.assign(numbers); Tensor x = numbers; (void)x;",
            "sum(y); sum(y, 0); sum(y, {0, 1}); sum(y, {}, {.keepdims = true}); var(y, 0, {.unbiased = false, .keepdims = true});"
            "matmul(y, y, {.transpose_b = true}); squeeze(y); argmax(y, -1);"]
REJECTED = {
    "window.add(mse(y, y).mean());": "window.add() requires a Loss, which contains its count",
    "window.add(sum(y), 2);": "window.add() requires a Loss, which contains its count",
    "Tensor x = y; x += y;": "a variable is not changed in place",
    "Tensor x = y; x -= y;": "a variable is not changed in place",
    "Tensor x = y; x *= 2;": "a variable is not changed in place",
    "Tensor x = y; x /= y;": "a variable is not changed in place",
    "Tensor x = y; x[0] = y;": "a variable is not changed in place",
    "Tensor x = y; x.t() = y;": "a variable is not changed in place",
    "rows(std::vector<int>{1, 2}, Items::in_order(2));": "rows() requires an array: Array<std::int32_t>({count}, labels) of labels",
    "sum(y, true);": "no matching function for call to",
    "sum(y, 0, true);": "// write {.keepdims = true}",
    "max(y, {0, 1}, true);": "// write {.keepdims = true}",
    "matmul(y, y, false, true);": "// write {.transpose_b = true}",
    "Linear<float>(2, 3, {1, 0}, false);": "// write {.bias = false}",
    "SelfAttention<float>(4, 2, {1, 0}, true);": "// write {.causal = true}",
    "cross_entropy(y, Array<std::int32_t>{0, 1}, 0.1);": "// write {.ignore = 0} or {.smoothing = 0.1}",
    "window.add(mse(y, y), 2);": "// write {.weight = 2}",
    "rows(numbers, {0, 2});": "explicit constructor",
    "for (float each : (y * 2).value().span()) numbers = {each};": "use of deleted function",
    "const float* at = (y * 2).value().data(); numbers = {*at};": "use of deleted function",
    "auto w = parameter({1, 2, 3});": "parameters are float or double: write 1.f or 1.0 instead of 1",
    "auto w = constant({1, 2, 3});": "variables are float or double: write 1.f or 1.0 instead of 1",
    "relu(y);": "nodiscard",
    "numbers.clone();": "nodiscard",
    "window.begin_micro_batch(2);": "nodiscard",
    "NoGrad();": "nodiscard",
    "layer.bias = numbers;": "call parameter.assign(numbers) to change a parameter",
    "layer.bias = Array<float>({2}, {1.f, 2.f});": "call parameter.assign(numbers) to change a parameter",
}
COMPILES_WITH_XTENSOR = ["array_of(as_xtensor(others)); array_of<float>(as_xtensor(others) > 0); as_writable_xtensor(numbers) = as_xtensor(others);"]
WRITE_ARRAY_OF = "of elements of another type write array_of<float>(expression) or array_of<double>(expression)"
REJECTED_WITH_XTENSOR = {
    "array_of(as_xtensor(others) > 0);": WRITE_ARRAY_OF,
    "array_of(xt::cast<long>(as_xtensor(others)));": WRITE_ARRAY_OF,
    "array_of<bool>(as_xtensor(others));": WRITE_ARRAY_OF,
    "array_of(xt::cast<std::complex<double>>(as_xtensor(others)));": WRITE_ARRAY_OF,
    "as_xtensor(others)(0) = 1;": "",
    "as_writable_xtensor(others);": "as_writable_xtensor",
    "as_writable_xtensor(Array<float>{1});": "as_writable_xtensor",
}


def precompiled(compiler, path, header, text):
    header.write_text(text, encoding="utf-8")
    subprocess.run([compiler, "-std=c++20", f"-I{path}", "-x", "c++-header", header, "-o", f"{header}.gch"], check=True)
    return header


def compiled(compiler, header, program, statement, *options):
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", *options, "-include", header, "-x", "c++", "-"],
                          input=program % statement, capture_output=True, text=True)
    return done.returncode == 0, done.stderr


def main(compiler, path):
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        headers = precompiled(compiler, path, pathlib.Path(folder, "headers.hpp"), HEADERS)
        with_xtensor = precompiled(compiler, path, pathlib.Path(folder, "xtensor.hpp"), XTENSOR)
        for header, program, compiles, rejected in [(headers, PROGRAM, COMPILES, REJECTED),
                                                    (with_xtensor, WITH_XTENSOR, COMPILES_WITH_XTENSOR, REJECTED_WITH_XTENSOR)]:
            for statement in compiles:
                good, output = compiled(compiler, header, program, statement)
                if not good:
                    wrong.append(f"does not compile: {statement}\n{output}")
            for statement, sentence in rejected.items():
                good, output = compiled(compiler, header, program, statement, "-Werror=unused-result")
                if good or sentence not in output:
                    wrong.append(f"{'compiles' if good else 'rejected with another message'}: {statement}\n{output}")
    print("\n".join(wrong) or f"{len(REJECTED) + len(REJECTED_WITH_XTENSOR)} rejected, each with its message")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
