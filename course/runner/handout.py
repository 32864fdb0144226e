"""Writes two sheets for a class from the events of lessons: one with the questions, and one with the answers."""
import html
import json
import math
import re
from pathlib import Path
from urllib.parse import quote

import build
import child
from common import PARAMETERS, WORK, Exit, Problem, make_folder, out, say_error, write_whole
from lessons import arguments, named

TOY = "full-batch"  # the lesson that shows x and w
STYLE = """
body { font: 12pt/1.4 system-ui, sans-serif; color: #000; background: #fff; max-width: 46rem; margin: 1rem auto; padding: 0 1rem; }
h1 { font-size: 1.3em; border-bottom: 1px solid #000; } h2 { font-size: 1.05em; margin: 1em 0 0.2em; } p { margin: 0.3em 0; }
pre { font: 0.85em/1.3 ui-monospace, "DejaVu Sans Mono", monospace; background: #f2f2f2; padding: 0.4em 0.7em; white-space: pre-wrap; }
table { border-collapse: collapse; font-size: 0.9em; margin: 0.4em 0; } th, td { border: 1px solid #888; }
th, td { padding: 0.1em 0.6em; text-align: left; }
td { font-family: ui-monospace, "DejaVu Sans Mono", monospace; } img { max-width: 100%; }
.question { border: 1px solid #000; padding: 0.4em 0.8em; margin: 0.8em 0; break-inside: avoid; }
.line { border-bottom: 1px solid #888; height: 1.9em; } .boxes { font-family: monospace; } .small { color: #444; font-size: 0.85em; }
pre, table, img { break-inside: avoid; }
section + section { break-before: page; } @media print { body { margin: 0; max-width: none; font-size: 11pt; } }
"""
LINE = '<div class="line"></div>\n'


def tagged(tag, text):
    return f"<{tag}>{text}</{tag}>\n"


