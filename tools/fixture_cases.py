"""Every operation, its PyTorch equivalent, and the cases for which tools/make-fixtures computes reference values."""
import itertools

from fixture_recorder import F32, F64, INF, NAN, case, data, extents, groups, ints, np, rand, shapes, spell, torch

import fixture_layers
import torch.nn.functional as F

EDGES = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.5, -2.5]
EXTREMES = [1e-300, -1e-300, 1e300, -1e300, 2.2250738585072014e-308, 1.7976931348623157e308]

# ---- elementwise, one operand

UNARY = {
    "neg": torch.neg, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "tanh": torch.tanh,
    "sigmoid": torch.sigmoid, "relu": torch.relu, "gelu": F.gelu, "abs": torch.abs, "sin": torch.sin, "cos": torch.cos,
    "log1p": torch.log1p, "expm1": torch.expm1, "silu": F.silu,
    "softplus": lambda x: -F.logsigmoid(-x),  # PyTorch's softplus returns x from 20 on, an error of 2e-9
}
LARGE = {
    "exp": [700.0, -700.0, 709.7, 710.0, -745.0, -746.0, 88.0, 89.0], "sin": [1e3, -1e4, 3.0, 6.3, 1e-9],
    "cos": [1e3, -1e4, 3.0, 6.3, 1e-9], "tanh": [20.0, -20.0, 1e-9, 0.3, 8.0, 400.0],
    "sigmoid": [40.0, -40.0, 800.0, -800.0, -30.0], "softplus": [40.0, -40.0, 800.0, -700.0, -30.0, 19.0, 21.0, 1e-9],
    "silu": [40.0, -40.0, 700.0, -700.0, -30.0, 1e-9], "log1p": [1e-3, -1e-3, 1e-10, -1e-10, 1e10, -0.999, 0.5, -0.5, 1e-17],
    "expm1": [1e-3, -1e-3, 1e-10, -1e-10, 700.0, 0.5, -0.5, 1e-17, -800.0], "gelu": [6.0, -6.0, 9.0, -9.0, 40.0, -40.0, 1e-9],
}


def unary():
    for op, f in UNARY.items():
        lo, hi = (0.05, 6.0) if op in ("log", "sqrt") else (-0.9, 3.0) if op == "log1p" else (-3.0, 3.0)

        def one(label, x, **more):
            case(op, label, lambda x: f(x), {"x": x}, **more)

        one("edges", EDGES)
        one("edges", EDGES, dtype=F32)
        one("edges-seed-0", EDGES, seed=0.0)
        one("extremes", EXTREMES)
        one("large", LARGE.get(op, [1e3, -1e3, 1e10, 1e-10, 123.456]))
        for shape in shapes("scalar 1 1x1 0 3x0 3x4 2x3x4 17"):
            one(spell(shape), rand(op, shape, lo, hi))
        one("scalar-zero", 0.0)
        one("33", rand(op, (33,), lo, hi), dtype=F32)
        one("2x5", rand(op, (2, 5), lo, hi), dtype=F32)


def clamp():
    values = [-3.0, -1.0, -0.5, 0.0, -0.0, 0.5, 1.0, 3.0, INF, -INF, NAN]
    bounds = {
        "both": {"lo": -1.0, "hi": 1.0}, "lo": {"lo": -1.0}, "hi": {"hi": 0.5}, "crossed": {"lo": 1.0, "hi": -1.0},
        "equal": {"lo": 0.5, "hi": 0.5}, "infinite": {"lo": -INF, "hi": INF}, "zero": {"lo": 0.0, "hi": 0.0},
    }

    def one(label, x, limits, **more):
        ties = {"ties"} if np.isin(np.asarray(x), list(limits.values())).any() else set()
        case("clamp", label, lambda x: torch.clamp(x, limits.get("lo"), limits.get("hi")), {"x": x}, limits, ties,
             **more)

    for name, limits in bounds.items():
        one(f"edges-{name}", values, limits)
    one("edges-both", values, bounds["both"], dtype=F32)
    for shape in shapes("scalar 1x1 0 2x0x3 3x4 2x3x4 17"):
        one(spell(shape), rand("clamp", shape), bounds["both"])
    one("33", rand("clamp", (33,)), bounds["hi"], dtype=F32)


def pow_number():
    def one(label, x, p, **more):
        case("pow_number", f"{label}-to-{p:.3g}", lambda x: torch.pow(x, p), {"x": x}, {"number": p}, **more)

    for p in [0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -2.0, 2.5, -0.5, 1 / 3, INF, -INF, NAN]:
        one("edges", EDGES, p)
    for p in [2.0, 0.5]:
        one("edges", EDGES, p, dtype=F32)
    for shape, p in zip(shapes("scalar 1 0 3x4 2x3x4 17"), [3.0, -1.5, 2.0, 2.5, -2.0, 0.7]):
        one(spell(shape), rand("pow", shape, 0.1, 4), p)
    one("extremes", EXTREMES, 2.0)


NUMBER = {
    "add_number": lambda x, c: x + c, "number_add": lambda x, c: c + x, "sub_number": lambda x, c: x - c,
    "number_minus": lambda x, c: c - x, "mul_number": lambda x, c: x * c, "number_mul": lambda x, c: c * x,
    "div_number": lambda x, c: x / c, "number_over": lambda x, c: c / x,
}


