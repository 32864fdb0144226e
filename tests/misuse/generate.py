#!/usr/bin/env python3
"""Generates tests of misuse from calls.py (every public function with the kinds of its parameters) and rules.py (the outcome of each mistake).

    generate.py FILE                    writes the C++ program that makes each call and each mistake with a new World
    generate.py --rejected COMPILER INCLUDE_PATH    tests that the compiler rejects, or warns of, calls that `requires` cannot test
    generate.py --complete              tests that each public name has a row or a reason in LEFT_OUT
"""
import re
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "repository"))
from calls import EXCEPT, LEFT_OUT, ROWS  # noqa: E402
from rules import GROUPS, RULES  # noqa: E402

USED = set()  # the derived mistakes, which EXCEPT may name
HEADER = Path(__file__).parent / "world.hpp"


def called(row, arguments):
    if not row.call:
        return f"{row.name}({', '.join(arguments)})"
    holes = iter(arguments)
    return re.sub(r"\$", lambda _: next(holes), row.call) if "$" in row.call or not arguments else f"{row.call}({', '.join(arguments)})"


def mistakes(row):
    """Yields the mistake, the call and the outcome of each mistake of a row."""
    values = [value for _, value in row.parameters]
    found = []
    for at, (kind, value) in enumerate(row.parameters):
        for mistake, instead, outcome in RULES[kind]:
            arguments = list(values)
            arguments[at] = instead.format(v=value)
            found.append((f"{mistake} as argument {at + 1}", mistake, called(row, arguments), outcome))
    for at, (one, other) in enumerate(zip(row.parameters, row.parameters[1:])):
        groups = [GROUPS.get(each[0]) for each in (one, other)]
        if None not in groups and groups[0] != groups[1]:
            arguments = list(values)
            arguments[at], arguments[at + 1] = arguments[at + 1], arguments[at]
            found.append((f"arguments {at + 1} and {at + 2} exchanged", "exchanged", called(row, arguments), "compiler"))
    if "$" not in (row.call or "") and row.all and row.right != "compiler":
        found.append(("an argument more", "an argument more", called(row, [*values, "1"]), "compiler"))
    alone = sum(kind in ("tensor", "operand", "tensors", "array") for kind, _ in row.parameters) == 1 and "w." not in (row.call or "") and "w.chain" not in values
    for what, mistake, call, outcome in found:
        if outcome == "same type":
            outcome = "same" if alone else "compiler"
        USED.add((row.title, mistake))
        yield f"{row.title}: {what}", call, EXCEPT.get((row.title, mistake), (outcome,))[0]


def can_test(call):
    """Returns whether a concept can test the call. The call must depend on World, contain no lambda and construct no layer, because clang
    evaluates these too early."""
    return bool(re.search(r"\bw\.", call)) and "[" not in call and not re.match(r"\w+<float>\(.*\)\(w\.", call)


def cases():
    for row in ROWS:
        call = called(row, [value for _, value in row.parameters])
        yield row.title, call, "accepted" if row.right is None else row.right, call
        for title, wrong, outcome in mistakes(row):
            yield title, wrong, outcome, call


