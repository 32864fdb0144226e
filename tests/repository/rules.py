#!/usr/bin/env python3
"""Checks the repository rules of docs/architecture.md: which module includes which, budgets of lines, comments, and where functions are defined.

    rules.py                       checks src/ and course/
    rules.py --headers COMPILER    compiles each header alone

src/CMakeLists.txt lists the modules and what each may include; tests/repository/budgets.txt has the budgets.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
COURSE = {"course/data", "course/kit"}  # modules outside the library
RUNNER = "course/runner"  # in Python
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def shared_names():
    """Files of one name in src and web that are neither a header and its source nor one kernel on several devices."""
    files = {}
    for top in (SRC, ROOT / "web"):
        for path in sorted(top.rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".cu"):
                files.setdefault(path.stem, []).append(path)
    for stem, paths in files.items():
        header = next((path for path in paths if path.suffix == ".hpp"), None)
        kernels = all(shown(path.parent) in ("src/autograd/ops", "src/cpu", "src/gpu") for path in paths)
        unit = header and all(path == header or re.search(rf'include "(?:\S*{header.parent.name}/)?{header.name}"', path.read_text()) for path in paths)
        if len(paths) > 1 and not kernels and not unit:
            yield f"{', '.join(map(shown, paths))}: files of one name; only a header and its source, or one kernel on several devices, share a name"


def modules():
    """{module: the modules that it may include}"""
    text = (SRC / "CMakeLists.txt").read_text()
    found = {name: {name, *sees.split()} for name, sees in re.findall(r"^ *tally_module\((\w+)(?: APART)?(?: SEES ([a-z ]+))?[^)]*\)", text, re.M)}
    found["course/kit"] = {*found, "course/kit"} - {"cpu", "gpu", "distributed"}
    found["course/data"] = {"base", "kernels", "memory", "array", "io", "course/data"}
    return found


def sources():
    return [path for top in (SRC, *(ROOT / folder for folder in sorted(COURSE))) for path in sorted(top.rglob("*")) if path.suffix in (".hpp", ".cpp", ".cu")]


def name(path):
    """Returns the path as in an include, without tally/."""
    return str(path.relative_to(SRC if path.is_relative_to(SRC) else ROOT))


def shown(path):
    return str(path.relative_to(ROOT))


def path_of(place):
    return ROOT / place if place.startswith("course/") else SRC / place


def module_of(path):
    if not path.is_relative_to(SRC):
        return "/".join(path.relative_to(ROOT).parts[:2])
    return path.relative_to(SRC).parts[0] if path.parent != SRC else None


def wrong_includes(allowed):
    for path in sources():
        for line, include in enumerate(path.read_text().split("\n"), 1):
            if not (found := re.match(r'\s*#\s*include (?:"(.*)"|<(tally/.*)>)', include)):
                continue
            place, module = found.group(1) or found.group(2), module_of(path)
            where = f"{shown(path)}:{line}: includes \"{place}\""
            target = path_of(place.removeprefix("tally/"))
            if not place.startswith(("tally/", "course/")) or not target.is_file():
                yield f"{where}, which is neither a tally/ header in src/ nor a header of course/"
                continue
            other = module_of(target)  # None: a public header such as tally/tally.hpp
            if module and other not in allowed[module] and (other or module != "course/kit"):
                yield f"{where}, but {module} may not include {other or 'public headers'} (src/CMakeLists.txt)"


def foreign_includes():
    """Checks that only src/cpu and tally/xtensor.hpp include xtensor, xsimd or BLAS."""
    for path in sources():
        if module_of(path) == "cpu" or name(path) == "xtensor.hpp":
            continue
        for line, text in enumerate(path.read_text().split("\n"), 1):
            if found := re.match(r"\s*#\s*include <((?:xtensor|xtensor-blas|xtl|xsimd)/.*|cblas.h)>", text):
                yield f"{shown(path)}:{line}: includes <{found.group(1)}>, which only src/cpu and tally/xtensor.hpp may"


def wrong_modules(allowed):
    folders = {f"src/{path.name}" for path in SRC.iterdir() if path.is_dir()} | COURSE
    table = re.findall(r"^\| \*{0,2}`((?:src|course)/\w+)`\*{0,2} \|", (ROOT / "docs" / "architecture.md").read_text(), re.M)
    for missing in sorted(folders - {shown(path_of(module)) for module in allowed}):
        yield f"{missing} is not a module of src/CMakeLists.txt"
    for missing in sorted((folders | {RUNNER}) - set(table)):
        yield f"{missing} is missing in the table of modules in docs/architecture.md"
    for gone in sorted(set(table) - folders - {RUNNER}):
        yield f"docs/architecture.md lists the module {gone}, which is not a folder"


def budgets():
    found = {}
    for line in (ROOT / "tests" / "repository" / "budgets.txt").read_text().split("\n"):
        if line and not line.startswith("#"):
            kind, what, number = line.split(maxsplit=3)[:3]
            found[kind, what] = int(number)
    return found


def functions(text):
    """Yields (first line, name, lines) of each function with a body, found by clang-format's indentation."""
    lines = text.split("\n")

    def margin_of(at):
        return len(lines[at]) - len(lines[at].lstrip())

    def opened(first, last):
        return sum(lines[at].count("(") - lines[at].count(")") for at in range(first, last + 1))

    for last, line in enumerate(lines):
        if not re.match(r"[^#/]*\)[^;=]*\{$", line):
            continue
        first = last  # a long signature begins at its first parenthesis, before a constructor's initializers
        while first > 0 and (opened(first, last) < 0 or margin_of(first) % 4 or lines[first].lstrip().startswith(":")):
            first -= 1
        if opened(first, last):
            continue  # inside a call
        if margin_of(first) > 8 or re.match(r"\s*(?:(?:namespace|struct|class|enum|union|if|for|while|switch|do|else|case)\b|[}\[])", lines[first]):
            continue
        end = next((at for at in range(last + 1, len(lines)) if lines[at].startswith(" " * margin_of(first) + "}")), len(lines))
        names = re.findall(r"([\w~]+|operator\S+)\(", " ".join(lines[first:last + 1]))
        yield first + 1, names[0] if names else line.strip(), end - first + 1