def with_number():
    for op, f in NUMBER.items():
        def one(label, x, c, **more):
            case(op, label, lambda x: f(x, c), {"x": x}, {"number": c}, **more)

        for c in [0.3, 0.0, -0.0, INF, NAN]:
            one(f"edges-with-{c:.3g}", EDGES, c)
        for shape, c in zip(shapes("scalar 1x1 0x2 3x4 2x3x4"), [3.0, -1.7, 2.0, 0.3, -7.0]):
            one(spell(shape), rand(op, shape), c)
        one("17", rand(op, (17,)), 0.1, dtype=F32)


# ---- elementwise, two and three operands

BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
    "maximum": torch.maximum, "minimum": torch.minimum,
    "squared_difference": lambda a, b: F.mse_loss(*torch.broadcast_tensors(a, b), reduction="none"),
}
PAIRS = groups("3x4:3x4 3x4:4 4:3x4 3x1:1x4 3x4:3x1 3x4:scalar scalar:3x4 scalar:scalar 2x3x4:3x1 2x1x4:3x1 "
               "2x3x4:2x1x1 1:1 1x1:5 3:1x1x1 0:0 0x3:3 3x0:3x1 0:1 2x1x3x1:4x1x2")


def binary():
    left, right = zip(*itertools.product(EDGES, EDGES))
    for op, f in BINARY.items():
        lo = 0.1 if op == "pow" else -2.0

        def one(label, a, b, tags=(), **more):
            a, b = np.asarray(a), np.asarray(b)
            broadcast = {"broadcast"} if a.shape != b.shape else set()
            ties = {"ties"} if op in ("maximum", "minimum") and "raises" not in tags and (a == b).any() else set()
            case(op, label, lambda a, b: f(a, b), {"a": a, "b": b}, tags=broadcast | ties | set(tags), **more)

        one("edges", left, right)
        one("edges", left, right, dtype=F32)
        one("edges-seed-0", left, right, seed=0.0)
        one("edges-column-with-row", np.reshape(EDGES[:6], (6, 1)), EDGES[:6])
        one("extremes", EXTREMES, EXTREMES[::-1])
        for a, b in PAIRS:
            one(f"{spell(a)}-with-{spell(b)}", rand(op + "a", a, lo), rand(op + "b", b))
        for a, b in groups("17:17 3x5:5"):
            one(f"{spell(a)}-with-{spell(b)}", rand(op + "a", a, lo), rand(op + "b", b), dtype=F32)
        one("cannot-broadcast", rand("a", (3, 2)), rand("b", (4,)), tags={"raises"})


def where():
    def one(label, mask, a, b, **more):
        tags = {"broadcast"} if len({np.shape(mask), np.shape(a), np.shape(b)}) > 1 else set()
        case("where", label, lambda mask, a, b: torch.where(mask != 0, a, b), {"mask": ints(mask), "a": a, "b": b},
             tags=tags, **more)

    flip = [1, 0, 1, 0, 1, 0, 1, 0, 1]
    one("edges", flip, EDGES, EDGES[::-1])
    one("edges", flip, EDGES, EDGES[::-1], dtype=F32)
    one("edges-unselected", [0] * 9, EDGES, np.arange(9.0))
    one("edges-seed-0", flip, EDGES, EDGES[::-1], seed=0.0)
    for kind, listed in [(F64, "3x4:3x4:3x4 4:3x4:3x4 3x1:3x4:4 3x4:4:3x1 2x3x4:scalar:3x1 3x1:1x4:1x1 "
                               "2x3x4:scalar:scalar 0:0:0 0x3:3:scalar 1:1:1 17:17:1"), (F32, "3x5:3x5:5")]:
        for m, a, b in groups(listed):
            mask = np.random.RandomState(sum(m)).randint(0, 2, m)
            one("-".join(map(spell, (m, a, b))), mask, rand("where a", a), rand("where b", b), dtype=kind)


# ---- reductions

SPECIAL = np.array([[0.0, -0.0, INF, 1.0], [-INF, 2.0, 0.5, -1.0], [NAN, 1.0, 2.0, 3.0], [-INF, -INF, -INF, -INF],
                    [INF, -INF, 0.0, 1.0], [INF, INF, 1.0, 0.0]])
TIES = np.array([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0], [0.0, -0.0, -1.0, -0.0], [3.0, 1.0, 0.5, 3.0]])
FAR = [[1000.0, 1000.5, 999.0], [-1000.0, -1001.0, -999.5], [-2000.0, 0.0, 2000.0]]

REDUCTIONS = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "logsumexp": torch.logsumexp}
AXES = ("3x4:all 3x4:0 3x4:1 3x4:0,1 2x3x4:all 2x3x4:0 2x3x4:1 2x3x4:2 2x3x4:0,1 2x3x4:1,2 2x3x4:0,2 2x3x4:0,1,2 "
        "2x3x2x3:1,3 2x3x2x3:0,2 3x1x4:1 1x1:all 5:0 37:0 3x37:1 37x3:0 scalar:all")