def table(event):
    rows = [("th", event["columns"]), *(("td", row) for row in event["text"])]
    lines = (tagged("tr", "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)) for tag, cells in rows)
    return tagged("table", "\n" + "".join(lines))


def chart(event):
    """Draws points, or bars that begin at zero. Each series has its own mark."""
    marks = "o" if event["kind"] == "bars" else "ox+*#@%&"
    points = [(x, y, mark) for mark, one in zip(marks, event["series"]) for x, y in zip(one["x"], one["y"])
              if all(isinstance(value, (int, float)) and math.isfinite(value) for value in (x, y))]
    if not points:
        return ""
    left, right, low, high = (f(point[i] for point in points) for i in (0, 1) for f in (min, max))
    low = min(low, 0) if event["kind"] == "bars" else low
    grid = [[" "] * 60 for _ in range(8)]
    for x, y, mark in points:
        column, row = round((x - left) / (right - left or 1) * 59), round((y - low) / (high - low or 1) * 7)
        for each in range(row + 1) if event["kind"] == "bars" and y else [row]:
            grid[7 - each][column] = "█" if event["kind"] == "bars" else mark
    labels = [f"{high:.4g}", *[""] * 6, f"{low:.4g}"]
    margin = max(map(len, labels))
    lines = [f"{label:>{margin}} |{''.join(row).rstrip()}" for label, row in zip(labels, grid)]
    lines.append(" " * (margin + 2) + f"{left:.4g}" + f"{right:.4g}".rjust(60 - len(f"{left:.4g}")))
    if len(event["series"]) > 1:
        lines.append("    ".join(f"{mark} {one['label']}" for mark, one in zip(marks, event["series"])))
    return tagged("p", html.escape(event["name"])) + tagged("pre", html.escape("\n".join(lines)))


def tensor(event):
    return tagged("pre", html.escape(f"{event['name']} ={chr(10) if chr(10) in event['text'] else ' '}{event['text']}"))


def shown(event):
    """Shows an event that is not a question."""
    kind = event["event"]
    if kind == "sentence":
        text = html.escape(event["text"])
        return tagged("h2", f"{event['step']}. {text}") if event["role"] == "step" else tagged("p", text)
    if kind == "graph":
        told = re.search("<desc[^>]*>(.*?)</desc>", event["svg"], re.S)
        return f"<p><img alt=\"{told[1] if told else html.escape(event['name'])}\" src=\"data:image/svg+xml,{quote(event['svg'])}\"></p>\n"
    if kind == "source":
        return tagged("pre", html.escape(event["text"]))
    return {"tensor": tensor, "table": table, "plot": chart}.get(kind, lambda _: "")(event)


def box(event, text):
    head = tagged("p", f"<b>Question {event['id']}.</b> {html.escape(event['question'])}")
    return f'<div class="question">\n{head}{text}</div>\n'


def question(event):
    if event["kind"] == "number":
        text = tagged("p", "Alone: ______________ &nbsp; After talking: ______________")
    else:
        text = '<p class="small">Tick the first box alone, the second after talking.</p>\n' + "".join(
            tagged("p", f'<span class="boxes">☐ ☐</span> {html.escape(option)}') for option in event["options"])
    return box(event, f'{text}<p class="small">Because</p>\n{LINE * 2}')


def answer(event):
    options = "".join(
        tagged("li", f"<b>{html.escape(option)} (right)</b> {html.escape(event['why'])}" if number == event["answer"] else
               f"{html.escape(option)}: {html.escape(mistake)}")
        for number, (option, mistake) in enumerate(zip(event["options"], event["mistakes"]), 1))
    hints = "".join(tagged("p", f'<span class="small">Hint: {html.escape(hint)}</span>') for hint in event["hints"])
    return box(event, tagged("ul", options) + hints)


def section(lesson, kind, body):
    return tagged("section", "\n" + tagged("h1", f"Lesson {lesson.number}: {html.escape(lesson.title)}{kind}") + body)


def for_students(lesson, events):
    asked = [event for event in events if event["event"] == "prediction"]
    opening = events[:events.index(asked[0])] if asked else events
    body = "".join(shown(event) for event in opening if event["event"] != "graph")  # pictures show answers
    return section(lesson, "", body + "".join(map(question, asked)) + "<p>What I keep of this lesson:</p>\n" + LINE * 3)


def for_teachers(lesson, events):
    body = tagged("p", f"{lesson.minutes} minutes alone, {lesson.in_class} in class; seed {events[0]['seed']}.")
    body += "".join(answer(event) if event["event"] == "prediction" else shown(event) for event in events)
    body += tagged("p", f"{sum(event['event'] == 'check' for event in events)} checks hold.")
    body += tagged("p", f"To keep: {html.escape(lesson.rule)}")
    body += tagged("p", f"To try: {html.escape(lesson.suggestion)} <code>{html.escape(lesson.command)}</code>")
    return section(lesson, ", with answers", body)


def page(title, body):
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n'
            f"<body>\n{body}</body>\n</html>\n")


def run(lesson, options, **changed):
    """Runs a lesson. Returns its exit code and its events."""
    words = arguments(options, json=True, quiet=False, step=False, no_step=False, present=False, start=1, **changed)
    result = child.run([str(lesson.program), *words], "stdout")
    code = Exit.failed if result.signal else result.code
    if code not in (Exit.good, Exit.usage):  # after a wrong option the lesson has printed the error
        why = "cannot run here and is left out" if code == Exit.skipped else "does not pass: no sheet was written"
        say_error(f"lesson {lesson.slug} {why} (./learn run {lesson.slug} says why)")
    return code, [json.loads(line) for line in result.text.splitlines()] if code == Exit.good else []


def write(course, which, file):
    """Writes both sheets, and returns the exit code."""
    chosen = list(dict.fromkeys(named(course.lessons, each) for each in which if each != "all"))
    if not which or "all" in which:
        chosen = list(dict.fromkeys([*chosen, *course.lessons]))
    students = Path(file or WORK / "handouts" / f"{chosen[0].slug if len(chosen) == 1 else 'lessons'}.html")
    if students.suffix != ".html":
        raise Problem(f"handout -o {students}: the name must end in .html", Exit.usage)
    slugs = {each.slug: each for each in course.lessons}

    def builds_on_toy(slug):
        return slug == TOY or slug in slugs and any(map(builds_on_toy, slugs[slug].before))

    toy = slugs[TOY] if TOY in slugs and any(builds_on_toy(each.slug) for each in chosen) and slugs[TOY] not in chosen else None
    build.lessons([*chosen, toy] if toy else chosen)
    told, codes = [], []
    for lesson in chosen:
        code, events = run(lesson, course.options)
        if code == Exit.usage:
            return code
        codes.append(code)
        if code == Exit.good:
            told.append((lesson, events))
    failed = [code for code in codes if code not in (Exit.good, Exit.skipped)]
    if failed or not told:
        return Exit.failed if failed else Exit.skipped  # a sheet must not show wrong numbers
    body = "<p>Name: ______________________________</p>\n"
    if toy and any(builds_on_toy(lesson.slug) for lesson, _ in told):
        code, events = run(toy, course.options, **dict.fromkeys(PARAMETERS))  # parameters apply to the chosen lessons only
        if code != Exit.good:
            return code
        body += tagged("h2", "The toy: six rows x, three weights w; the loss is the mean of the rows' products with w")
        body += "".join(tensor(event) for event in events if event["event"] == "tensor" and event["step"] == 1 and "shape" in event)
    teachers = students.with_suffix(".answers.html")
    sheets = {students: page("tally: questions", body + "".join(for_students(*each) for each in told)),
              teachers: page("tally: questions with answers", "".join(for_teachers(*each) for each in told))}
    make_folder(students.parent)
    for path, text in sheets.items():
        write_whole(path, text)
    if not course.options.quiet and not course.options.json:
        out(f"wrote {students}\nwrote {teachers}")
    return Exit.good
