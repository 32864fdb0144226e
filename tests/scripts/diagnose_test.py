"""Checks that tools/diagnose/diagnose.py answers each misconception with its own sentence.

Usage: diagnose_test.py
"""

import io
import pathlib
import sys
from contextlib import redirect_stdout

try:
    import torch
except ImportError:
    if sys.executable != "/usr/bin/python3" and pathlib.Path("/usr/bin/python3").exists():  # Debian's Python has Debian's packages
        import os
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("skipped: no PyTorch (python3-torch)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/diagnose"))
from diagnose import diagnose  # noqa: E402

mse = torch.nn.functional.mse_loss


def weighed(model, batches):
    rows = sum(len(y) for _, y in batches)
    for x, y in batches:
        (mse(model(x), y) * len(y) / rows).backward()


def divided(model, batches):
    for x, y in batches:
        (mse(model(x), y) / len(batches)).backward()


def added(model, batches):
    for x, y in batches:
        mse(model(x), y).backward()


def divided_twice(model, batches):
    for x, y in batches:
        (mse(model(x), y) / len(batches) ** 2).backward()


def clipped_each(model, batches):
    total = [torch.zeros_like(p) for p in model.parameters()]
    for x, y in batches:
        model.zero_grad()
        mse(model(x), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        for t, p in zip(total, model.parameters()):
            t += p.grad / len(batches)
    for t, p in zip(total, model.parameters()):
        p.grad = t


def penalty_each(model, batches):
    rows = sum(len(y) for _, y in batches)
    for x, y in batches:
        penalty = 0.05 * sum((p ** 2).sum() for p in model.parameters())
        (mse(model(x), y) * len(y) / rows + penalty).backward()


def last_lost(model, batches):
    rows = sum(len(y) for _, y in batches)
    for x, y in batches[:-1] or batches:
        (mse(model(x), y) * len(y) / rows).backward()


def zeroed_between(model, batches):
    for x, y in batches:
        model.zero_grad()
        (mse(model(x), y) / len(batches)).backward()


def divided_by(constant):
    def step(model, batches):
        for x, y in batches:
            (mse(model(x), y) / constant).backward()
    return step


def summed(model, batches):
    for x, y in batches:
        mse(model(x), y, reduction="sum").backward()


def divided_with_penalty_once(model, batches):
    divided_by(3)(model, batches)
    (0.05 * sum((p ** 2).sum() for p in model.parameters())).backward()


def divided_and_clipped_once(model, batches):
    divided_by(3)(model, batches)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)


def contrast(model, batches):
    for x, _ in batches:
        h = model(x)
        (torch.logsumexp(h @ h.T, 1).mean() / len(batches)).backward()


def another_model(_, batches):
    weighed(torch.nn.Linear(5, 2).double(), batches)


def not_finite(model, batches):
    for x, y in batches:
        (mse(model(x), y) / 0.0).backward()


def lines_of(step, model, divisor=1):
    torch.manual_seed(3)
    batch = torch.randn(12, 5), torch.randn(12, 2)
    with redirect_stdout(io.StringIO()) as out:
        diagnose(model, step, batch, parts=3, divisor=divisor)
    return out.getvalue().splitlines()


def main():
    torch.manual_seed(2)
    plain = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    normed = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    wrong = 0
    for step, model, equal, unequal in (
            (weighed, plain, "right", "right"), (divided, plain, "right", "a mean of means: "),
            (added, plain, "3 times too large", "a mean of means, and nothing is divided"), (divided_twice, plain, "3 times too small", "a mean of means, 0.3333 times"),
            (clipped_each, plain, "each micro-batch brings a gradient of the same norm", "each micro-batch brings"),
            (penalty_each, plain, "a term of the weights comes 3 times", "a term of the weights"),
            (last_lost, plain, "the last 1 of 3", "the last 1 of 3"), (zeroed_between, plain, "the first 2 of 3", "the first 2 of 3"),
            (weighed, normed, "batch norm", "batch norm"), (contrast, plain, "another gradient", "another gradient"),
            (another_model, plain, "no gradient", "no gradient"), (not_finite, plain, "a gradient that is not finite", "a gradient that is not")):
        lines = lines_of(step, model)
        for line, expected in zip(lines, (equal, unequal), strict=True):
            words = line.split(": ", 1)[1]
            if not words.startswith(expected):
                wrong += 1
                print(f"[FAIL] {step.__name__}: {line}; expected {expected}")
        print(f"{step.__name__}: {lines}")
    for constant, divisor, expected in ((3, 1, "3 times too large: 3 means were added up; divide each micro-loss by 3. (If"), (3, 3, "right: the same gradient, except for rounding, if the step divides each loss by 3"),
                                        (6, 6, "0.5 times the gradient of the batch: divide by the number of micro-batches, 3, instead of 6")):
        equal, unequal = (line.split(": ", 1)[1] for line in lines_of(divided_by(constant), plain, divisor))
        if not equal.startswith(expected) or not unequal.startswith("a mean of means"):
            wrong += 1
            print(f"[FAIL] divided by {constant}, divisor {divisor}: {equal}; {unequal}")
    equal = lines_of(summed, plain, 3)[0]
    if "3 times too small" not in equal or "does not divide each loss by 3" not in equal:
        wrong += 1
        print(f"[FAIL] summed, divisor 3: {equal}")
    for step in (divided_with_penalty_once, divided_and_clipped_once):
        equal = lines_of(step, plain, 3)[0]
        if ": right" not in equal:
            wrong += 1
            print(f"[FAIL] {step.__name__}: {equal}")
    try:
        lines_of(weighed, plain, 0)
        wrong += 1
        print("[FAIL] divisor 0 is accepted")
    except ValueError as error:
        assert "divisor=0" in str(error)
    for rows, parts in ((12, 1), (12, 5), (3, 3)):
        try:
            diagnose(plain, weighed, (torch.randn(rows, 5), torch.randn(rows, 2)), parts)
            wrong += 1
            print(f"[FAIL] {rows} rows in {parts} parts are taken")
        except ValueError as error:
            assert str(rows) in str(error)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
