"""Counts the lines of lessons that compute the subject of the lesson. Usage: subject_test.py

Each statement of lessons/NN_*.cpp that begins with LESSON(), with all its lines, belongs to one class:

  engine   computes the subject of the lesson, in calls of tally or in plain C++
  words    step(), note() and ask()
  shows    show(), code(), graph(), plot(), a table with its columns and rows
  checks   check(), check_equal(), check_close()
  frame    includes, comments, blank lines, lines without a letter or digit, the line LESSON() and the parameters

A lesson has at most 120 lines. In all lessons together, at least 45 % of the lines are of the class engine.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES, LEAST_SHARE = 120, 45
CLASSES = {
    "words": re.compile(r"(step|note|ask)\("),
    "shows": re.compile(r"(auto \w+ = )?table\(|(show|code|graph|plot)\(|\w+\.row\("),
    "checks": re.compile(r"check(_\w+)?\("),
    "frame": re.compile(r"#|using |namespace|LESSON|(const )?\w+ \w+ = setting\("),
}


def statements(lines):
    """Yields the lines of each statement. A statement ends with ; { or } at its own level of parentheses."""
    depth, text = 0, []
    for line in lines:
        bare = re.sub(r"//.*", "", re.sub(r'"(\\.|[^"\\])*"', '""', line))
        text.append(line)
        depth += bare.count("(") - bare.count(")")
        begins_lambda = re.search(r"\[[^]]*\] ?(\([^()]*\) ?)?(-> [^{]+)?\{\s*$", bare)
        if not bare.strip() or begins_lambda or (re.search(r"[;{}:]\s*$", bare) and depth <= 0):
            yield text
            depth, text = 0, []
    if text:
        yield text


def class_of(statement):
    text = " ".join(line.strip() for line in statement)
    if not re.search(r"\w", re.sub(r"//.*", "", text)):
        return "frame"
    return next((name for name, pattern in CLASSES.items() if pattern.match(text)), "engine")


def counted(path):
    found = dict.fromkeys(("engine", *CLASSES), 0)
    for statement in statements(path.read_text().rstrip("\n").split("\n")):
        code = [line for line in statement if not re.match(r"\s*//", line)]
        found["frame"] += len(statement) - len(code)
        if code:
            found[class_of(code)] += len(code)
    return found


def main():
    faults, all_lines, engine = [], 0, 0
    print(f"{'lesson':32}{'lines':>7}" + "".join(f"{name:>8}" for name in ("engine", *CLASSES)) + "   share")
    for path in sorted((ROOT / "lessons").glob("[0-9][0-9]_*.cpp")):
        if "\nLESSON" not in path.read_text():
            continue
        found = counted(path)
        lines = sum(found.values())
        all_lines, engine = all_lines + lines, engine + found["engine"]
        print(f"{path.stem:32}{lines:7}" + "".join(f"{number:8}" for number in found.values()) + f"{100 * found['engine'] / lines:6.0f} %")
        if lines > MOST_LINES:
            faults.append(f"{path.name} has {lines} lines, more than {MOST_LINES}")
    print(f"{'all':32}{all_lines:7}{engine:8}{100 * engine / all_lines:6.0f} %")
    if 100 * engine < LEAST_SHARE * all_lines:
        faults.append(f"{100 * engine / all_lines:.0f} % of the lines compute the subject; expected at least {LEAST_SHARE} %")
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