def program():
    concepts, calls_made = [], []
    for number, (title, call, outcome, right) in enumerate(cases()):
        text, world = f'"{title}"', "[]([[maybe_unused]] World& w)"
        if outcome == "compiler" and can_test(call):
            concepts.append(f"template <class W> concept compiles_{number} = requires(W& w) {{ {call}; }};")
            calls_made.append(f"    rejected({text}, compiles_{number}<World>);")
        elif outcome == "same":
            calls_made.append(f"    same({text}, {world} {{ return {call}; }}, {world} {{ return {right}; }});")
        elif isinstance(outcome, list):
            numbers = ", ".join("NAN" if each != each else repr(float(each)) for each in outcome)
            if can_test(call):  # the right call compiles, so only the mistake can be the reason of a rejection
                concepts.append(f"template <class W> concept compiles_{number} = requires(W& w) {{ {call}; }};\nstatic_assert(compiles_{number}<World>);")
            calls_made.append(f"    right({text}, {world} {{ return {call}; }}, {{{numbers}}});")
        elif outcome in ("error", "settled", "nan", "accepted"):
            calls_made.append(f"    {outcome}({text}, {world} {{ return {call}; }});")
        elif outcome not in ("compiler", "program", "skip"):
            raise ValueError(f"{title}: no outcome {outcome}")
    parts = [calls_made[at:at + 50] for at in range(0, len(calls_made), 50)]
    bodies = "\n".join(f"void part_{n}() {{\n" + "\n".join(part) + "\n}" for n, part in enumerate(parts))
    calls = "\n".join(f"    part_{n}();" for n in range(len(parts)))
    return f"""// Written by tests/misuse/generate.py from calls.py and rules.py.
#include "misuse/world.hpp"
using namespace misuse;
{chr(10).join(concepts)}
namespace {{
{bodies}
}}  // namespace
int main() {{
    for (int signal : {{SIGSEGV, SIGABRT, SIGFPE, SIGBUS}}) std::signal(signal, crashed);
    const auto folder = std::filesystem::temp_directory_path() / ("tally_misuse_" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    std::filesystem::current_path(folder);
{calls}
    std::filesystem::current_path("/");
    std::filesystem::remove_all(folder);
    std::cout << tried - failed << " of " << tried << " calls are right, rejected by the compiler, or throw an Error" << std::endl;
    return failed ? 1 : 0;
}}
"""


def rejected(compiler, path):
    """Compiles one program with a line for each call. The compiler must report every line."""
    lines = [(title, call) for title, call, outcome, _ in cases() if outcome == "program" or outcome == "compiler" and not can_test(call)]
    text = f'#include "{HEADER}"\nusing namespace misuse;\n' + "".join(
        f"void case_{n}([[maybe_unused]] World& w) {{ (void)({call}); }}\n" for n, (_, call) in enumerate(lines))
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", *(["-ferror-limit=0"] if "clang" in compiler else []), "-Wfloat-conversion", f"-isystem{path}", "-x", "c++", "-"],
                          input=text, capture_output=True, text=True)
    named = {int(line) for line in re.findall(r"<stdin>:(\d+):\d+: (?:error|warning: .*\[-W(?:float|literal)-conversion\])", done.stderr)} | {
        int(line) for line in re.findall(r"<stdin>:(\d+):\d+:.*(?:required from here|requested here)", done.stderr)}
    wrong = [f"{title}: it compiles: {call}" for n, (title, call) in enumerate(lines) if n + 3 not in named]
    print("\n".join(wrong) or f"the compiler reports all {len(lines)} lines")
    return 1 if wrong else 0


def complete():
    import reference
    public = set().union(*reference.public_names().values())
    rows = {row.name for row in ROWS}
    known = rows | set(LEFT_OUT) | {name for name in public if name.split("::")[-1][0].isupper()}  # a type has the rows of its constructors
    faults = [f"tally::{name} is public, and has no row in tests/misuse/calls.py: add one, with the kind of each parameter" for name in sorted(public - known)]
    faults += [f"LEFT_OUT of tests/misuse/calls.py has '{name}', which is not public" for name in sorted(set(LEFT_OUT) - public)]
    count = len(list(cases()))
    faults += [f"EXCEPT of tests/misuse/calls.py has {each}, which no rule derives" for each in EXCEPT if each not in USED]
    print("\n".join(faults) or f"{len(public)} public names: {len(rows)} functions with {count} calls, {len(LEFT_OUT)} left out with a reason")
    return 1 if faults else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--complete"]:
        sys.exit(complete())
    if sys.argv[1] == "--rejected":
        sys.exit(rejected(*sys.argv[2:]))
    Path(sys.argv[1]).write_text(program())
