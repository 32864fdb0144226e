#!/usr/bin/env python3
"""Checks that a new operation, optimizer, lesson, ... has all of its parts, as docs/changes.md lists them.

    changes.py
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
SCALARS = ["float", "double"]  # after adding a type here, the test lists each place that lacks it


def text_of(*places):
    """Returns the text of files, and of all sources in folders, below ROOT."""
    paths = [ROOT / place for place in places]
    files = [file for path in paths for file in (sorted(path.rglob("*.[ch]pp")) if path.is_dir() else [path])]
    return "\n".join(file.read_text() for file in files)


def unfilled_slots():
    """Checks that each of the three tables has every kernel of the contract, and that every family has its files."""
    contract = text_of("src/kernels/kernels.hpp").split("struct Kernels {")[1].split("\n};")[0]
    slots = re.findall(r"^    void \(\*(\w+)\)\(", contract, re.M)
    for names in re.findall(r"^    (?:std::array|UpdateAll)<.*> ([\w, ]+);", contract, re.M):
        slots += names.split(", ")
    families = set(re.findall(r"\beach\((\w+)\)", text_of("src/kernels/families.hpp")))
    devices = {"cpu": "*.cpp", "gpu": "*.hpp"}
    texts = {f"src/{device}": "".join(path.read_text() for path in (SRC / device).glob(files)) for device, files in devices.items()}
    installed = {device: set(re.findall(r"\binstall_(\w+)\(Kernels<S>", text)) for device, text in texts.items()}
    texts["src/cpu/reference.hpp"] = text_of("src/cpu/reference.hpp")
    for where, text in texts.items():
        for slot in slots:
            if not re.search(rf"\bt\.{slot} = ", text):
                yield f"{where} fills no slot '{slot}' of src/kernels/kernels.hpp: it would be a null pointer there"
    for device, names in installed.items():
        for family in sorted(names - families):
            yield f"{device} has install_{family}(), which is never called; add '{family}' to src/kernels/families.hpp"
    for family in sorted(families):
        for place in (f"cpu/{family}.cpp", f"gpu/{family}.hpp"):
            if not (SRC / place).is_file():
                yield f"the family '{family}' of src/kernels/families.hpp has no src/{place}"


def operations():
    ops = text_of("src/autograd/ops")
    names = set(re.findall(r'record(?:_many)?<"(\w+)">', ops) + re.findall(r'FixedName name = "(\w+)"', text_of("src/kernels/functors.hpp")))
    assert len(names) >= 50, "the search finds no operations any more"
    differentiated, footprints = text_of("tests/autograd/operations.hpp"), text_of("tests/autograd/footprint_test.cpp")
    for name in sorted(names):
        if not (ROOT / "tests" / "fixtures" / f"{name}.txt").is_file():
            yield f"the operation '{name}' has no reference values in tests/fixtures/{name}.txt (tools/make-fixtures)"
        if f'"{name}' not in differentiated:
            yield f"the operation '{name}' is not compared with finite differences; add it to tests/autograd/operations.hpp"
        if re.search(rf"> {name}\(", ops) and not re.search(rf"\b{name}(?:<\w+>)?\(", footprints):
            yield f"the operation '{name}' is not in the table of tests/autograd/footprint_test.cpp; add it with the bytes that it saves"


def optimizers():
    names = re.findall(r"class (\w+) : public (?:Optimizer|Sgd|Adam)<S>", text_of("src/train"))
    assert len(names) >= 3, "the search finds no optimizers any more"
    table = text_of("docs/optimizers.md")
    for name in names:
        if not (ROOT / "tests" / "fixtures-train" / f"{name.lower()}.txt").is_file():
            yield f"the optimizer {name} has no trajectory of PyTorch's in tests/fixtures-train/{name.lower()}.txt (tools/make-trajectories)"
        if f"| `{name}` |" not in table:
            yield f"the optimizer {name} has no formula in the table of docs/optimizers.md"
        if f"{name}<" not in text_of("tests/train/options_test.cpp"):
            yield f"tests/train/options_test.cpp does not go through the options of the optimizer {name}"


def losses():
    names = set(re.findall(r"^(?:template <class S> )?Loss<Array<S>> (\w+)\(", text_of("src/autograd/ops"), re.M))
    assert len(names) >= 4, "the search finds no losses any more"
    for name in sorted(names):
        if not (ROOT / "tests" / "fixtures" / f"{name}.txt").is_file():
            yield f"the loss {name}() has no reference values in tests/fixtures/{name}.txt (tools/make-fixtures)"


def policies():
    window, page = text_of("src/train/window.hpp") + text_of("src/train/denominator.hpp"), text_of("docs/training.md")
    for policy in ("Reduction", "Weigh", "Sum", "Tail", "NonFinite"):
        body = re.sub(r"//.*", "", re.search(rf"enum class {policy} {{(.*?)}};", window, re.S).group(1))
        for choice in re.findall(r"\w+", body):
            if f"`{choice}`" not in page and f"{policy}::{choice}" not in page:
                yield f"docs/training.md does not say what {policy}::{choice} does"


def scalars():
    """Checks that each explicit instantiation for float has one for every scalar type, in the same folder."""
    made = {}
    for path in sorted(path for top in (SRC, ROOT / "course") for path in top.rglob("*") if path.suffix in (".hpp", ".cpp", ".cu")):
        for statement in re.findall(r"^(?:(?:extern )?template (?!<)[^;{]*;|TALLY_\w+\([^)]*\))", path.read_text(), re.M):
            made.setdefault(path.parent, {}).setdefault(" ".join(statement.split()), path)
    for statements in made.values():
        for statement, path in statements.items():
            if not re.search(r"\bfloat\b", statement):
                continue
            for scalar in SCALARS:
                other = re.sub(r"\bfloat\b", scalar, statement)
                if other not in statements:
                    yield f"{path.relative_to(ROOT)}: '{statement}' is not there for {scalar}"


def readers():
    names = set(re.findall(r"\b(?:load_|parse_)(\w+)\((?:const std::string& path|std::span<const std::byte>)", text_of("src/io")))
    assert len(names) >= 4, "the search finds no readers of files any more"
    for name in sorted(names):
        if not (ROOT / "tests" / "fuzz" / f"{name}.cpp").is_file():
            yield f"the reader of {name} files has no tests/fuzz/{name}.cpp"
        if not any((ROOT / "tests" / "fuzz" / "corpus" / name).glob("*")):
            yield f"the reader of {name} files has no tests/fuzz/corpus/{name}"


def reports():
    for header in sorted((SRC / "tools").glob("*.hpp")):
        for name in re.findall(r"class (\w+) final : Observer", header.read_text()):
            if f"](../src/tools/{header.name})" not in text_of("docs/reports.md"):
                yield f"docs/reports.md has no row for {name} (src/tools/{header.name})"


def lessons():
    for lesson in sorted((ROOT / "lessons").glob("[0-9][0-9]_*.cpp"))[1:]:  # without 00_by_hand.cpp
        for part in (f"lessons/{lesson.stem}.md", f"tests/lesson/exact/{lesson.stem[3:]}.py", f"tests/lesson/printed/{lesson.stem}.txt"):
            if not (ROOT / part).is_file():
                yield f"the lesson {lesson.name} has no {part}"


def numbers():
    """Checks the numbers of README.md and docs/compared.md against lesson 7 and docs/performance.md."""
    page = text_of("README.md")
    names = ("JAX, AVX-512", "JAX, AVX2", "PyTorch, AVX-512", "PyTorch, AVX2")
    columns, ratios = [], {}  # {micro-batches: {name: its time divided by tally's}}
    for row in re.findall(r"^\| (.*) \|$", text_of("docs/performance.md"), re.M):
        cells = row.split(" | ")
        if cells[0] == "update or operation":
            columns = cells
        elif cut := re.fullmatch(r"update as (\d+x\d+)", cells[0]):
            ratios[cut[1]] = {name: cells[columns.index(name)].strip("*") for name in names}
    assert ratios, "docs/performance.md has no table of updates with the expected header"
    for cut, *values in re.findall(r"^\| (\d+x\d+) \| (.*) \| (.*) \| (.*) \| (.*) \|$", text_of("docs/compared.md"), re.M):
        if values != [ratios[cut][name] for name in names]:
            yield f"docs/compared.md has other ratios for {cut} than docs/performance.md"
    times = [float(ratios[cut][name]) for cut in ("4x16", "16x4", "64x1") for name in names[:2]]
    whole = [float(ratios["1x64"][name]) for name in names[:2]]
    faster = f"is {min(times):.1f} to {max(times):.1f} times as fast as"
    if faster not in text_of("docs/performance.md"):
        yield f"docs/performance.md does not say '{faster}' in brief"
    expected = [f"an update {faster}", f"With one batch, it is {min(whole):.1f} to {max(whole):.1f} times as fast.",
                "find_package(tally {}.{} ".format(*re.findall(r"define TALLY_VERSION_(?:MAJOR|MINOR) (\d+)", text_of("src/base/version.hpp"))),
                "CMake " + re.search(r"cmake_minimum_required\(VERSION ([\d.]+)", text_of("CMakeLists.txt"))[1]]
    for line in expected:
        if line not in page:
            yield f"README.md does not say '{line}'"
    printed = " ".join(text_of("tests/lesson/printed/07_divide.txt").split())
    labels = {"full batch": "full batch", "sum of 3x2": "sum of the micro-batches", "sum / (6/2)": "w.grad"}
    for name, values in re.findall(r"^  (full batch|sum of 3x2|sum / \(6/2\)) +([-\d. ]+\d)", page, re.M):
        if f"tensor: {labels[name]} | [{' '.join(values.split())}]" not in printed:
            yield f"README.md has other numbers for '{name}' than lesson 7 prints"


def checks():
    broken = text_of("tests/mutations.txt")
    for name in re.findall(r"\bvoid (throw_\w+)\(", text_of("src/autograd/backward_check.hpp")):
        if f"{name}(" not in broken:
            yield f"tests/mutations.txt has no line that takes {name}() out of src/autograd/backward_check.hpp: does a test see it?"


def invariants():
    """Checks that each invariant of docs/invariants.md has a test case and a mutation, and that these name no other invariant."""
    numbers = set(re.findall(r"^(\d+)\. ", text_of("docs/invariants.md"), re.M))
    assert len(numbers) == 12, "the search finds no invariants any more"
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*_test.cpp"))
    guards = {"a test case": re.findall(r'TEST_CASE\(\s*"invariant (\d+): ', tests),
              "tests/mutations.txt": re.findall(r"\| invariant (\d+): ", text_of("tests/mutations.txt"))}
    for where, named in guards.items():
        for number in sorted(numbers ^ set(named), key=int):
            yield f"invariant {number} is in only one of docs/invariants.md and {where}"


def main():
    faults = [fault for look in (unfilled_slots, operations, optimizers, losses, policies, scalars, readers, reports, lessons, numbers, checks, invariants) for fault in look()]
    print("\n".join(faults or ["nothing is forgotten"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