def reductions():
    for op, f in REDUCTIONS.items():
        def one(label, x, axes, keep=False, **more):
            listed = tuple(range(np.ndim(x))) if axes == "all" else tuple(map(int, axes.split(",")))
            attrs = ({} if axes == "all" else {"axes": listed}) | ({"keepdims": 1} if keep else {})
            case(op, f"{label}-axes-{axes}{'-keepdims' if keep else ''}", lambda x: f(x, listed, keep), {"x": x}, attrs,
                 **more)

        for text, axes in (word.split(":") for word in AXES.split()):
            one(text, rand(op, extents(text)), axes)
        for text, axes in (word.split(":") for word in "3x4:all 3x4:0 3x4:1 2x3x4:1 2x3x4:0,2".split()):
            one(text, rand(op, extents(text)), axes, True)
        one("3x4", rand(op, (3, 4)), "-1", tags={"negative-axis"})
        one("specials", SPECIAL, "1")
        one("specials", SPECIAL, "0")
        one("specials", SPECIAL[:2], "all")
        one("specials", SPECIAL, "1", True, dtype=F32)
        for axes in ("1", "0", "all"):
            one("ties", TIES, axes, tags={"ties"})
        one("ties", TIES, "0,1", True, tags={"ties"}, dtype=F32)
        one("5x7", rand(op, (5, 7)), "1", dtype=F32)
        one("41", rand(op, (41,)), "all", dtype=F32)
        one("0x3", np.zeros((0, 3)), "1")
        one("3x0x2", np.zeros((3, 0, 2)), "2")
        of_nothing = {"raises"} if op == "max" else set()
        one("3x0", np.zeros((3, 0)), "1", tags=of_nothing)
        one("0x3", np.zeros((0, 3)), "0", tags=of_nothing)
        one("3x4", rand(op, (3, 4)), "2", tags={"raises"})
        if op == "logsumexp":
            one("large", FAR, "1")
            one("large", [[100.0, 100.5, 99.0], [-100.0, -101.0, -99.5]], "1", dtype=F32)


def var():
    def one(label, x, axes, unbiased=True, keep=False, **more):
        listed = tuple(range(np.ndim(x))) if axes == "all" else tuple(map(int, axes.split(",")))
        attrs = ({} if axes == "all" else {"axes": listed}) | ({"keepdims": 1} if keep else {})
        case("var", f"{label}-axes-{axes}{'' if unbiased else '-biased'}{'-keepdims' if keep else ''}",
             lambda x: torch.var(x, listed, unbiased, keep), {"x": x}, attrs | ({"unbiased": 1} if unbiased else {}), **more)

    for text, axes in (word.split(":") for word in "3x4:all 3x4:0 3x4:1 2x3x4:1 2x3x4:0,2 37:0 3x37:1".split()):
        one(text, rand("var", extents(text)), axes)
        one(text, rand("var", extents(text)), axes, False, True)
    one("3x4", rand("var", (3, 4)), "-1", tags={"negative-axis"})
    one("one", rand("var", (3, 1)), "1")
    one("one", rand("var", (3, 1)), "1", False)
    one("far-from-zero", [[100.0, 101.0, 103.0], [-100.0, -100.0, -98.0]], "1")
    one("infinity", [[0.0, INF, 1.0], [2.0, 1.0, -INF]], "1")
    one("constant-rows", [[2.0, 2.0, 2.0], [0.0, -0.0, 0.0]], "1")
    one("specials", [[0.0, -0.0, NAN, 1.0], [INF, -INF, 0.0, 1.0], [2.0, 2.0, 1.0, 0.0]], "1")
    one("specials", [[0.0, -0.0, NAN, 1.0], [INF, -INF, 0.0, 1.0]], "1", False, dtype=F32)
    one("5x7", rand("var", (5, 7)), "1", dtype=F32)
    one("0x3", np.zeros((0, 3)), "1")
    one("3x0", np.zeros((3, 0)), "1", False)
    one("3x0", np.zeros((3, 0)), "1")
    one("3x4", rand("var", (3, 4)), "2", tags={"raises"})


ZEROS = np.array([[0.0, 2.0, 3.0, -1.5], [2.0, 0.0, -0.5, 4.0], [0.0, 1.0, 0.0, 2.0], [0.0, -0.0, 3.0, 0.0], [1.5, 2.0, -3.0, 0.5]])


def prod():
    def one(label, x, axis=None, keep=False, **more):
        case("prod", f"{label}-axis-{'all' if axis is None else axis}{'-keepdims' if keep else ''}",
             lambda x: torch.prod(x) if axis is None else torch.prod(x, axis, keep), {"x": x},
             ({} if axis is None else {"axes": (axis,)}) | ({"keepdims": 1} if keep else {}), **more)

    for shape in shapes("3x4 2x3x4 5 37 1x1 3x1x4"):
        for axis in (None, *range(len(shape))):
            one(spell(shape), rand("prod", shape), axis)
    one("scalar", rand("prod", ()))
    one("3x4", rand("prod", (3, 4)), 1, True)
    one("3x4", rand("prod", (3, 4)), -1, tags={"negative-axis"})
    for axis in (0, 1, None):
        one("zeros", ZEROS, axis)
        one("zeros", ZEROS, axis, dtype=F32)
    one("one-zero", ZEROS[:1])
    one("one-zero-and-inf", [[0.0, INF, 2.0], [-INF, -0.0, 1.0]], 1)
    one("nan", [[NAN, 1.0, 2.0], [1.0, -2.0, 0.5]], 1)
    one("5x7", rand("prod", (5, 7)), 1, dtype=F32)
    one("0x3", np.zeros((0, 3)), 1)
    one("3x0", np.zeros((3, 0)), 1)
    one("3x4", rand("prod", (3, 4)), 2, tags={"raises"})


