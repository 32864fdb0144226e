"""Counts the mistakes of a class in the learners' files of answers, and draws the most frequent ones."""
import html
import json
import os
from collections import Counter
from pathlib import Path

import answers
from common import Exit, Problem, make_folder, many, mode_for, one_line, out, say_error, wrapped, write_whole

STYLE = """.t-page{fill:#ffffff}
.t-text{font-family:monospace;font-size:18px;fill:#1f2328}
.t-title{font-size:22px;font-weight:bold}
.c-all{fill:#eef1f4}
.c-bar{fill:#f3b98d}
.c-head{font-weight:bold}
"""


def read_class(folder):
    """Reads the files in the folder, and the files `answers` and `work/answers` in its subfolders."""
    try:
        names = [name for name in os.listdir(folder) if not name.startswith(".")]
    except OSError as error:
        raise Problem(f"cannot read the folder {folder}: {error.strerror}") from None
    learners = []
    for path in sorted(Path(folder, name, file) for name in names for file in ("", "answers", "work/answers")):
        if not path.is_file():
            continue
        name = one_line(os.path.relpath(path, folder))
        try:
            found, broken = answers.read(path)
        except Problem as problem:
            say_error(f"{problem.message}: ignored")
            continue
        if broken and not found:
            say_error(f"{name} is not a file of answers: ignored")
            continue
        if broken:
            what = "a line that is not an answer" if len(broken) == 1 else "lines that are not answers"
            say_error(f"{name} has {what}, the first '{one_line(broken[0][:40])}': ignored")
        learners.append(found)
    return learners


def mistakes(learners):
    """The mistakes as (answer, number of learners who made it, number of learners who answered), the most frequent ones first."""
    answered, made, examples = Counter(), Counter(), {}
    for given in learners:
        tries = [each for each in given if each.what != "lesson" and each.how in ("right", "wrong", "passed")]
        answered.update({each[:3] for each in tries})
        wrong = {(each[:3], each.which): each for each in reversed(tries) if each.how == "wrong"}  # the first of each kind
        made.update(wrong.keys())
        for key, answer in wrong.items():
            examples.setdefault(key, answer)
    found = [(examples[key], made[key], answered[key[0]]) for key in sorted(made)]
    return sorted(found, key=lambda each: (-each[1], each[2]))


def where(answer):
    return f"{answer.of}, question {answer.number}" if answer.what == "question" else f"exercise {answer.of}"


def explanation(answer):
    if not answer.which:
        return "another answer, without a known mistake"
    return f'"{answer.given}": {answer.sentence}' if answer.given else answer.sentence


def chart(found, title):
    """Draws the first ten mistakes as SVG, each with a bar for its share."""
    body, told, y, left, width = [], [], 100, 40, 1320

    def text(x, y, kind, words):
        body.append(f'<text x="{x}" y="{y}" class="t-text {kind}">{html.escape(words)}</text>')

    text(left, 56, "t-title", title)
    for answer, made, answered in found[:10]:
        head = f"{made} of {answered}: {where(answer)}"
        for kind, length in (("c-all", width), ("c-bar", width * made // answered)):
            body.append(f'<rect x="{left}" y="{y}" width="{length}" height="34" class="{kind}"/>')
        text(left + 10, y + 24, "c-head", head)
        y += 60
        for words in filter(None, (answer.question, explanation(answer))):
            for line in wrapped(words, 108, 2):
                text(left + 10, y, "", line)
                y += 26
        y += 13
        told.append(f"{head}: {explanation(answer)} ")
    across, down, described, shapes = width + 2 * left, y + 26, html.escape("".join(told)), "\n".join(body)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{down}" viewBox="0 0 {across} {down}" role="img" '
            f'aria-labelledby="t-title t-desc">\n<title id="t-title">{title}</title>\n<desc id="t-desc">{described}</desc>\n'
            f'<style>\n{STYLE}</style>\n<rect width="{across}" height="{down}" rx="12" class="t-page"/>\n{shapes}\n</svg>\n')


def show(folder, file, options):
    """Prints the mistakes in the files of a folder, and writes the picture."""
    learners, mode = read_class(folder), mode_for(options)
    if not learners:
        say_error(f"no answers in {folder}: put each learner's work/answers there, under any names")
        return Exit.skipped
    found, class_size = mistakes(learners), many(len(learners), "learner", "learners")
    if options.json:
        for answer, made, answered in found:
            out(json.dumps({"v": 1, "event": "misconception", "what": answer.what, "slug": answer.of, "number": answer.number,
                            "which": answer.which, "given": answer.given, "sentence": explanation(answer), "question": answer.question,
                            "learners": made, "of": answered}, ensure_ascii=False))
        return Exit.good
    out(f"{class_size}, {sum(bool(answer.which) for answer, _, _ in found)} known mistakes, the most frequent first")
    for answer, made, answered in found:
        share = f"{made} of {answered}"
        for i, text in enumerate(filter(None, (where(answer), answer.question, explanation(answer)))):
            out("\n".join(wrapped(f"{'' if i else share:>8}  {mode.said(text)}", mode.width, 10)))
    if found:
        make_folder(os.path.dirname(file) or ".")
        write_whole(file, chart(found, f"The mistakes of {class_size}"))
        out(f"wrote {file}")
    return Exit.good
