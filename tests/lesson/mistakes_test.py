"""Tests the output of write_mistakes.py and its errors for invalid files."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from terminal_driver import run_tests

PROGRAM = Path(__file__).resolve().parents[2] / "exercises/kit/write_mistakes.py"

CHECK = """namespace {

namespace right {
int twice(int x) {
    return x + x;
}

int order(int x) {
    const int first = twice(x);
    const int second = twice(first);
    return second;
}
}  // namespace right
"""
GIVEN = "int twice(int x);\nHAND_IN(twice);\nint order(int x);\nHAND_IN(order);\n"


def written(mistakes, check=CHECK):
    """Returns the exit code and the output file or the error message."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("a.cpp", check), ("a.mistakes", mistakes), ("a.hpp", GIVEN)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([sys.executable, PROGRAM, "a.cpp", "a.mistakes", "a.hpp", "out"], cwd=folder, stderr=subprocess.PIPE, text=True,
                              check=False)
        out = os.path.join(folder, "out")
        if done.returncode != 0:
            assert not os.path.exists(out)
            return done.returncode, done.stderr
        with open(out, encoding="utf-8") as file:
            return 0, file.read()


def answer(changes):
    code, text = written("# Of a test.\n\n== wrong\nSaid of\nit.\n" + changes)
    assert code == 0, text
    return text.split("namespace wrong {\n")[1].split("}  // namespace wrong")[0]


def right():
    return CHECK.split("namespace right {\n")[1].split("}  // namespace right")[0]


def test_other_lines_are_kept():
    assert answer("-    return x + x;\n+    return x;\n") == right().replace("x + x", "x")
    assert answer(" int order(int x) {\n+    x += 1;\n") == right().replace("order(int x) {\n", "order(int x) {\n    x += 1;\n")
    assert answer("-    const int second = twice(first);\n-    return second;\n+    return first;\n") == \
        right().replace("    const int second = twice(first);\n    return second;\n", "    return first;\n")


def test_a_line_matches_its_first_occurrence_after_the_previous_match():
    assert answer(" }\n+// between\n") == right().replace("}\n\n", "}\n// between\n\n")
    assert answer("     return second;\n }\n+// behind\n") == right() + "// behind\n"


def test_dots_remove_the_lines_between():
    assert answer(" int order(int x) {\n-...\n+    return x;\n }\n") == right().split("    const int first")[0] + "    return x;\n}\n"
    assert answer("-...\n int order(int x) {\n") == right()[right().index("int order"):]


def test_functions_of_the_exercise_are_listed():
    text = written('== wrong\nSays "no" to \\n.\n-    return x + x;\n+    return x;\n')[1]
    assert "    decltype(&::twice) twice;\n    decltype(&::order) order;\n" in text, text
    assert '{"twice", "order"},\n    {right::twice, right::order},\n' in text, text
    assert '{"wrong", {wrong::twice, wrong::order}, "Says \\"no\\" to \\\\n."}' in text, text


def test_errors_name_the_line():
    for mistakes, said in (
            ("-    return x + x;\n", "a.mistakes:1: a mistake begins with '== ' and its name"),
            ("== wrong\nSaid.\n-    return 7;\n", "a.mistakes:3: wrong names a line that `right` does not have:     return 7;"),
            ("== wrong\nSaid.\n-    return second;\n-    return x + x;\n",
             "a.mistakes:4: wrong names a line that `right` does not have below the one named before it:     return x + x;"),
            ("== wrong\nSaid.\n+// a\nint b;\n", "a.mistakes:4: a line of wrong begins with neither ' ' nor '-' nor '+'"),
            ("== wrong\nSaid.\n-    return x + x;\n+    return x + x;\n", "a.mistakes:4: wrong is the answer itself"),
            ("== wrong\nSaid.\n", "a.mistakes:1: wrong is the answer itself"),
            ("== wrong\n-    return second;\n", "a.mistakes:2: wrong has no sentence"),
            ("== wrong\nSaid.\n-    return second;\n-...\n", "a.mistakes:4: wrong does not say which line stays after '-...'")):
        code, text = written(mistakes)
        assert code == 1 and text == said + "\n", (mistakes, text)
    assert written("", "int main() {}\n") == (1, "a.cpp has no namespace right\n")


if __name__ == "__main__":
    run_tests(sys.modules[__name__])
