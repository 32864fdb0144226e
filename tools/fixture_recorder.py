"""Runs a case in PyTorch, forward and backward, and records the results as lines of a fixture file."""
import os

# One instruction set and one BLAS kernel, so that another machine writes the same bytes.
os.environ.update(ATEN_CPU_CAPABILITY="default", OPENBLAS_CORETYPE="Prescott", OMP_NUM_THREADS="1")

import zlib

import numpy as np
import torch

torch.set_num_threads(1)

F32, F64 = torch.float32, torch.float64
INF, NAN = float("inf"), float("nan")

recorded = {}  # operation -> the lines of each of its cases
names = set()


class Data(np.ndarray):
    """An input of real numbers without a gradient."""


def data(values):
    return np.asarray(values, float).view(Data)


def ints(values):
    """An input of integers (labels, indices, masks): data, never differentiated."""
    return np.asarray(values, np.int64)


def rand(key, shape, lo=-2.0, hi=2.0):
    """Numbers with three decimals: short to write, inexact in binary. The key makes cases independent of each other."""
    return np.round(np.random.RandomState(zlib.crc32(key.encode())).uniform(lo, hi, shape), 3)


def spell(shape):
    return "x".join(map(str, shape)) if shape else "scalar"


def extents(text):
    """The inverse of spell: "2x3" is (2, 3), "scalar" is ()."""
    return () if text == "scalar" else tuple(map(int, text.split("x")))


def shapes(text):
    return [extents(word) for word in text.split()]


def groups(text):
    """A group of shapes per word: "3x4:4 2:2" is [((3, 4), (4,)), ((2,), (2,))]."""
    return [tuple(map(extents, word.split(":"))) for word in text.split()]


def number(v, dtype):
    if np.isnan(v):
        return "nan"
    text = repr(float(v)) if dtype == F64 else str(np.float32(v))
    return text[:-2] if text.endswith(".0") else text


def edges_in(inputs):
    """Returns tags for edge values in the inputs."""
    tags = set()
    for a in map(np.asarray, inputs.values()):
        extents_of = {"rank-0": a.ndim == 0, "empty": a.size == 0, "size-1": 1 in a.shape}
        tags |= {tag for tag, there in extents_of.items() if there}
        if a.dtype.kind == "f":
            zero, minus = a == 0, np.signbit(a)
            values = {"0": zero & ~minus, "-0": zero & minus, "inf": a == INF, "-inf": a == -INF, "nan": np.isnan(a)}
            tags |= {tag for tag, places in values.items() if places.any()}
    return tags


def case(op, label, compute, inputs, attrs=None, tags=(), dtype=F64, seed=None):
    """Records compute(**inputs), which returns a tensor or (sum, count), and the gradients of sum(output * seed).

    The tag "raises" records that PyTorch throws.
    """
    name = f"{op}/{label}{'-float32' if dtype == F32 else ''}".replace(" ", "")
    assert name not in names, f"two cases are called {name}"
    names.add(name)
    lines = [f"case {name}", f"dtype {str(dtype)[6:]}"]
    recorded.setdefault(op, []).append(lines)
    found = sorted(edges_in(inputs) | set(tags))
    lines += [f"tags {' '.join(found)}"] if found else []
    for key, value in (attrs or {}).items():
        values = value if isinstance(value, (list, tuple)) else [value]
        lines.append(f"attr {key} {' '.join(number(v, F64) for v in values)}".rstrip())

    def write(kind, key, tensor):
        values = tensor.detach().reshape(-1).numpy()
        text = " ".join(str(v) if values.dtype.kind == "i" else number(v, dtype) for v in values)
        lines.append(f"{kind} {key} [{' '.join(map(str, tensor.shape))}] {text}".rstrip())

    tensors = {}
    for key, value in inputs.items():
        if getattr(value, "dtype", None) == np.int64:
            tensors[key] = torch.tensor(value)
            write("index", key, tensors[key])
        else:
            wants = not isinstance(value, Data)
            tensors[key] = torch.tensor(np.array(value, dtype=float), dtype=dtype, requires_grad=wants)
            write("input", key, tensors[key])
    try:
        out = compute(**tensors)
    except (RuntimeError, IndexError, ValueError, AssertionError) as why:
        assert "raises" in tags, f"{name}: {why}"
        lines.append("raises")
        return
    assert "raises" not in tags, f"{name} was expected to fail"
    out, count = out if isinstance(out, tuple) else (out, None)
    assert out.dtype == dtype, f"{name}: {out.dtype}"
    cotangent = torch.tensor(rand(name, tuple(out.shape)) if seed is None else seed, dtype=dtype)
    cotangent = cotangent.expand(out.shape).contiguous()
    write("seed", "y", cotangent)
    write("output", "y", out)
    if count is not None:
        lines.append(f"count {count}")
    leaves = {key: tensor for key, tensor in tensors.items() if tensor.requires_grad}
    for key, gradient in zip(leaves, torch.autograd.grad(out, list(leaves.values()), cotangent) if leaves else ()):
        write("grad", key, gradient)
