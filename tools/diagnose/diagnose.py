"""Checks a training step that accumulates gradients: runs it with one batch and with the same batch divided, in float64.

    from diagnose import diagnose
    diagnose(model, your_step, (x, y), parts=4)

your_step(model, batches) does the work of your trainer between two updates: for each batch of the list forward and
backward, with scaling, clipping and penalties, but without optimizer.step() and zero_grad(). Batches are tuples divided
along the first axis. The verdict depends only on the gradients, and not on your source code.

A step that divides each loss by a constant, such as 4 accumulation steps, needs 4 batches for a right gradient. Pass the
constant, so that the whole batch is repeated 4 times: diagnose(model, your_step, (x, y), parts=4, divisor=4). If `divisor` is
equal to `parts`, a penalty that is added once per micro-batch cannot be seen; run diagnose again with other parts.
"""

import copy

import torch


def gradient(model, step, batches):
    model = copy.deepcopy(model).double()
    model.zero_grad(set_to_none=True)
    torch.manual_seed(0)
    step(model, batches)
    return torch.cat([torch.zeros(p.numel(), dtype=p.dtype) if p.grad is None else p.grad.flatten() for p in model.parameters()])


def close(a, b):
    return bool((a - b).norm() <= 1e-9 * max(a.norm(), b.norm()))


def along(a, b):
    """Returns the factor of a = factor * b, or None."""
    factor = float(a @ b / (b @ b)) if b.norm() > 0 else 0.0
    return factor if factor != 0 and close(a, factor * b) else None


def verdict(model, step, batch, sizes, divisor):
    batch = tuple(t.double() if t.is_floating_point() else t for t in batch)
    parts = list(zip(*(torch.split(t, sizes) for t in batch)))
    one = gradient(model, step, [batch] * divisor)
    cut = gradient(model, step, parts)
    if not (torch.isfinite(one).all() and torch.isfinite(cut).all()):
        return "a gradient that is not finite: nothing can be compared"
    if one.norm() == 0:
        return "no gradient: the step must go backward in the model that it is given, and leave zero_grad() out"
    if close(cut, one):
        return "right: the same gradient, except for rounding" + (f", if the step divides each loss by {divisor}" if divisor != 1 else "")
    n, rows = len(parts), len(batch[0])
    alone = [gradient(model, step, [part] * divisor) for part in parts]  # each micro-batch as a single batch
    weighted = sum(size / rows * g for size, g in zip(sizes, alone))
    weights = torch.cat([p.detach().double().flatten() for p in model.parameters()])
    factor = along(cut, one)
    if factor is not None and divisor != 1 and abs(factor - n / divisor) < 1e-6:
        return f"{factor:.4g} times the gradient of the batch: divide by the number of micro-batches, {n}, instead of {divisor}"
    if factor is not None and abs(factor - n) < 1e-6:
        return (f"{n} times too large: {n} means were added up; divide each micro-loss by {n}. "
                "(If the step already divides by a constant c, pass divisor=c)")
    if factor is not None and abs(factor - 1 / n) < 1e-6:
        cause = f"it is divided twice, or the step does not divide each loss by {divisor}" if divisor != 1 else "it is divided twice (a mean already is, or two places divide)"
        return f"{n} times too small: {cause}"
    norms = [float(g.norm()) for g in alone]
    if max(norms) - min(norms) < 1e-3 * max(norms):  # torch's clipping adds 1e-6 to a norm
        return f"each micro-batch brings a gradient of the same norm, {norms[0]:.3g}: each was clipped alone; clip once per update"
    for bring in (alone, [size * g for size, g in zip(sizes, alone)]):
        if along(cut, sum(bring)) is not None:
            continue  # none is lost
        for lost in range(1, n):
            for which, kept in (("the last", bring[:-lost]), ("the first", bring[lost:])):
                if along(cut, sum(kept)) is not None:
                    return f"{which} {lost} of {n} micro-batches are lost: zero_grad() in between, or a tail that is never used"
    means = along(cut, sum(alone))
    if close(weighted, one) and means is not None:
        scale = "" if abs(means * n - 1) < 1e-6 else ", and nothing is divided" if abs(means - 1) < 1e-6 else f", {means * n:.4g} times"
        return f"a mean of means{scale}: micro-batches of unequal size weigh the same; weigh each by its rows (or tokens)"
    decay = cut - weighted
    if along(decay, weights) is not None and close(weighted, one):
        return f"a term of the weights comes {n} times instead of once: add weight decay or a penalty once per update"
    if any(isinstance(m, torch.nn.modules.batchnorm._BatchNorm) for m in model.modules()) and model.training:
        return "batch norm: each micro-batch is normalised by its own statistics, so the step computes another function"
    return "another gradient: the loss compares items with each other (contrastive, ratios, max over the batch), or random numbers differ"


def diagnose(model, step, batch, parts=4, divisor=1):
    """Prints a verdict for equal parts, and one for unequal parts. `divisor` is the whole number by which the step divides each loss."""
    if not isinstance(divisor, int) or divisor < 1:
        raise ValueError(f"divisor={divisor}: pass the whole number by which your step divides each loss, or leave it out")
    each, over = divmod(len(batch[0]), parts)
    if parts < 2 or each < 2 or over:
        raise ValueError(f"{len(batch[0])} rows in {parts} equal parts of 2 rows or more: not possible")
    for sizes in ([each] * parts, [each + 1, *[each] * (parts - 2), each - 1]):
        print(f"{' + '.join(map(str, sizes))}: {verdict(model, step, batch, sizes, divisor)}")
