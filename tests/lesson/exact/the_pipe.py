"""The times of a pipe, by a simulation, and the gradients of its stages, without tally."""

import math
from fractions import Fraction
from functools import cache

from exact_values import roundings

WIDTH = 16


def steps_of(schedule, p, m, stage):
    """Returns the steps of one stage in their order, such as ("F", 0)."""
    first = m if schedule == "GPipe" else min(p - stage, m)
    steps = [("F", k) for k in range(first)]
    for k in range(m):
        steps += [("B", k)] + ([("F", k + first)] if k + first < m else [])
    return steps


def timed(todo, units, last):
    """Returns when all work of the stages in `todo` is done, and the most micro-batches kept in each stage from F to the work `last`."""
    p = len(todo)
    todo, free, ends, live, most = [list(one) for one in todo], [0] * p, {}, [0] * p, [0] * p
    while any(todo):
        for stage in range(p):
            while todo[stage]:
                what, k = todo[stage][0]
                neighbour = {"F": stage - 1, "B": stage + 1, "W": -1}[what]  # it sends what this work needs
                if 0 <= neighbour < p and (what, k, neighbour) not in ends:
                    break
                ends[what, k, stage] = free[stage] = max(free[stage], ends.get((what, k, neighbour), 0)) + units[what]
                live[stage] += (what == "F") - (what == last)
                most[stage] = max(most[stage], live[stage])
                todo[stage].pop(0)
    return max(free), most


def simulated(schedule, p, m):
    """Returns the share of the time that a stage waits, and the most micro-batches that each stage keeps. F takes one unit, B two."""
    end, most = timed([steps_of(schedule, p, m, stage) for stage in range(p)], {"F": 1, "B": 2}, "B")
    return 1 - Fraction(3 * m, end), most


@cache
def matrix(number):
    return [[Fraction((37 * i * i + 11 * number * i + 5 * number) % 127 - 63, 128).__float__() for i in range(row * WIDTH, row * WIDTH + WIDTH)]
            for row in range(WIDTH)]


def product(a, b):
    columns = list(zip(*b))
    return [[sum(map(float.__mul__, row, column)) for column in columns] for row in a]


def turned(a):
    return list(map(list, zip(*a)))


def absolute(a):
    return [[abs(number) for number in row] for row in a]


@cache
def of_micro_batch(p, k):
    """Returns the loss, the gradients of all layers, and the sums of the magnitudes of their terms."""
    values = [matrix(100 + k)]
    for s in range(p):
        values.append([[math.tanh(number) for number in row] for row in product(values[s], matrix(s))])
    upstream, gradients, magnitudes = values[p], [None] * p, [None] * p
    for s in reversed(range(p)):
        delta = [[g * (1 - h * h) for g, h in zip(*rows)] for rows in zip(upstream, values[s + 1])]
        gradients[s] = product(turned(values[s]), delta)
        magnitudes[s] = product(turned(absolute(values[s])), absolute(delta))
        upstream = product(delta, turned(matrix(s)))
    return sum(h * h for row in values[p] for h in row) / 2, gradients, magnitudes


def summed(p, micro_batches, which=1):
    """Returns for each layer the 256 numbers of the sum of the gradients (or, with which=2, of the magnitudes)."""
    all_of_them = [of_micro_batch(p, k)[which] for k in micro_batches]
    return [[sum(numbers) for numbers in zip(*(sum(one[s], []) for one in all_of_them))] for s in range(p)]


def along_a_path(p, additions):
    """Bounds the relative error. A path through the model has p products and p tanh forward and backward."""
    return roundings(100 * p + additions)


def check(run):
    p, m = run.setting("ranks"), run.setting("micro")
    tiny = Fraction(1, 10**12)
    label = "share of the time that a stage waits"
    share = simulated("GPipe", p, m)[0]
    run.close("one batch", run.shown(label, 1), simulated("GPipe", p, 1)[0], tiny)
    run.close("GPipe", run.shown(label, 2), share, tiny)
    for row in run.table("micro-batches", "waits"):
        run.close("waits", [row["waits"], row["(p-1)/(m+p-1)"]], [simulated("GPipe", p, row["micro-batches"])[0]] * 2, tiny)
    run.close("the question", float(run.answer("For which share")), share, Fraction(1, 10**5))
    tenth = int(run.answer("a tenth"))
    assert simulated("GPipe", p, tenth)[0] == Fraction(1, 10) < simulated("GPipe", p, tenth - 1)[0], "a stage waits for a tenth"
    for event, micro in zip([event for event in run.events if event["event"] == "graph"], (1, m)):
        lanes = [line.split("|")[1] for line in event["text"].splitlines()]
        dots = sum(lane.count(".") for lane in lanes)
        run.equal("dots of the picture", Fraction(dots, sum(map(len, lanes))), simulated("GPipe", p, micro)[0])

    exact, magnitudes = summed(p, range(m)), summed(p, range(m), 2)
    for s, row in enumerate(run.table("stage", "first number, pipe")):
        run.close("gradient", [row["first number, one process"], row["first number, pipe"]], [Fraction(exact[s][0])] * 2, along_a_path(p, m) * Fraction(magnitudes[s][0]))

    runs = [range(r * m, r * m + m) for r in range(3)]
    weights = [Fraction(1, m ** (3 - r)) for r in range(3)]
    for r, row in enumerate(run.table("run", "its share")):
        run.equal("divided by", row["divided by"], 1 / weights[r])
        run.close("share", [row["its share"], row["should be"]], [weights[r] / sum(weights), Fraction(1, 3)], tiny)
    assert run.answer("three runs") == str(m**3)
    mean = sum(weight * Fraction(summed(p, one)[0][0]) for weight, one in zip(weights, runs))
    bound = along_a_path(p, 3 * m) * sum(weight * Fraction(summed(p, one, 2)[0][0]) for weight, one in zip(weights, runs))
    run.close("divided after each run", [run.shown("first number of stage 0"), run.shown("g1/m^3 + g2/m^2 + g3/m")], [mean] * 2, bound)

    exact, magnitudes = summed(p, range(3 * m)), summed(p, range(3 * m), 2)
    for s, row in enumerate(run.table("stage", "|step|")):
        step, bound = (Fraction(math.hypot(*numbers[s]) / (96 * m)) for numbers in (exact, magnitudes))  # 0.5 / (48 m)
        run.close("|step|", [row["|step|"], row["|step| alone"]], [step] * 2, along_a_path(p, 3 * m) * (bound + 16))
        weight = Fraction(matrix(s)[0][0]) - Fraction(exact[s][0] / (96 * m))
        run.close("weight", [row["first weight"], row["first weight alone"]], [weight] * 2,
                  along_a_path(p, 3 * m) * Fraction(magnitudes[s][0] / (96 * m)) + roundings(2) / 2)
