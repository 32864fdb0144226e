"""What the course puts between quotation marks stands in its sources, word for word. Usage: quotations_test.py

quotations.txt beside this file has the sentences that are quoted, as their sources have them, and the words that are nobody's.
Looked at are pieces of three words and more, in the pages and the programs of lessons and in docs/claims.md.
And the verdicts in docs/claims.md are as many as it and README.md say.
"""
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERDICTS = ("right", "right under conditions", "misleading", "wrong")


def plain(text):
    return re.sub(r"\s+", " ", re.sub(r"[*`]", "", text)).strip().lower()


def quoted(path):
    text = path.read_text()
    if path.suffix == ".md":
        return re.findall(r'"([^"]+)"', re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return re.findall(r'\\"((?:[^"\\]|\\(?!"))+)\\"', re.sub(r'"\s*\n\s*"', "", text))  # of a literal in several pieces


def test_quotations():
    sentences, own, used = [], set(), set()
    for line in (ROOT / "tests/lesson/quotations.txt").read_text().splitlines():
        whose, _, words = line.partition(" ")
        if whose in "ABCDE" and words:
            sentences.append(plain(words))
        elif whose == "-":
            own.add(plain(words))
    count = 0
    for path in sorted([*ROOT.glob("lessons/*.md"), *ROOT.glob("lessons/*.cpp"), ROOT / "docs/claims.md"]):
        for words in quoted(path):
            if len(words.split()) < 3:
                continue
            count += 1
            if plain(words) in own:
                used.add(plain(words))
                continue
            for piece in re.split(r"…|\.\.\.", plain(words)):
                piece = piece.strip(" ,.?")
                assert any(piece in sentence for sentence in sentences), f'{path.name}: nobody has said "{piece}"'
    assert not own - used, f"quotations.txt: no longer between quotation marks: {own - used}"
    assert count > 60, count


def test_verdicts():
    claims = (ROOT / "docs/claims.md").read_text()
    counted = Counter(re.findall(r"(?m)^\| [A-E]\d+ \| [^|]* \| ([a-z ]+) \|", claims))
    assert set(counted) == set(VERDICTS), counted
    all_of_them = len(re.findall(r"(?m)^\| [A-E]\d+ \|", claims))
    assert sum(counted.values()) == all_of_them, f"{all_of_them} claims, {counted}"
    said = f"Counted: {all_of_them} claims: " + ", ".join(f"{counted[v]} {v}" for v in VERDICTS) + "."
    assert said in claims, said
    right, conditions, misleading, wrong = (counted[v] for v in VERDICTS)
    said = (f"of {all_of_them}, {right} are right, {conditions} are right under conditions that the text does not name, "
            f"{misleading} are misleading and {wrong} wrong.")
    assert said in " ".join((ROOT / "README.md").read_text().split()), said


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(f"[ok] {name}")
