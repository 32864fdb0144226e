#!/usr/bin/env python3
"""The rows of bench/gpu_rows.cpp in PyTorch, eager and as CUDA graphs: one line of JSON a row, as bench_gpu_steps prints.

Full float32, the same sizes and numbers; "check" is the sum of the sizes of the gradients (or of the result) after the first
run, for comparison with tally's. usage: tools/gpu_peer.py [--cpu] [--rounds N]
"""
import argparse
import json
import math
import statistics
import time

import torch
import torch.nn.functional as F

ROUND_SECONDS = 10e-3


def numbers(shape, stream, device, scale=1.0):
    i = torch.arange(math.prod(shape), dtype=torch.int64, device=device)
    mixed = (i * 2654435761 + stream * 1779033703) & 0xFFFFFFFF
    return ((mixed >> 8).to(torch.float32) / 16777216.0 - 0.5).mul_(scale).reshape(shape)


def toy(device, parts):
    x, w = numbers((6, 3), 1, device), numbers((3,), 2, device).requires_grad_()

    def step():
        w.grad = None
        if parts == 1:
            torch.matmul(x, w).mean().backward()
        else:
            for micro in x.split(6 // parts):
                (torch.matmul(micro, w).mean() / parts).backward()

    return step, lambda: [w.grad]


def chain(device):
    start = numbers((3,), 1, device).requires_grad_()
    c = torch.tensor([0.9, 1.1, 1.0], device=device)

    def step():
        start.grad = None
        y = start
        for _ in range(50):
            y = y * c + c
        y.sum().backward()

    return step, lambda: [start.grad]


def update(sizes, micro_batches, rows_each, device):
    parameters = []
    for layer, (wide_in, wide_out) in enumerate(zip(sizes, sizes[1:]), 1):
        scale = 2 / math.sqrt(wide_in)
        parameters.append(numbers((wide_in, wide_out), 2 * layer, device, scale).requires_grad_())
        parameters.append(numbers((wide_out,), 2 * layer + 1, device, scale).requires_grad_())
    batch = micro_batches * rows_each
    x = numbers((batch, sizes[0]), 1, device)
    labels = torch.arange(batch, device=device) % sizes[-1]
    micros = list(zip(x.split(rows_each), labels.split(rows_each)))

    def step():
        for parameter in parameters:
            parameter.grad = None
        for y, label in micros:
            for layer in range(0, len(parameters), 2):
                if layer > 0:
                    y = F.relu(y)
                y = torch.addmm(parameters[layer + 1], y, parameters[layer])
            (F.cross_entropy(y, label, reduction="sum") / batch).backward()
        with torch.no_grad():
            torch._foreach_add_(parameters, [parameter.grad for parameter in parameters], alpha=-0.001)

    return step, lambda: [parameter.grad for parameter in parameters]


def kernels_alone(extent, device):
    x, y = numbers((extent, extent), 1, device), numbers((extent, extent), 2, device)
    row, seen = numbers((extent,), 3, device), []

    def row_of(compute):
        def step():
            seen[:] = [compute()]

        return step, lambda: list(seen)

    return {"relu": row_of(lambda: torch.relu(x)),
            "relu backward": row_of(lambda: torch.ops.aten.threshold_backward(x, y, 0)),
            "add": row_of(lambda: x + y),
            "bias": row_of(lambda: x + row),
            "softmax": row_of(lambda: torch.softmax(x, 1)),
            "sum across": row_of(lambda: x.sum(1)),
            "sum down": row_of(lambda: x.sum(0))}


def finish(device):
    if device == "cuda":
        torch.cuda.synchronize()


def graphed(step):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def race(name, per, units, row, device, rounds, with_graph):
    step, seen = row
    step()
    check = sum(value.double().abs().sum().item() for value in seen())
    contestants = [["PyTorch", step]]
    if with_graph and device == "cuda":
        contestants.append(["PyTorch as a CUDA graph", graphed(step)])
    times = {label: [] for label, _ in contestants}
    repeats = {}
    for label, run in contestants:
        run()
        finish(device)
        start = time.perf_counter()
        run()
        finish(device)
        repeats[label] = max(1, min(2000, int(ROUND_SECONDS / (time.perf_counter() - start))))
    for number in range(-1, rounds):
        for label, run in contestants:
            start = time.perf_counter()
            for _ in range(repeats[label]):
                run()
            finish(device)
            if number >= 0:
                times[label].append((time.perf_counter() - start) / repeats[label] / units * 1e9)
    print(json.dumps({"row": name, "per": per, "check": check, "contestants": [
        {"name": label, "median_ns": statistics.median(ns), "minimum_ns": min(ns), "rounds_ns": ns}
        for label, ns in times.items()]}), flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--cpu", action="store_true", help="small sizes, eager only: shows that it works")
    options.add_argument("--rounds", type=int, default=11)
    given = options.parse_args()
    device = "cpu" if given.cpu else "cuda"
    torch.backends.cuda.matmul.allow_tf32 = False
    name = "cpu" if given.cpu else torch.cuda.get_device_name()
    print(json.dumps({"device": name, "rounds": given.rounds, "torch": torch.__version__}), flush=True)

    mlp, large, whole, extent = [784, 512, 512, 10], [4096, 4096, 4096, 1024], 4096, 8192
    if given.cpu:
        large, whole, extent = [128, 128, 128, 64], 64, 256
    rows = [("toy", "step", 1, lambda: toy(device, 1)),
            ("toy in 3 micro-batches", "step", 1, lambda: toy(device, 3)),
            ("chain of 100 operations on 3 numbers", "operation", 100, lambda: chain(device)),
            ("MLP as 1x64", "update", 1, lambda: update(mlp, 1, 64, device)),
            ("MLP as 4x16", "update", 1, lambda: update(mlp, 4, 16, device)),
            ("MLP as 64x1", "update", 1, lambda: update(mlp, 64, 1, device)),
            (f"large MLP as 1x{whole}", "update", 1, lambda: update(large, 1, whole, device)),
            (f"large MLP as 4x{whole // 4}", "update", 1, lambda: update(large, 4, whole // 4, device))]
    for row_name, per, units, make in rows:
        race(row_name, per, units, make(), device, given.rounds, True)
    for row_name, row in kernels_alone(extent, device).items():
        race(f"{row_name} {extent}x{extent}", "call", 1, row, device, given.rounds, False)


if __name__ == "__main__":
    main()
