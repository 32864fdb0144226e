"""Tests the output of exercise-mistakes and its errors for invalid files. Usage: mistakes_test.py EXERCISE_MISTAKES"""

import os
import subprocess
import sys
import tempfile

from terminal_driver import run_tests

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


def written(program, mistakes, check=CHECK):
    """Returns the exit code and the output file or the error message."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("a.cpp", check), ("a.mistakes", mistakes), ("a.hpp", GIVEN)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([program, "a.cpp", "a.mistakes", "a.hpp", "out"], cwd=folder, stderr=subprocess.PIPE, text=True, check=False)
        out = os.path.join(folder, "out")
        if done.returncode != 0:
            assert not os.path.exists(out)
            return done.returncode, done.stderr
        with open(out, encoding="utf-8") as file:
            return 0, file.read()


def answer(program, changes):
    code, text = written(program, "# Of a test.\n\n== wrong\nSaid of\nit.\n" + changes)
    assert code == 0, text
    return text.split("namespace wrong {\n")[1].split("}  // namespace wrong")[0]


def right():
    return CHECK.split("namespace right {\n")[1].split("}  // namespace right")[0]


def test_other_lines_are_kept(program):
    assert answer(program, "-    return x + x;\n+    return x;\n") == right().replace("x + x", "x")
    assert answer(program, " int order(int x) {\n+    x += 1;\n") == right().replace("order(int x) {\n", "order(int x) {\n    x += 1;\n")
    assert answer(program, "-    const int second = twice(first);\n-    return second;\n+    return first;\n") == \
        right().replace("    const int second = twice(first);\n    return second;\n", "    return first;\n")


def test_a_line_matches_its_first_occurrence_after_the_previous_match(program):
    assert answer(program, " }\n+// between\n") == right().replace("}\n\n", "}\n// between\n\n")
    assert answer(program, "     return second;\n }\n+// behind\n") == right() + "// behind\n"


def test_dots_remove_the_lines_between(program):
    assert answer(program, " int order(int x) {\n-...\n+    return x;\n }\n") == right().split("    const int first")[0] + "    return x;\n}\n"
    assert answer(program, "-...\n int order(int x) {\n") == right()[right().index("int order"):]


def test_functions_of_the_exercise_are_listed(program):
    text = written(program, '== wrong\nSays "no" to \\n.\n-    return x + x;\n+    return x;\n')[1]
    assert "    decltype(&::twice) twice;\n    decltype(&::order) order;\n" in text, text
    assert '{"twice", "order"},\n    {right::twice, right::order},\n' in text, text
    assert '{"wrong", {wrong::twice, wrong::order}, "Says \\"no\\" to \\\\n."}' in text, text


def test_errors_name_the_line(program):
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
        code, text = written(program, mistakes)
        assert code == 1 and text == said + "\n", (mistakes, text)
    assert written(program, "", "int main() {}\n") == (1, "a.cpp has no namespace right\n")


if __name__ == "__main__":
    run_tests(sys.modules[__name__], sys.argv[1])