def cumsum():
    def one(label, x, axis, **more):
        case("cumsum", f"{label}-axis-{axis}", lambda x: x.cumsum(axis), {"x": x}, {"axis": axis}, **more)

    for shape in shapes("4 3x4 2x3x4 1 3x1 1x5 37 2x19 0 0x3 3x0 2x0x3"):
        for axis in range(len(shape)):
            one(spell(shape), rand("cumsum", shape), axis)
    one("3x4", rand("cumsum", (3, 4)), -1, tags={"negative-axis"})
    one("specials", SPECIAL, 1)
    one("specials", SPECIAL, 0, dtype=F32)
    one("3x9", rand("cumsum", (3, 9)), 1, dtype=F32)
    one("3x4", rand("cumsum", (3, 4)), 2, tags={"raises"})


def argmax():
    """Records indices, which have no gradient, as numbers of the input's type."""
    def one(label, x, axis, keep=False, **more):
        case("argmax", f"{label}-axis-{axis}{'-keepdims' if keep else ''}", lambda x: x.argmax(axis, keep).to(x.dtype),
             {"x": data(x)}, {"axis": axis} | ({"keepdims": 1} if keep else {}), **more)

    for shape in shapes("4 3x4 2x3x4 1 3x1 37 2x19 0x3"):
        for axis in range(len(shape)):
            if shape[axis]:
                one(spell(shape), rand("argmax", shape), axis)
    one("3x4", rand("argmax", (3, 4)), -1, tags={"negative-axis"})
    one("3x4", rand("argmax", (3, 4)), 0, True)
    for axis in (0, 1):
        one("ties", TIES, axis, tags={"ties"})
        one("specials", SPECIAL, axis)
        one("specials", SPECIAL, axis, dtype=F32)
    one("nans", [[NAN, 1.0, NAN], [1.0, NAN, INF]], 1)
    one("0x3", np.zeros((0, 3)), 0, tags={"raises"})
    one("3x4", rand("argmax", (3, 4)), 2, tags={"raises"})


def softmaxes():
    for op, f in {"softmax": torch.softmax, "log_softmax": torch.log_softmax}.items():
        def one(label, x, axis, **more):
            case(op, f"{label}-axis-{axis}", lambda x: f(x, axis), {"x": x}, {"axis": axis}, **more)

        for shape in shapes("4 3x4 2x3x4 1 3x1 1x5 37 2x19 0 0x3 3x0 2x0x3"):
            for axis in range(len(shape)):
                one(spell(shape), rand(op, shape), axis)
        one("3x4", rand(op, (3, 4)), -1, tags={"negative-axis"})
        one("specials", SPECIAL, 1)
        one("specials", SPECIAL, 1, dtype=F32)
        one("masked", [[0.5, -INF, 1.0], [-INF, -INF, 2.0]], 1)
        one("ties", TIES, 1, tags={"ties"})
        one("large", FAR, 1)
        one("3x10", rand(op, (3, 10)), 1, dtype=F32)
        one("3x10", rand(op, (3, 10)), 0, dtype=F32)
        one("3x4", rand(op, (3, 4)), 2, tags={"raises"})


# ---- operations that only move data

MOVED = np.array([[0.0, -0.0, INF], [-INF, NAN, 1.0]])


def moved(op, label, f, x, attrs, **more):
    case(op, label, lambda x: f(x), {"x": x}, attrs, **more)


def reshape():
    def one(label, x, to, **more):
        moved("reshape", f"{label}-to-{spell(to)}", lambda x: x.reshape(to), x, {"shape": to}, **more)

    for a, b in groups("3x4:12 12:3x4 2x3x4:4x6 2x3x4:2x12 scalar:1 1x1:scalar scalar:1x1x1 0:0x3 2x0:0 6:1x6x1"):
        one(spell(a), rand("reshape", a), b)
    for a, b in itertools.permutations(shapes("6 2x3 3x2"), 2):
        one(f"specials-{spell(a)}", MOVED.reshape(a), b)
        one(f"specials-{spell(a)}", MOVED.reshape(a), b, dtype=F32)
    one("3x4", rand("reshape", (3, 4)), (5,), tags={"raises"})


def transpose():
    def one(label, x, i, j, **more):
        moved("transpose", f"{label}-{i}-{j}", lambda x: x.transpose(i, j), x, {"axes": (i, j)}, **more)

    for text, i, j in [("3x4", 0, 1), ("3x4", 1, 0), ("2x3x4", 0, 2), ("2x3x4", 0, 1), ("2x3x4", 1, 2), ("2x3x4", 1, 1),
                       ("2x3x2x2", 1, 3), ("0x3", 0, 1), ("2x0x3", 0, 2), ("1x4", 0, 1), ("5x1x2", 0, 1),
                       ("17x19", 0, 1)]:
        one(text, rand("transpose", extents(text)), i, j)
    one("2x3x4", rand("transpose", (2, 3, 4)), -1, -2, tags={"negative-axis"})
    one("specials", MOVED, 0, 1)
    one("specials", MOVED, 0, 1, dtype=F32)
    one("3x4", rand("transpose", (3, 4)), 0, 2, tags={"raises"})


