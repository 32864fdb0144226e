"""One input number of a lesson is changed: a check of it fails. That it passes as it is, its own test shows.

Usage: changed_number_test.py build BUILD PROGRAM           all changed lessons, each in a namespace, as one program
       changed_number_test.py LESSON_TARGET PROGRAM         runs one of them
As a program each, a lesson would cost five seconds, nearly all of them the same headers. It is compiled and linked with a
lesson's own commands, as the build recorded them, for the first of its types: float.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from terminal_driver import clean_environment

LESSONS = Path(__file__).resolve().parents[2] / "lessons"
CHANGES = {  # lesson: an input number of it, as its source has it in exactly one place, and another instead
    "03_arrays": ("{0.5, -0.5}, device", "{0.5, -0.75}, device"),
    "04_why_a_large_batch": ("real(0), real(sigma)", "real(0), real(1.5 * sigma)"),
    "05_full_batch": ("(matmul(row, so_far) / 6)", "(matmul(row, so_far) / 5)"),
    "06_forgot_to_divide": ("sgd_step({by_mean, by_sum}, rate)", "sgd_step({by_mean, by_sum}, 2 * rate)"),
    "07_divide": ("mean(matmul(micro, w)) / n", "mean(matmul(micro, w)) / (n + 1)"),
    "08_rounding": ("draw < 3000", "draw < 300"),
    "09_lost_batches": ("Listing::mended, 938, 5", "Listing::mended, 938, 6"),
    "10_unequal": ("(mean(matmul(micro, w)) * share)", "(mean(matmul(micro, w)) * 2 * share)"),
    "11_the_tail": ("in_order(images)", "in_order(images + 32)"),
    "12_mean_sum_token": ("words{1, 2, 3, 1, 4, 5}", "words{1, 2, 3, 1, 4, 6}"),
    "13_once_per_update": ("{2, 0, 0, 2}", "{2, 0, 0, 3}"),
    "14_adam_hides_it": ("sgd_rate = 0.2", "sgd_rate = 0.25"),
    "15_when_it_lies": ("{0.5, -1, 2, 0.25, ", "{0.5, -1, 2, 0.5, "),
    "16_fashion": ("last_(512, 10, {seed, 3})", "last_(512, 11, {seed, 3})"),
    "17_wrapper_and_schedule": ("{2, 4, 6, 8, 10, 12, 14, 16}", "{2, 4, 6, 8, 10, 12, 14, 17}"),
    "18_agn": ("{4, 0.5}, {1, 3}", "{4, 0.5}, {1, 2}"),
    "19_where_memory_goes": ("(14949.0 - 8681)", "(14959.0 - 8681)"),
    "20_checkpointing": ("tower(depth)", "tower(depth + 1)"),
    "21_the_best_schedule": ("walk(steps)", "walk(steps + 1)"),
    "23_what_the_noise_says": ("real(1 / std::sqrt(items))", "real(1.1 / std::sqrt(items))"),
    "24_across_processes": ("0.25 * (v - mean_of(", "0.2 * (v - mean_of("),
    "25_the_pipe": ("{ divide(W, m); }", "{ divide(W, m + 1); }"),
}


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


def compile_command(build, source):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if Path(entry["directory"], entry["file"]) == source:
            return shlex.split(entry["command"]), entry["directory"]
    raise AssertionError(f"compile_commands.json does not know {source}")


def link_command(build, target):
    recorded = build / "lessons/CMakeFiles" / f"{target}.dir/link.txt"
    if recorded.exists():
        return shlex.split(recorded.read_text()), recorded.parents[2]
    last = run(["ninja", "-t", "commands", target], build).splitlines()[-1]
    return [word for word in shlex.split(last) if word not in (":", "&&")], build


def changed_text(lesson):
    """None where its number is not in exactly one place."""
    number, instead = CHANGES[lesson]
    text = (LESSONS / f"{lesson}.cpp").read_text()
    return text.replace(number, instead) if text.count(number) == 1 else None


def write_changed(folder):
    """The lessons, and a program that runs the one which its first word names."""
    headers, parts, names = {"#include <cstdlib>": None, "#include <cstring>": None}, [], []
    for lesson in CHANGES:
        if not (LESSONS / f"{lesson}.cpp").exists() or (text := changed_text(lesson)) is None:
            continue  # its own test says so
        headers.update(dict.fromkeys(re.findall(r"(?m)^#include .*$", text)))
        (folder / f"{lesson}.cpp").write_text(text)
        parts.append(f'namespace lesson_{lesson} {{\nnamespace {{\nusing ::Scalar, ::Tensor;\n}}\n#include "{lesson}.cpp"\n}}')
        names.append(f'    if (std::strcmp(words[1], "{lesson}") == 0) return tally::lesson::run_given(count - 1, words + 1, {int(lesson[:2])});')
    # A lesson on several ranks starts this program again, with the environment of the first.
    kept = ['    if (const char* kept = std::getenv("TALLY_CHANGED")) return tally::lesson::run_given(count, words, std::atoi(kept));',
            '    ::setenv("TALLY_CHANGED", words[1], 1);']
    main = ["int main(int count, char** words) {", *kept, *names, "    return 2;", "}", ""]
    source = folder / "changed.cpp"
    source.write_text("\n".join([*headers, *parts, *main]))
    return source


def build_changed(build, program):
    there = [lesson for lesson in CHANGES if (LESSONS / f"{lesson}.cpp").exists()]
    on_ranks = [lesson for lesson in there if "lesson/on_ranks.hpp" in (LESSONS / f"{lesson}.cpp").read_text()]
    like = (on_ranks + there)[0]  # such a lesson is linked with one library more
    source = LESSONS / f"{like}.cpp"
    with tempfile.TemporaryDirectory(prefix="tally-changed-") as scratch:
        changed = write_changed(Path(scratch))
        compiling, folder = compile_command(build, source)
        object_file = compiling[compiling.index("-o") + 1]
        swap = {str(source): str(changed), object_file: f"{scratch}/changed.o"}
        run([swap.get(word, word) for word in compiling] + ["-O0", "-w"], folder)
        linking, folder = link_command(build, f"lesson_{like}")
        linking[linking.index("-o") + 1] = str(program)
        objects = [word for word in linking if word.endswith(Path(object_file).name)]  # one for each type
        linking[linking.index(objects[0])] = f"{scratch}/changed.o"
        run([word for word in linking if word not in objects], folder)


def check(lesson, program):
    assert lesson in CHANGES, f"there is no line for {lesson} in CHANGES of {__file__}: which number of it, changed, makes a check fail?"
    number, instead = CHANGES[lesson]
    assert changed_text(lesson) is not None, f"{lesson}.cpp has not exactly one '{number}'"
    after = subprocess.run([program, lesson, "--plain"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                           env=clean_environment())
    if after.returncode == 77:
        print(after.stdout)
        sys.exit(77)
    assert after.returncode == 1, f"'{instead}' for '{number}': exit {after.returncode}\n{after.stdout}{after.stderr}"
    assert re.search(r"\d+ checks, [1-9]\d* failed", after.stdout), f"it ended before a check could fail:\n{after.stdout}"
    print(*[line for line in after.stdout.splitlines() if "FAIL" in line], sep="\n")


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build_changed(Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve())
    else:
        check(sys.argv[1].removeprefix("lesson_"), sys.argv[2])
