"""The masks and the gradients of dropout, from the generator Philox 4x32-10 (Salmon and others, 2011)."""

from fractions import Fraction

from exact_values import roundings

WORD = 2**32 - 1


def philox(seed, stream, block):
    """Four words of 32 random bits."""
    c, key = [block & WORD, block >> 32, stream & WORD, stream >> 32], [seed & WORD, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ key[0], b & WORD, (a >> 32) ^ c[3] ^ key[1], a & WORD]
        key = [(key[0] + 0x9E3779B9) & WORD, (key[1] + 0xBB67AE85) & WORD]
    return c


def mask(seed, item, layer=0, width=16):
    """1 for each number that is kept, 0 for each number that is dropped with probability 1/2."""
    blocks = [philox(seed, layer, ((item << 32) + k) // 4) for k in range(0, width, 4)]
    return [int(word >= 2**31) for block in blocks for word in block]


def text(kept):
    return "".join("1" if one else "." for one in kept)


def gradient(masks):
    """Each number of item i is i + 1, and dropout doubles it. The loss is the mean over the eight items."""
    return [Fraction(sum(2 * (i + 1) * kept[k] for i, kept in enumerate(masks)), 8) for k in range(16)]


def check(run):
    n, seed = run.setting("micro"), run.events[0]["seed"]
    each = 8 // n
    masks = [mask(seed, item) for item in range(8)]
    for row, kept in zip(run.table("item", "its mask"), masks):
        run.equal("a mask", int(row["its mask"] == text(kept)), 1)
    full, by_place = gradient(masks), gradient([masks[item % each] for item in range(8)])
    difference = max(abs(a - b) for a, b in zip(full, by_place))
    got = [row["mask"] for row in run.table("", "mask")]
    run.equal("three masks", int(got == [text(masks[0]), text(masks[each]), text(masks[0])]), 1)

    rows = run.table("first four components of w.grad")
    for row, exact, apart in zip(rows, (full, by_place, full), (0, difference, 0), strict=True):
        run.equal(row[""], [row["first four components of w.grad"], row["largest difference"]], [exact[:4], apart])

    draws = {rows: [(layer, item) for first in range(0, 8, rows) for layer in "AB" for item in range(first, first + rows)] for rows in (8, each)}
    for name, rows in (("draw for B0, full batch", 8), ("draw for B0, micro-batches", each)):
        run.equal(name, run.shown(name), draws[rows].index(("B", 0)) + 1)
    run.equal("the answer", float(run.answer("one random generator")), each + 1)
    masks = [[kept for item in range(250) for kept in mask(seed, item, layer, 256)] for layer in (0, 1)]
    for name, second in (("the same key twice", masks[0]), ("layers 0 and 1", masks[1])):
        share = Fraction(sum(a * b for a, b in zip(masks[0], second)), 250 * 256)
        run.close(name, run.shown(name), share, roundings(2))