def permute():
    def one(label, x, order, **more):
        moved("permute", f"{label}-{','.join(map(str, order))}", lambda x: x.permute(order), x, {"axes": order}, **more)

    for text, order in [("3x4", (1, 0)), ("3x4", (0, 1)), ("2x3x4", (2, 0, 1)), ("2x3x4", (1, 2, 0)),
                        ("2x3x4", (0, 2, 1)), ("2x3x4", (2, 1, 0)), ("2x3x2x2", (3, 1, 0, 2)),
                        ("2x1x3x1x2", (4, 3, 2, 1, 0)), ("0x3", (1, 0)), ("5", (0,)), ("scalar", ())]:
        one(text, rand("permute", extents(text)), order)
    one("specials", MOVED, (1, 0))
    one("specials", MOVED, (1, 0), dtype=F32)
    one("3x4", rand("permute", (3, 4)), (0, 0), tags={"raises"})


def slices():
    def one(label, x, axis, start, end, **more):
        moved("slice", f"{label}-axis-{axis}-{start}-{end}", lambda x: x.narrow(axis, start, end - start), x,
              {"axis": axis, "from": start, "to": end}, **more)

    for text, axis, start, end in [("6", 0, 1, 4), ("6x3", 0, 0, 2), ("6x3", 0, 2, 6), ("3x4", 1, 0, 1),
                                   ("3x4", 1, 1, 4), ("3x4", 1, 0, 4), ("2x3x4", 1, 1, 2), ("2x3x4", 2, 3, 4),
                                   ("2x5x2x3", 1, 2, 4),
                                   ("3x4", 0, 1, 1), ("0x3", 1, 1, 3), ("1x4", 0, 0, 1)]:
        one(text, rand("slice", extents(text)), axis, start, end)
    one("specials", MOVED, 1, 1, 3)
    one("specials", MOVED, 1, 1, 3, dtype=F32)
    one("3x4", rand("slice", (3, 4)), 1, 2, 6, tags={"raises"})


def broadcast_to():
    def one(label, x, to, **more):
        moved("broadcast_to", f"{label}-to-{spell(to)}", lambda x: x.broadcast_to(to), x, {"shape": to}, **more)

    for a, b in groups("scalar:3 scalar:scalar scalar:2x3 4:3x4 3x1:3x4 1x4:3x4 3x4:3x4 3x1:2x3x4 1x1:2x5 "
                       "2x1x3x1:2x4x3x2 1:0 3x1:3x0 0:2x0"):
        one(spell(a), rand("broadcast", a), b)
    one("specials", MOVED, (2, 2, 3))
    one("specials", MOVED, (2, 2, 3), dtype=F32)
    one("3", rand("broadcast", (3,)), (4,), tags={"raises"})


def rows():
    def one(label, x, index, **more):
        case("rows", label, lambda x, index: x.index_select(0, index), {"x": x, "index": ints(index)}, **more)

    for text, index in [("5x3", [0, 2, 4]), ("5x3", [4, 4, 1, 4]), ("5x3", [2]), ("5x3", []), ("4", [3, 0, 0]),
                        ("3x2x2", [2, 1]), ("1x4", [0, 0, 0]), ("3x0", [1, 1]), ("5x3", [0, 1, 2, 3, 4]),
                        ("6x1", [5, 0, 5])]:
        repeats = {"repeats"} if len(set(index)) < len(index) else set()
        one(f"{text}-{','.join(map(str, index)) or 'none'}", rand("rows", extents(text)), index, tags=repeats)
    one("specials", MOVED, [1, 0, 1], tags={"repeats"})
    one("specials", MOVED, [1, 0, 1], tags={"repeats"}, dtype=F32)
    one("beyond", rand("rows", (5, 3)), [0, 5], tags={"raises"})


def concat():
    def one(label, parts, axis, **more):
        named = dict(zip("abcd", parts))
        case("concat", f"{label}-axis-{axis}", lambda **t: torch.cat([t[name] for name in named], axis), named,
             {"axis": axis}, **more)

    for listed, axis in [("3:2", 0), ("2x3:1x3", 0), ("2x3:2x1", 1), ("2x1x2:2x3x2:2x2x2", 1), ("1x2:2x2:3x2:1x2", 0),
                         ("2x2x1:2x2x3", 2), ("2x3:0x3", 0), ("2x0:2x3:2x0", 1), ("0x2:0x1", 1), ("1:1:1:1", 0)]:
        (parts,) = groups(listed)
        one(listed.replace(":", "-"), [rand(f"concat {i}", s) for i, s in enumerate(parts)], axis)
    one("specials", [MOVED, -MOVED], 1)
    one("specials", [MOVED, -MOVED], 1, dtype=F32)
    one("specials", [MOVED, MOVED[::-1], MOVED[:1]], 0)
    one("2x3-with-2x4", [rand("a", (2, 3)), rand("b", (2, 4))], 0, tags={"raises"})


def stack():
    def one(label, parts, axis, **more):
        named = dict(zip("abcd", parts))
        case("stack", f"{label}-axis-{axis}", lambda **t: torch.stack([t[name] for name in named], axis), named,
             {"axis": axis}, **more)

    for text, count, axis in [("3", 2, 0), ("3", 2, 1), ("2x3", 3, 1), ("2x3", 2, -1), ("2x3", 1, 0), ("scalar", 3, 0),
                              ("0x3", 2, 1), ("2x1x2", 4, 2), ("2x3", 2, -3)]:
        one(f"{count}-of-{text}", [rand(f"stack {i}", extents(text)) for i in range(count)], axis)
    one("specials", [MOVED, -MOVED], 1)
    one("specials", [MOVED, -MOVED], 2, dtype=F32)
    one("2x3-with-2x4", [rand("a", (2, 3)), rand("b", (2, 4))], 0, tags={"raises"})
    one("2-of-2x3", [rand("a", (2, 3)), rand("b", (2, 3))], 3, tags={"raises"})


