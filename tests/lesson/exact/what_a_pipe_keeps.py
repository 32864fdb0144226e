"""The times, the kept micro-batches and the gradients of a pipe in three orders, by a simulation without tally."""

from fractions import Fraction

from exact.the_pipe import along_a_path, of_micro_batch, simulated, steps_of, summed, timed

KIB = Fraction(2 * 16 * 16 * 4, 1024)  # the input and the output of a stage, in float32


def with_later_weights(p, m, stage):
    """Returns the steps of one stage in the schedule ZB-H1: the order of 1F1B, and stage s postpones the W of s micro-batches."""
    steps, weights = [], 0
    for what, k in steps_of("1F1B", p, m, stage):
        steps.append((what, k))
        if what == "B" and k >= stage:
            steps.append(("W", weights))
            weights += 1
    return steps + [("W", k) for k in range(weights, m)]


def check(run):
    p, m = run.setting("ranks"), run.setting("micro")
    tiny = Fraction(1, 10**12)
    all_f, one_f = simulated("GPipe", p, m), simulated("1F1B", p, m)
    label = "share of the time that a stage waits"
    run.close("GPipe", run.shown(label, 1), all_f[0], tiny)
    run.close("1F1B", run.shown(label, 2), one_f[0], tiny)
    run.equal("GPipe keeps", run.shown("micro-batches that stage 0 keeps"), all_f[1][0])
    assert run.answer("is smaller under 1F1B than") == "only the memory" and all_f[0] == one_f[0], "1F1B waits as long as GPipe"
    assert run.answer("stage 0 keep at most") == str(one_f[1][0]), f"stage 0 keeps {one_f[1][0]}"

    for s, row in enumerate(run.table("stage", "GPipe, KiB kept")):
        run.equal("kept", [row["GPipe keeps"], row["1F1B keeps"]], [all_f[1][s], one_f[1][s]])
        run.equal("KiB", [row["GPipe, KiB kept"], row["1F1B, KiB kept"]], [all_f[1][s] * KIB, one_f[1][s] * KIB])
    for row in run.table("micro-batches", "waits"):
        wait, kept = simulated("1F1B", p, row["micro-batches"])
        run.close("waits", row["waits"], wait, tiny)
        run.equal("kept", [row["GPipe keeps"], row["1F1B keeps"]], [row["micro-batches"], kept[0]])

    exact, magnitudes = summed(p, range(m)), summed(p, range(m), 2)
    for s, row in enumerate(run.table("stage", "one process")):
        run.close("gradient", [row["one process"], row["GPipe"], row["1F1B"]], [Fraction(exact[s][0])] * 3,
                  along_a_path(p, m) * Fraction(magnitudes[s][0]))
    loss = Fraction(sum(of_micro_batch(p, k)[0] for k in range(m)))
    run.close("loss", run.shown("loss of one process, GPipe, 1F1B"), [loss] * 3, along_a_path(p, 256) * loss)

    end, kept = timed([with_later_weights(p, m, stage) for stage in range(p)], {"F": 1, "B": 1, "W": 1}, "W")
    waits = end - 3 * m
    assert run.answer("W may come later") == str(waits) and max(kept) <= p, (waits, kept)
    run.equal("W later", run.shown("units that a stage waits"), waits)
    lanes = [line.split("|")[1] for line in next(event for event in run.events if event.get("name") == "zero-bubble")["text"].splitlines()]
    run.equal("dots of the picture", [lane.count(".") for lane in lanes], [waits] * p)
