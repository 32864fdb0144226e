#!/usr/bin/env python3
"""Finds words and sentence patterns that CONTRIBUTING.md rules out, in pages, comments, string literals and test names."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECKED = ["*.md", "src", "course", "lessons", "exercises", "tests", "bench", "web", "tools", "cmake", "examples", "learn", "CMakeLists.txt", ".ci"]
TEXT = {".svg", ".json", ".txt", ".html", ".png", ".npy", ".npz"}  # without comments of ours, but for CMakeLists.txt
PATTERNS = {
    "an actor without a name": r"(?i)\b(?:whoever|nobody|somebody|whichever)\b",
    "a clause as a subject": r"(?:^|[.;:] )(?:What(?!'s)|Whatever|Who|Whose|So much|So it)\b(?!(?:[^.]|\.\S)*\?)",
    "'is no' instead of 'is not a'": r"\b(?:is|are|was|were) no (?!longer\b)[a-z]+\b",
    "a word that only this project uses": r"(?i)\b(?:anew|let go|lets go|way back|going back|in words|by name|made again|dials?|handed (?:over|in)|held to|"
    r"as (?:it|they) (?:lies?|stands?)|one after the other|looks? on|refused|meanwhile|patience|pretend(?:ed|s)?|beside|(?:has|have) (?:gone|come)|"
    r"dealt|deals|house rules?|twins?|witness(?:es)?)\b",
}
# (file, a part of the text, why it is right): at most 20.
EXCEPTIONS = [
    ("tests/mutate", "in words[0]", "code in an f-string, not a sentence"),
    ("docs/claims.md", "There is no accuracy loss", "a quotation"),
    ("lessons/19_when_it_lies.md", "There is no accuracy loss", "a quotation"),
    ("lessons/21_dropout_masks.md", "There is no accuracy loss", "a quotation"),
]


def pieces(path, text):
    """(line, comment, literal or sentence of a page)"""
    if path.suffix == ".md" or path.name == "mistakes.txt":
        if path.name == "mistakes.txt":
            text = re.sub(r"(?m)^[-+ #=].*", "", text)  # names of mistakes and lines of code
        prose = re.sub(r"(?ms)^( *)(```|~~~).*?^\1\2|`[^`]*`", lambda code: re.sub(r"[^\n]", "_", code.group()), text)
        for match in re.finditer(r"(?:[^\n|]|\n(?!\s*(?:\n|[-*|#>]|\d+\.)))+", prose):  # a paragraph, an item of a list, a cell of a table
            yield prose.count("\n", 0, match.start()) + 1, match.group().strip(" \n-*>")
        return
    if path.suffix in (".hpp", ".cpp", ".cu", ".js", ".css"):
        pattern = r'//(?P<comment>[^\n]*)|/\*(?P<block>.*?)\*/|R"(\w*)\((?P<raw>.*?)\)\3"|"(?P<text>(?:\\.|[^"\\\n])*)"|\'(?:\\.|[^\'\\\n])\''
    elif path.suffix == ".py":
        pattern = r'(?P<block>"""[\s\S]*?""")|#(?P<comment>[^\n]*)|"(?P<text>(?:\\.|[^"\\\n])*)"|\'(?P<raw>(?:\\.|[^\'\\\n])*)\''
    else:
        pattern = r'(?<!\S)#(?P<comment>[^\n]*)|"(?P<text>(?:\\.|[^"\\])*)"|\'(?P<raw>[^\'\n]*)\''
    for match in re.finditer(pattern, text, re.S):
        for piece in match.groupdict().values():
            if piece:
                yield text.count("\n", 0, match.start()) + 1, piece.strip(' "')


def findings():
    for name in subprocess.run(["git", "ls-files", *CHECKED], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split():
        path = Path(name)
        if name == "tests/repository/words.py" or (path.suffix in TEXT and path.name not in ("CMakeLists.txt", "mistakes.txt")) or (ROOT / path).is_symlink():
            continue
        for line, piece in pieces(path, (ROOT / path).read_text(errors="ignore")):
            for kind, pattern in PATTERNS.items():
                for match in re.finditer(pattern, piece):
                    if not any(name == file and part in piece for file, part, _ in EXCEPTIONS):
                        yield f'{name}:{line}: {kind}, "{match.group().strip(" .;:")}": {" ".join(piece.split())[:140]}'


found = list(findings())
if len(EXCEPTIONS) > 20:
    found.append(f"{len(EXCEPTIONS)} exceptions; at most 20 are allowed")
print("\n".join(found) or "nothing found")
sys.exit(1 if found else 0)