def squeezes():
    for text, axis in [("3x4", 0), ("3x4", 1), ("3x4", 2), ("3x4", -1), ("3x4", -3), ("scalar", 0), ("2x0", 1), ("1x1", 1)]:
        case("unsqueeze", f"{text}-axis-{axis}", lambda x: x.unsqueeze(axis), {"x": rand("unsqueeze", extents(text))},
             {"axis": axis})
    case("unsqueeze", "specials", lambda x: x.unsqueeze(1), {"x": MOVED}, {"axis": 1})
    case("unsqueeze", "specials", lambda x: x.unsqueeze(1), {"x": MOVED}, {"axis": 1}, dtype=F32)
    case("unsqueeze", "3x4-axis-3", lambda x: x.unsqueeze(3), {"x": rand("unsqueeze", (3, 4))}, {"axis": 3}, {"raises"})
    for text, axis in [("3x1x4", 1), ("1x3x1", 0), ("1x3x1", -1), ("1", 0), ("1x0", 0)]:
        case("squeeze", f"{text}-axis-{axis}", lambda x: x.squeeze(axis), {"x": rand("squeeze", extents(text))},
             {"axes": (axis,)})
    for text in ("3x1x4", "1x3x1", "1x1", "2x3", "scalar", "1x0x1"):
        case("squeeze", f"{text}-all", lambda x: x.squeeze(), {"x": rand("squeeze", extents(text))})
    case("squeeze", "specials", lambda x: x.squeeze(), {"x": MOVED[None]})
    case("squeeze", "specials", lambda x: x.squeeze(), {"x": MOVED[None]}, dtype=F32)
    case("squeeze", "3x1x4-axis-3", lambda x: x.squeeze(3), {"x": rand("squeeze", (3, 1, 4))}, {"axes": (3,)}, {"raises"})


# ---- linear algebra

ODD = [[0.0, -0.0, 1.0], [INF, 1.0, 2.0], [-INF, 0.5, 0.0], [NAN, 1.0, 0.0]]
PLAIN = [[1.0, 0.0], [2.0, 3.0], [-1.0, 0.5]]
TOY = np.array([[0.375, -1.250, 0.500], [-1.125, 0.500, -0.875], [0.625, 1.000, -1.500], [-0.250, -0.375, 0.250],
                [-1.500, 0.750, -0.625], [-0.2466, -0.5010, -1.4250]])
EXACT_TOY = np.vstack([TOY[:5], [-505 / 2048, -513 / 1024, -5837 / 4096]])  # its column sums are exact in float32


def matmul():
    def one(label, a, b, flags="", **more):
        def f(a, b):
            return torch.matmul(a.mT if "a" in flags else a, b.mT if "b" in flags else b)

        attrs = {f"transpose_{side}": 1 for side in flags}
        case("matmul", "-".join([label] + [f"t{side}" for side in flags]), f, {"a": a, "b": b}, attrs, **more)

    def shaped(listed, flags="", **more):
        for a, b in groups(listed):
            one(f"{spell(a)}-by-{spell(b)}", rand("left" + spell(a), a), rand("right" + spell(b), b), flags, **more)

    shaped("3:3 1:1 2x3:3 3:3x4 2x3:3x4 6x3:3 1x3:3x1 3x1:1x4 1x1:1x1")
    shaped("17x5:5x19 9x31:31x17 1x37:37x5 65x70:70 66:66x67 600:600")  # on both sides of the ordered kernel's limit
    shaped("0:0 2x0:0 0:0x3 2x0:0x3 0x3:3x2 2x3:3x0 0x3:3 2x0x3:2x3x2 0x2x3:3x2 2x2x0:0x3")
    shaped("2x3x4:2x4x5 2x3x4:4x5 3x4:2x4x5 2x1x3x2:3x2x4 2x3x4:4 4:2x4x3 1x2x3:4x3x2 3x1x2x2:1x2x2x3")
    shaped("3x2:3x4 21x17:21x13 2x4x3:2x4x5 3x2:3 0x2:0x3", "a")
    shaped("2x3:4x3 17x21:13x21 2x3x4:5x4 3:4x3 2x0:3x0", "b")
    shaped("3x2:4x3 21x17:13x21 4x3:2x5x4 3x1:1x3", "ab")
    for kind in (F64, F32):
        one("specials-by-matrix", ODD, PLAIN, dtype=kind)
        one("matrix-by-specials", [[1.0, 0.0, 2.0, -1.0], [0.0, 0.0, 0.0, 0.0]], ODD, dtype=kind)
        one("toy", TOY, [0.5, -1.25, 0.75], dtype=kind)
        shaped("5x7:7x3", dtype=kind)
        shaped("16x24:16x12", "a", dtype=kind)
    shaped("2x3:4x2 3:4 2x3x4:3x4x2 scalar:3", tags={"raises"})