def wrong_sizes():
    most, total = budgets(), {}
    used = set()
    for path in sources():
        text = path.read_text()
        count = text.count("\n")
        module = module_of(path)
        total[module] = total.get(module, 0) + count
        key = ("file", name(path)) if ("file", name(path)) in most else ("file", "any")
        used.add(key)
        if count > most[key]:
            yield f"{shown(path)} has {count} lines; its budget is {most[key]}"
        for line, function, lines in functions(text):
            key = ("function", f"{name(path)}:{function}")
            key = key if key in most else ("function", "any")
            used.add(key)
            if lines > most[key]:
                yield f"{shown(path)}:{line}: {function} has {lines} lines; its budget is {most[key]}"
    total[RUNNER] = sum(path.read_text().count("\n") for path in (ROOT / RUNNER).glob("*.py"))
    for module, count in total.items():
        if module:
            used.add(("module", module))
            if ("module", module) not in most:
                yield f"{shown(path_of(module))} has no budget in tests/repository/budgets.txt; it has {count} lines"
            elif count > most["module", module]:
                yield f"{shown(path_of(module))} has {count} lines; its budget is {most['module', module]}"
    for kind, what in sorted(each for each in set(most) - used if each[0] not in ("contract", "nvcc")):
        yield f"tests/repository/budgets.txt has a budget for the {kind} {what}, which does not exist"


def orphans():
    for path in sources():
        before = ""
        for line, text in enumerate(path.read_text().split("\n"), 1):
            comment = re.match(r"\s*// (.*)", text)
            if comment and re.match(r"\s*// \S", before) and not before.rstrip().endswith((".", ":", ";")):
                words = comment.group(1).split()
                if len(words) <= 1 and len(before) > 60:
                    yield f"{shown(path)}:{line}: a comment line of one word, '{comment.group(1)}'; wrap the comment elsewhere"
            before = text


def names_of_one_catch():
    """Checks that tests use names of Catch2 through tests/catch.hpp only, because versions 2 and 3 have different names."""
    for path in sorted((ROOT / "tests").rglob("*.[hc]pp")):
        for line, text in enumerate(path.read_text().split("\n"), 1):
            if not path.name.startswith("catch") and "Catch::" in text:
                yield f"{path.relative_to(ROOT)}:{line}: a name of Catch2, which one of its versions may lack; use tests/catch.hpp"


def defined_elsewhere():
    """Checks that X.hpp, X.cpp or X_more.cpp in the same folder defines each function that X.hpp declares."""
    contracts = {what for kind, what in budgets() if kind == "contract"}
    texts = {name(path): path.read_text() for path in sources()}
    definition = r"^(?!\s|#|//|using|return)[\w\[\]:<>,&*\"' ()]*?\b(?:\w+::)*{}\((?:[^;{{}}]|\{{\}})*\)[^;{{}}]*(?::[^;]*)?\{{"
    for header, text in texts.items():
        if not header.endswith(".hpp") or header in contracts:
            continue
        for found in re.finditer(r"^(?!\s|using|typedef|return|friend|#|//|extern)(?:\[\[[^]]*\]\] )*[\w:<>,&* ]+[ &*](\w+)\([^;{}=]*\)(?: const)?(?: noexcept)?;", text, re.M):
            function = found.group(1)
            family = header.rsplit("/", 1)[0] + "/" + header.rsplit("/", 1)[-1][:-4].split("_")[0]
            own = text + "".join(body for other, body in texts.items() if re.fullmatch(family + r"(_\w+)?\.(cpp|cu)", other))
            pattern = re.compile(definition.format(re.escape(function)), re.M)
            if pattern.search(own):
                continue
            others = [other for other, body in texts.items() if pattern.search(body)]
            yield f"{shown(path_of(header))}: declares {function}(), which is defined in {', '.join(others) or 'no file that could be found'}"


def header_faults(compiler):
    """Compiles each header alone that no .cpp of the same name includes first."""
    def compiles(path):
        include = name(path) if name(path).startswith("course/") else f"tally/{name(path)}"
        done = subprocess.run([compiler, *WARNINGS, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", f"-I{ROOT}", "-include", include, "-x", "c++", "/dev/null"],
                              capture_output=True, text=True)
        return None if done.returncode == 0 else f"{shown(path)} does not compile alone:\n{done.stderr[:1000]}"

    def first_include(path):
        found = re.search(r'#include "(.*)"', path.read_text()) if path.exists() else None
        return found and found.group(1).removeprefix("tally/")

    by_nvcc = {what for kind, what in budgets() if kind == "nvcc"}
    alone = [path for path in sources() if path.suffix == ".hpp" and name(path) not in by_nvcc and first_include(path.with_suffix(".cpp")) != name(path)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from filter(None, pool.map(compiles, alone))
    print(f"{len(alone)} headers compile alone")


def main(words):
    if words[:1] == ["--headers"]:
        faults = list(header_faults(*words[1:]))
    else:
        allowed = modules()
        faults = [*wrong_modules(allowed), *wrong_includes(allowed), *foreign_includes(), *wrong_sizes(), *orphans(), *names_of_one_catch(), *defined_elsewhere(), *shared_names()]
        print(f"{len(sources())} files in {len(allowed)} modules")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
