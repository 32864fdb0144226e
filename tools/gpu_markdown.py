"""What tools/gpu-report found, as a page of Markdown. Judges nothing that is not in the results."""
import statistics

STAGES = ("build", "test", "sanitizer", "lessons", "bench")
GOOD = ("passed", "left out")  # left out: optional and not here, or asked to be

# What the targets ask for: rows whose name begins so, against which floor, at least which share of its speed.
FLOORS = (("large MLP as 1x", "cuBLAS", 0.95), ("relu", "copy", 0.85), ("add", "copy", 0.85), ("bias", "copy", 0.85),
          ("softmax", "copy", 0.85), ("sum", "copy", 0.85))
# And how many times faster than PyTorch: eager, and as a CUDA graph.
PEERS = (("toy", 3, 1), ("MLP", 3, 1))


def asked_of(name, table):
    return next((row[1:] for row in table if name.startswith(row[0])), None)


def green(report):
    done = {step["stage"] for step in report["steps"]}
    return (not report["dry"] and done >= set(STAGES) and all(step["result"] in GOOD for step in report["steps"]))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def duration(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def rounds_of(run, row, name):
    """The rounds of one contestant in one pass, or nothing."""
    for line in run["rows"]:
        if line["row"] == row:
            for contestant in line["contestants"]:
                if contestant["name"] == name:
                    return contestant["rounds_ns"]
    return None


def pooled(bench, program, row, name):
    """The median and minimum of all rounds of all passes."""
    rounds = [ns for run in bench if run["program"] == program for ns in rounds_of(run, row, name) or []]
    return (statistics.median(rounds), min(rounds)) if rounds else None


def paired(bench, row, name):
    """How many times longer tally takes than its floor, round by round within a pass."""
    ratios = [mine / floor for run in bench if run["program"] == "tally" and rounds_of(run, row, name)
              for mine, floor in zip(rounds_of(run, row, "tally"), rounds_of(run, row, name))]
    return statistics.median(ratios) if ratios else None


def pass_by_pass(bench, row, name):
    """How many times longer the other program took than tally, in each pass."""
    ratios = []
    for number in sorted({run["pass"] for run in bench}):
        of_pass = {run["program"]: run for run in bench if run["pass"] == number}
        mine = rounds_of(of_pass["tally"], row, "tally") if "tally" in of_pass else None
        other = rounds_of(of_pass["PyTorch"], row, name) if "PyTorch" in of_pass else None
        if mine and other:
            ratios.append(statistics.median(other) / statistics.median(mine))
    return ratios


def names_of_rows(bench):
    seen = {}
    for run in bench:
        for line in run["rows"]:
            seen.setdefault(line["row"], line)
    return seen


def met(value, least):
    return f"{least:g}: {'yes' if value >= least else '**no**'}"


def floors(bench):
    rows = []
    for name, line in names_of_rows(bench).items():
        mine = pooled(bench, "tally", name, "tally")
        for floor in ("cuBLAS", "copy"):
            longer = paired(bench, name, floor)
            if mine and longer:
                asked = asked_of(name, [(*row[:1], row[2]) for row in FLOORS if row[1] == floor])
                speed = f"{line['moved'] / mine[0] / 1e3:.2f} TB/s" if line.get("moved") else ""
                rows.append((name, duration(mine[0]), duration(mine[1]), floor,
                             duration(pooled(bench, "tally", name, floor)[0]), f"{1 / longer:.2f}", speed,
                             met(1 / longer, asked[0]) if asked else ""))
    return rows


def peers(bench):
    rows = []
    for name, line in names_of_rows(bench).items():
        mine = pooled(bench, "tally", name, "tally")
        cells = []
        for index, peer in enumerate(("PyTorch", "PyTorch as a CUDA graph")):
            other, ratios = pooled(bench, "PyTorch", name, peer), pass_by_pass(bench, name, peer)
            if mine and other and ratios:
                ratio, asked = statistics.median(ratios), asked_of(name, PEERS)
                cells += [duration(other[0]), f"{ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
                          met(ratio, asked[index]) if asked else ""]
            else:
                cells += ["", "", ""]
        if any(cells):
            rows.append((name, line["per"], duration(mine[0]), *cells))
    return rows


def accumulation(bench):
    """What four micro-batches cost over one, for tally and for the bare products."""
    rows, names = [], list(names_of_rows(bench))
    for whole in [name for name in names if " as 1x" in name]:
        kind, size = whole.split(" as 1x")
        parts = f"{kind} as 4x{int(size) // 4}"
        times = [pooled(bench, "tally", name, who) for who in ("tally", "cuBLAS") for name in (parts, whole)]
        if all(times):
            mine, floor = times[0][0] / times[1][0], times[2][0] / times[3][0]
            rows.append((kind, f"{parts.split(' as ')[1]} over 1x{size}", f"{mine:.3f}", f"{floor:.3f}",
                         f"{'yes' if mine <= floor * 1.02 else '**no**'}"))
    return rows


def verdict(report):
    if report["dry"]:
        return "**Nothing of this ran on a device**: a dry run, which builds and leaves out the rest."
    if green(report):
        return "**Green**: every stage passed on this device. Speed is judged row by row below."
    done = {step["stage"] for step in report["steps"]}
    wrong = [f"{step['stage']}: {step['name']} ({step['result']})" for step in report["steps"] if step["result"] not in GOOD]
    wrong += [f"{stage}: not run" for stage in STAGES if stage not in done]
    shown = wrong[:12] + ([f"{len(wrong) - 12} more"] if len(wrong) > 12 else [])
    return "**Not green**: " + "; ".join(shown) + "."


def markdown(report):
    machine, bench = report["machine"], report.get("bench", [])
    parts = [f"# tally on {machine.get('device') or 'no device'}", verdict(report),
             table(("what", "which"), [("date", report["date"]), ("commit", report["commit"]), ("sources", report["tree"]),
                                       *((key, value) for key, value in machine.items() if value)]),
             "## Stages",
             table(("stage", "step", "result", "seconds", "in words"),
                   [(step["stage"], step["name"], step["result"], f"{step['seconds']:.0f}", step["words"])
                    for step in report["steps"]])]
    checked = report.get("sanitizer", {})
    if checked:
        parts += ["## compute-sanitizer", "Every device test alone under each tool, but those left out.",
                  table(("tool", "clean", "not clean"),
                        [(tool, sum(one["result"] == "passed" for one in tests.values()),
                          ", ".join(f"{name} ({one['result']})" for name, one in tests.items()
                                    if one["result"] != "passed") or "none")
                         for tool, tests in checked.items()])]
    if bench:
        passes = max(run["pass"] for run in bench) + 1
        parts += ["## Speed",
                  f"{passes} passes of {bench[0]['rounds']} rounds: in each, tally's program, then PyTorch's, back to back. Within tally's "
                  "program rounds alternate with those of the floor, and their ratios are taken round by round; PyTorch's are taken pass by "
                  "pass, with their range. Medians, full float32; one wait for the device a round, none in between: "
                  f"{sum(line.get('waits', 0) for run in bench for line in run['rows'])} waits of the host were counted inside the rounds."]
        if floors(bench):
            parts += ["### Beside bare cuBLAS and bare copies",
                      "The floor does the products only, or copies as many bytes as the row reads and writes.",
                      table(("work", "tally", "at best", "floor", "takes", "share of its speed", "bandwidth", "asked for"), floors(bench))]
        if accumulation(bench):
            parts += ["### What accumulation costs",
                      table(("work", "sizes", "tally", "bare cuBLAS", "no more than it, within 2 %"), accumulation(bench))]
        if peers(bench):
            parts += ["### Beside PyTorch",
                      table(("work", "per", "tally", "eager", "times tally", "asked for", "CUDA graph", "times tally", "asked for"),
                            peers(bench))]
    return "\n\n".join(parts) + "\n"