def linear():
    for op, of in (("linear", lambda y: y), ("linear_relu", torch.relu)):
        def one(label, x, w, b, **more):
            case(op, label, lambda x, w, b, of=of: of(F.linear(x, w.t(), b)), {"x": x, "w": w, "b": b}, **more)

        for text, out in [("4x3", 2), ("1x3", 2), ("3", 2), ("2x3x4", 5), ("5x1", 1), ("1x1", 1), ("6x3", 1), ("0x3", 2),
                          ("2x0", 3), ("2x3", 0), ("33x20", 17), ("2x0x3", 2)]:
            x = extents(text)
            one(f"{text}-to-{out}", rand("linear", x), rand("weights", (x[-1], out)), rand("bias", (out,)))
        one("specials", ODD, PLAIN, [0.1, -0.0])
        one("specials", ODD, PLAIN, [0.1, -0.0], dtype=F32)
        one("7x5-to-3", rand("linear", (7, 5)), rand("weights", (5, 3)), rand("bias", (3,)), dtype=F32)
        one("4x3-by-2x2", rand("linear", (4, 3)), rand("weights", (2, 2)), rand("bias", (2,)), tags={"raises"})


# ---- losses: (sum, count)

LOSS_SHAPES = shapes("4 scalar 1 3x4 2x3x2 0 0x3 37")


def mse():
    def one(label, x, target, **more):
        case("mse", label, lambda x, target: (F.mse_loss(x, target, reduction="sum"), x.numel()),
             {"x": x, "target": target}, **more)

    for shape in LOSS_SHAPES:
        one(spell(shape), rand("mse", shape), rand("target", shape))
    one("specials", EDGES, EDGES[::-1])
    one("specials", EDGES, EDGES[::-1], dtype=F32)
    one("equal", [0.0, -0.0, 1.0, 3.0], [0.0, -0.0, 1.0, 3.0])
    one("target-is-data", rand("mse", (3, 2)), data(rand("target", (3, 2))))
    one("3x5", rand("mse", (3, 5)), rand("target", (3, 5)), dtype=F32)


def cross_entropy():
    def one(label, x, labels, ignore=None, smoothing=None, tags=(), **more):
        skip, smooth = -100 if ignore is None else ignore, 0.0 if smoothing is None else smoothing

        def f(x, labels):
            return (F.cross_entropy(x, labels, reduction="sum", ignore_index=skip, label_smoothing=smooth),
                    int((labels != skip).sum()))

        ignored = {"ignored"} if skip in labels else set()
        case("cross_entropy", label, f, {"x": x, "labels": ints(labels)},
             {key: v for key, v in (("ignore_index", ignore), ("smoothing", smoothing)) if v is not None},
             ignored | set(tags), **more)

    def shaped(text, labels, **more):
        one(text, rand("entropy", extents(text)), labels, **more)

    shaped("3x4", [0, 3, 1])
    shaped("1x4", [2])
    shaped("3x1", [0, 0, 0])
    shaped("1x1", [0])
    shaped("0x4", [])
    shaped("19x10", [i * 7 % 10 for i in range(19)])
    shaped("2x37", [36, 0])
    shaped("5x10", [9, 0, 3, 3, 1], dtype=F32)
    one("some-ignored-by-default", rand("entropy", (4, 3)), [0, -100, 2, -100])
    one("some-ignored", rand("entropy", (4, 3)), [0, 1, 2, 1], 1)
    one("some-ignored", rand("entropy", (4, 3)), [0, 1, 2, 1], 1, dtype=F32)
    one("all-ignored", rand("entropy", (3, 4)), [2, 2, 2], 2)
    one("all-ignored-by-minus-1", rand("entropy", (2, 4)), [-1, -1], -1)
    one("ignored-row-is-nan", [[0.0, 1.0], [NAN, INF], [-0.0, 2.0]], [1, -100, 0])
    one("specials", SPECIAL, [0, 1, 2, 0, 0, 1])
    one("specials", SPECIAL, [2, 0, 0, 3, 1, 2], dtype=F32)
    one("masked-class", [[0.0, -INF, 1.0], [-INF, 2.0, -INF]], [1, 1])
    one("large", FAR[::2], [1, 2])
    one("ties", TIES, [1, 2, 0, 3], tags={"ties"})
    one("label-too-large", rand("entropy", (2, 3)), [0, 3], tags={"raises"})
    one("too-few-labels", rand("entropy", (3, 2)), [0, 1], tags={"raises"})
    one("label-negative", rand("entropy", (2, 3)), [0, -1], tags={"raises"})
    for smoothing in (0.0, 0.1, 0.9, 1.0):
        one(f"smoothed-by-{smoothing}", rand("entropy", (4, 3)), [0, -100, 2, 1], smoothing=smoothing)
    one("smoothed", rand("entropy", (3, 37)), [36, 0, 5], 5, 0.3)
    one("smoothed", rand("entropy", (3, 37)), [36, 0, 5], 5, 0.3, dtype=F32)
    one("smoothed-masked-class", [[0.0, -INF, 1.0], [-INF, 2.0, -INF]], [0, 1], smoothing=0.1)
    one("smoothed-specials", SPECIAL, [0, 1, 2, 0, 0, 1], smoothing=0.2)
    one("smoothed-large", FAR[::2], [1, 2], smoothing=0.5)
    one("smoothed-all-ignored", rand("entropy", (2, 4)), [-100, -100], smoothing=0.5)
    one("smoothed-by-2", rand("entropy", (2, 3)), [0, 1], smoothing=2.0, tags={"raises"})


