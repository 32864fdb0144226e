"""The cases of layers: embedding, dropout, batch norm, convolution, pooling, and the contrastive loss."""
from fixture_recorder import F32, INF, NAN, case, data, extents, ints, np, rand, shapes, spell, torch

import torch.nn.functional as F

# An image (1, 1, 4, 4) and rows (5, 3) with edge values.
ODD_IMAGE = np.array([[[[0.0, -0.0, INF, 1.0], [-INF, 2.0, 0.5, -1.0], [0.25, -0.5, 3.0, 0.0], [1.0, 2.0, NAN, -3.0]]]])
ODD_ROWS = np.array([[0.0, -0.0, 1.0], [INF, 1.0, 2.0], [-INF, 0.5, 0.0], [NAN, 1.0, 0.0], [1.0, 2.0, 4.0]])


def embedding():
    def one(label, weight, indices, padding=None, tags=(), **more):
        indices = np.asarray(indices, np.int64)
        repeats = {"repeats"} if len(set(indices.flat)) < indices.size else set()
        case("embedding", label if padding is None else f"{label}-padding-{padding}",
             lambda weight, index: F.embedding(index, weight, padding_idx=padding),
             {"weight": weight, "index": indices}, {} if padding is None else {"padding": padding},
             repeats | set(tags), **more)

    table = rand("table", (5, 3))
    one("5x3-by-4", table, [0, 2, 4, 2])
    one("5x3-by-2x3", table, [[0, 4, 4], [4, 1, 0]])
    one("5x3-by-scalar", table, 3)
    one("5x3-by-2x1x2", table, [[[1, 1]], [[0, 3]]])
    one("5x3-by-none", table, [])
    one("5x3-by-0x2", table, np.zeros((0, 2)))
    one("1x4", rand("table", (1, 4)), [0, 0, 0])
    one("6x1", rand("table", (6, 1)), [5, 0, 5])
    one("3x17", rand("table", (3, 17)), [2, 0, 2], dtype=F32)
    for padding in (0, 2, -1, -5):
        one("5x3-by-2x3", table, [[0, 2, 2], [4, 1, 0]], padding)
    one("5x3-all-padding", table, [2, 2, 2], 2)
    one("specials", ODD_ROWS, [3, 1, 2, 0, 1])
    one("specials", ODD_ROWS, [3, 1, 2, 0, 1], 1, dtype=F32)
    one("beyond", table, [0, 5], tags={"raises"})
    one("negative", table, [0, -1], tags={"raises"})
    one("5x3-by-2", table, [0, 1], 5, tags={"raises"})
    one("5x3-by-2", table, [0, 1], -6, tags={"raises"})


def philox(counter, key):
    """Philox 4x32-10, as in the paper; its bits select the dropped elements."""
    (a, b, c, d), (k, l) = counter, key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = q >> 32 ^ b ^ k, q & 0xFFFFFFFF, p >> 32 ^ d ^ l, p & 0xFFFFFFFF
        k, l = k + 0x9E3779B9 & 0xFFFFFFFF, l + 0xBB67AE85 & 0xFFFFFFFF
    return a, b, c, d


def kept(shape, p, seed, layer, first):
    """Returns 1 for kept elements: the bits of index i * 2**32 + j decide about element j of item i."""
    halves = lambda n: (n & 0xFFFFFFFF, n >> 32)
    items, width = shape[0], int(np.prod(shape[1:]))
    bits = [philox(halves((first + i << 32 | j) // 4) + halves(layer), halves(seed))[j % 4]
            for i in range(items) for j in range(width)]
    return (np.array(bits, float) >= round(p * 2**32)).reshape(tuple(shape))


def dropout():
    def one(label, x, p, seed=1, layer=0, first=0, **more):
        def f(x):
            if not 0 <= p <= 1:
                return F.dropout(x, p)
            keep = kept(x.shape, p, seed, layer, first)
            noise = torch.tensor(keep, dtype=x.dtype)  # as PyTorch: noise.div_(1 - p), or zeros
            return x * (noise / (1 - p) if p < 1 else noise)

        case("dropout", f"{label}-{p:g}-seed-{seed}-layer-{layer}-first-{first}", lambda x: f(x), {"x": x},
             {"p": p, "seed": seed, "layer": layer, "first": first}, **more)

    one("3x4", rand("dropout", (3, 4)), 0.5)
    one("3x4", rand("dropout", (3, 4)), 0.5, seed=2)
    one("3x4", rand("dropout", (3, 4)), 0.5, layer=7)
    one("3x4", rand("dropout", (3, 4)), 0.5, first=2)
    one("3x4", rand("dropout", (3, 4)), 0.25, seed=2**40 + 3, layer=2**35, first=2**31)
    one("3x4", rand("dropout", (3, 4)), 0.0)
    one("3x4", rand("dropout", (3, 4)), 1.0)
    one("2x3x5", rand("dropout", (2, 3, 5)), 0.1)
    one("1x1", rand("dropout", (1, 1)), 0.9, seed=5)
    one("0x3", rand("dropout", (0, 3)), 0.5)
    one("2x0", rand("dropout", (2, 0)), 0.5)
    one("7", rand("dropout", (7,)), 0.3, first=40)
    one("2x261", rand("dropout", (2, 261)), 0.4, dtype=F32)
    one("specials", ODD_ROWS, 0.5)
    one("specials", ODD_ROWS, 0.5, dtype=F32)
    one("3x4", rand("dropout", (3, 4)), 1.5, tags={"raises"})
    one("3x4", rand("dropout", (3, 4)), -0.5, tags={"raises"})


def batch_norm():
    def one(label, x, eps=1e-5, gain=None, bias=None, dtype=torch.float64, tags=()):
        x = np.asarray(x)
        features = x.shape[1:2]
        inputs = {"x": x, "gain": rand("gain", features) if gain is None else gain,
                  "bias": rand("bias", features) if bias is None else bias}
        mean, var = rand("running", features), rand("running", features, 0.2, 2)
        attrs = {"eps": eps}
        if "raises" not in tags:
            after = torch.zeros(features, dtype=dtype), torch.ones(features, dtype=dtype)
            F.batch_norm(torch.tensor(x, dtype=dtype), *after, training=True, eps=eps)
            if x.size:  # PyTorch does not change them for an empty batch
                attrs |= dict(zip(("running_mean", "running_var"), (t.tolist() for t in after)))
        case("batch_norm", label, lambda x, gain, bias: F.batch_norm(x, None, None, gain, bias, True, eps=eps), inputs,
             attrs, tags, dtype)
        if "raises" not in tags:
            case("batch_norm", f"{label}-evaluated",
                 lambda x, gain, bias, mean, var: F.batch_norm(x, mean, var, gain, bias, eps=eps),
                 inputs | {"mean": data(mean), "var": data(var)}, {"eps": eps}, tags, dtype)

    for shape in shapes("4x3 2x1 5x17 3x2x4x5 2x3x1x1 1x2x3x3 2x3x33 0x3 37x2"):
        one(spell(shape), rand("batch", shape))
    one("4x3-large-eps", rand("batch", (4, 3)), 0.5)
    one("4x3-small-eps", rand("batch", (4, 3)), 1e-12)
    one("constant", [[2.0, 0.0], [2.0, -0.0], [2.0, 0.0]])
    one("far-from-zero", [[100.0, -1000.0], [101.0, -1000.0], [103.0, -999.0]])
    one("specials", ODD_ROWS)
    one("specials", ODD_ROWS, dtype=F32)
    one("zero-gain", rand("batch", (3, 3)), gain=[0.0, -0.0, 1.0], bias=[0.0, 0.0, 0.0])
    one("6x5", rand("batch", (6, 5)), dtype=F32)
    one("2x3x4x4", rand("batch", (2, 3, 4, 4)), dtype=F32)
    one("one-value", rand("batch", (1, 3)), tags={"raises"})
    one("one-value-of-an-image", rand("batch", (1, 3, 1, 1)), tags={"raises"})
    one("gain-of-2-for-3", rand("batch", (4, 3)), gain=[1.0, 1.0], tags={"raises"})


@torch.backends.mkldnn.flags(enabled=False)  # because mkldnn selects its own instructions
def conv2d():
    def one(label, x, weight, bias=None, stride=1, padding=0, tags=(), **more):
        inputs = {"x": x, "weight": weight} | ({} if bias is None else {"bias": bias})
        case("conv2d", label, lambda x, weight, bias=None: F.conv2d(x, weight, bias, stride, padding), inputs,
             {"stride": stride, "padding": padding}, tags, **more)

    def shaped(x, weight, stride=1, padding=0, biased=True, **more):
        wide = extents(weight)
        one(f"{x}-by-{weight}-stride-{stride}-padding-{padding}{'' if biased else '-plain'}",
            rand("image" + x, extents(x)), rand("weight" + weight, wide),
            rand("bias", wide[:1]) if biased else None, stride, padding, **more)

    shaped("2x1x4x4", "3x1x2x2")
    shaped("2x1x4x4", "3x1x2x2", biased=False)
    shaped("2x3x5x4", "2x3x3x3", 1, 1)
    shaped("1x2x5x7", "3x2x3x2", 2, 1)
    shaped("3x2x6x6", "1x2x3x3", 3)
    shaped("2x2x5x5", "2x2x1x1")
    shaped("2x2x5x5", "2x2x1x1", 2)
    shaped("1x1x3x3", "2x1x3x3")
    shaped("1x1x1x1", "1x1x1x1")
    shaped("2x1x2x3", "2x1x3x4", 1, 2)
    shaped("0x2x4x4", "3x2x2x2")
    shaped("5x3x8x8", "4x3x3x3", 1, 1, biased=False)
    shaped("3x2x6x5", "3x2x3x3", 2, 1, dtype=F32)
    shaped("2x2x4x4", "3x2x3x3", 1, 1, dtype=F32)
    one("specials", ODD_IMAGE, rand("weight", (2, 1, 2, 2)), [0.0, -0.0], 1, 1)
    one("specials", ODD_IMAGE, rand("weight", (2, 1, 2, 2)), [0.0, -0.0], 2, dtype=F32)
    for label, x, weight, stride, padding in [("channels-differ", "1x2x4x4", "3x1x2x2", 1, 0),
                                              ("window-too-large", "1x1x3x3", "1x1x4x4", 1, 0),
                                              ("stride-0", "1x1x3x3", "1x1x2x2", 0, 0),
                                              ("padding-negative", "1x1x3x3", "1x1x2x2", 1, -1)]:
        one(label, rand("image", extents(x)), rand("weight", extents(weight)), None, stride, padding, {"raises"})
    one("bias-of-2-for-3", rand("image", (1, 1, 3, 3)), rand("weight", (3, 1, 2, 2)), [1.0, 2.0], tags={"raises"})


def max_pool2d():
    def one(label, x, size, stride=None, tags=(), **more):
        case("max_pool2d", f"{label}-size-{size}{'' if stride is None else f'-stride-{stride}'}",
             lambda x: F.max_pool2d(x, size, stride), {"x": x},
             {"size": size} | ({} if stride is None else {"stride": stride}), tags, **more)

    one("2x3x4x4", rand("pool", (2, 3, 4, 4)), 2)
    one("1x1x5x5", rand("pool", (1, 1, 5, 5)), 2)
    one("1x2x5x5", rand("pool", (1, 2, 5, 5)), 3, 1)
    one("2x1x7x6", rand("pool", (2, 1, 7, 6)), 3, 2)
    one("1x1x7x7", rand("pool", (1, 1, 7, 7)), 2, 3)
    one("1x1x3x3", rand("pool", (1, 1, 3, 3)), 3)
    one("2x2x3x3", rand("pool", (2, 2, 3, 3)), 1)
    one("0x2x4x4", rand("pool", (0, 2, 4, 4)), 2)
    ties = [[[[1.0, 1.0, 0.0, -0.0], [1.0, 1.0, -0.0, 0.0], [2.0, 3.0, 5.0, 5.0], [3.0, 3.0, 4.0, 5.0]]]]
    one("ties", ties, 2, tags={"ties"})
    one("ties", ties, 3, 1, tags={"ties"})
    one("specials", ODD_IMAGE, 2)
    one("specials", ODD_IMAGE, 3, 1)
    one("specials", ODD_IMAGE, 2, dtype=F32)
    one("several-nan", [[[[NAN, 1.0, NAN], [INF, 0.0, NAN], [2.0, 1.0, 0.5]]]], 2, 1)
    one("all-minus-inf", np.full((1, 1, 2, 2), -INF), 2)
    one("2x3x6x6", rand("pool", (2, 3, 6, 6)), 2, dtype=F32)
    one("window-too-large", rand("pool", (1, 1, 3, 3)), 4, tags={"raises"})


def info_nce():
    def one(label, q, k, temperature=1.0, **more):
        case("info_nce", f"{label}-at-{temperature:g}",
             lambda q, k: (F.cross_entropy(q @ k.T / temperature, torch.arange(len(q)), reduction="sum"), len(q)),
             {"q": q, "k": k}, {"temperature": temperature}, **more)

    for shape in shapes("4x3 1x4 4x1 2x17 0x3 19x20"):
        one(spell(shape), rand("queries", shape), rand("keys", shape))
    one("4x3", rand("queries", (4, 3)), rand("keys", (4, 3)), 0.1)
    one("4x3", rand("queries", (4, 3)), rand("keys", (4, 3)), 5.0)
    one("zeros", [[0.0, -0.0], [1.0, 0.0]], [[-0.0, 1.0], [0.0, 0.0]])
    one("specials", ODD_ROWS, rand("keys", (5, 3)))
    one("5x2", rand("queries", (5, 2)), rand("keys", (5, 2)), 0.5, dtype=F32)
    one("4x3-with-4x2", rand("queries", (4, 3)), rand("keys", (4, 2)), tags={"raises"})


LAYERS = (embedding, dropout, batch_norm, conv2d, max_pool2d, info_nce)