def binary_cross_entropy():
    def one(label, p, target, **more):
        case("binary_cross_entropy", label,
             lambda x, target: (F.binary_cross_entropy(x, target, reduction="sum"), x.numel()),
             {"x": p, "target": target}, **more)

    for shape in LOSS_SHAPES:
        one(spell(shape), rand("probability", shape, 0.01, 0.99), np.round(rand("target", shape, 0, 1)))
    for kind in (F64, F32):
        one("certain", [0.0, 0.0, 1.0, 1.0, -0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0, 1.0, 0.5, 0.25], dtype=kind)
        one("nearly-certain", [1e-30, 1e-30, 1 - 1e-15, 1 - 1e-7, 1e-14], [0.0, 1.0, 0.0, 1.0, 0.5], dtype=kind)
        one("soft", rand("probability", (3, 5), 0.01, 0.99), rand("target", (3, 5), 0, 1), dtype=kind)
    one("target-is-data", rand("probability", (3, 2), 0.01, 0.99), data(rand("target", (3, 2), 0, 1)))
    one("impossible", [1.5, 0.5], [1.0, 0.0], tags={"raises"})
    one("negative", [0.5, -0.25], [1.0, 0.0], tags={"raises"})
    one("nan", [NAN, 0.5], [1.0, 0.0], tags={"raises"})


def layer_norm():
    def one(label, x, eps=1e-5, gain=None, bias=None, **more):
        row = np.shape(x)[-1:]
        gain, bias = rand("gain", row) if gain is None else gain, rand("bias", row) if bias is None else bias
        case("layer_norm", label, lambda x, gain, bias: F.layer_norm(x, row, gain, bias, eps),
             {"x": x, "gain": gain, "bias": bias}, {"eps": eps}, **more)

    for shape in shapes("5 3x4 2x3x4 1x4 3x1 1x1 0x3 2x37 17x2 2x0x3"):
        one(spell(shape), rand("norm", shape))
    one("3x4-large-eps", rand("norm", (3, 4)), 0.5)
    one("3x4-small-eps", rand("norm", (3, 4)), 1e-12)
    one("constant-rows", [[2.0, 2.0, 2.0], [0.0, -0.0, 0.0]])
    one("far-from-zero", [[100.0, 101.0, 103.0], [-1000.0, -1000.0, -999.0]])
    one("specials", SPECIAL[[0, 2, 3]])
    one("specials", SPECIAL[[0, 2, 3]], dtype=F32)
    one("zero-gain", rand("norm", (2, 3)), gain=[0.0, -0.0, 1.0], bias=[0.0, 0.0, 0.0])
    one("4x9", rand("norm", (4, 9)), dtype=F32)
    one("gain-of-3-for-4", rand("norm", (2, 4)), gain=[1.0, 1.0, 1.0], tags={"raises"})


# ---- laws of accumulation

def toy():
    """Sums mean(x w) / `divisor` over micro-batches, which is the full batch for `divisor` = `parts`."""
    for kind, (rows, x) in itertools.product((F64, F32), {"toy": TOY, "exact": EXACT_TOY}.items()):
        for parts, divisor in [(1, 1), (3, 1), (3, 3), (2, 1), (2, 2), (6, 1), (6, 6)]:
            case("toy", f"{rows}-{parts}-parts-each-by-{divisor}",
                 lambda x, w: sum((m @ w).mean() / divisor for m in x.chunk(parts)),
                 {"x": data(x), "w": [0.5, -1.25, 0.75]}, {"parts": parts, "divisor": divisor}, dtype=kind, seed=1.0)


def split_mse():
    """Records the full batch's gradient, which the test computes by micro-batches of the given sizes."""
    def network(x, target, w1, b1, w2, b2):
        return F.mse_loss(torch.tanh(x @ w1 + b1) @ w2 + b2, target)

    inputs = {"x": data(rand("x", (6, 3))), "target": data(rand("t", (6, 2))), "w1": rand("w1", (3, 4)),
              "b1": rand("b1", (4,)), "w2": rand("w2", (4, 2)), "b2": rand("b2", (2,))}
    for kind, sizes in itertools.product((F64, F32), SPLITS):
        case("split_mse", f"sizes-{','.join(map(str, sizes))}", network, inputs, {"sizes": sizes}, dtype=kind, seed=1.0)


def split_cross_entropy():
    """Records a full batch in which only some rows count: the mean is over these, for every split."""
    inputs = {"x": data(rand("x", (6, 3))), "labels": ints([1, -100, 0, 3, -100, 2]), "w": rand("w", (3, 4))}
    for kind, sizes in itertools.product((F64, F32), SPLITS):
        case("split_cross_entropy", f"sizes-{','.join(map(str, sizes))}",
             lambda x, labels, w: F.cross_entropy(x @ w, labels), inputs, {"sizes": sizes}, {"ignored"}, kind, seed=1.0)


SPLITS = [(6,), (3, 3), (2, 2, 2), (4, 2), (1, 5), (1, 1, 1, 1, 1, 1)]


def record_all():
    for family in (unary, clamp, pow_number, with_number, binary, where, reductions, var, prod, cumsum, argmax, softmaxes,
                   reshape, transpose, permute, slices, broadcast_to, rows, concat, stack, squeezes, matmul, linear, mse,
                   cross_entropy, binary_cross_entropy, layer_norm, *fixture_layers.LAYERS, toy, split_mse, split_cross_entropy):
        family()
