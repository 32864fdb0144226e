"""Tests that the pictures of lessons are readable and show the numbers of the lesson. Usage: drawn_test.py LESSON..."""

import json
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as xml
from fractions import Fraction

from terminal_driver import clean_environment

WIDEST, SMALLEST, LARGEST = 1400, 18, 12_000  # pixels of width, pixels of a letter, bytes
SVG = "{http://www.w3.org/2000/svg}"


def events_of(lesson):
    done = subprocess.run([lesson, "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          env=clean_environment(TALLY_IMAGES="1312"))
    assert done.returncode in (0, 77), done.stderr  # 77: skipped without a device or without MPI
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode == 77


class Picture:
    def __init__(self, event):
        self.name, self.svg = event["name"], event["svg"]
        self.root = xml.fromstring(self.svg)
        self.style = self.root.findtext(SVG + "style")
        self.words = list(self.texts_of(self.root, 0, 0))  # left, top, right, bottom, text

    def texts_of(self, element, dx, dy):
        move = re.fullmatch(r"translate\((-?\d+),(-?\d+)\)", element.get("transform", ""))
        if move:
            dx, dy = dx + int(move[1]), dy + int(move[2])
        if element.tag == SVG + "text":
            style, text = element.get("class", ""), "".join(element.itertext())
            width = len(text) * (14 if re.search("t-title|t-strong", style) else 11)
            x, y = int(element.get("x")) + dx, int(element.get("y")) + dy
            x -= width // 2 if "t-middle" in style else width if "t-end" in style else 0
            yield x, y - 15, x + width, y + 4, text, style
        for child in element:
            yield from self.texts_of(child, dx, dy)

    def said(self):
        return [words[4] for words in self.words]

    def says(self, text):
        assert any(text in words for words in self.said()), f"{self.name} does not say {text!r}: {self.said()}"

    def count(self, tag, *classes):
        return sum(set(classes) <= set(element.get("class", "").split()) for element in self.root.iter(SVG + tag))

    def faults(self):
        _, _, width, height = map(int, self.root.get("viewBox").split())
        if width > WIDEST:
            yield f"{width} wide"
        if len(self.svg.encode()) >= LARGEST:
            yield f"{len(self.svg.encode())} bytes"
        if "prefers-color-scheme:dark" not in self.style:
            yield "nothing for a dark page"
        yield from (f"letters of {size} px" for size in re.findall(r"font-size:(\d+)px", self.style) if int(size) < SMALLEST)
        if "font-size" not in self.style or not all("t-text" in words[5] for words in self.words):
            yield "letters of no known size"
        for i, a in enumerate(self.words):
            if a[0] < 0 or a[1] < 0 or a[2] > width or a[3] > height:
                yield f"{a[4]!r} leaves the page"
            for b in self.words[:i]:
                if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]:
                    yield f"{a[4]!r} lies on {b[4]!r}"


class Lesson:
    def __init__(self, events):
        self.events = events
        self.pictures = {event["name"]: Picture(event) for event in events if event["event"] == "graph"}

    def shown(self, name):
        return next(event for event in self.events if event["event"] == "tensor" and event["name"] == name)

    def tables(self, *columns):
        return [event for event in self.events if event["event"] == "table" and set(columns) <= set(event["columns"])]

    def column(self, name):
        table, = self.tables(name)
        return [row[table["columns"].index(name)] for row in table["text"]]


def vector(text):
    """Returns numbers as a picture prints them. A table has more blanks between them."""
    return "[" + "".join(number.rjust(8) for number in re.findall(r"-?[\d.]+", text))[1:] + "]"


def full_batch(lesson):
    picture = lesson.pictures["full-batch"]
    picture.says(vector(lesson.shown("w.grad")["text"]) if "[" in lesson.shown("w.grad")["text"] else "-0.3536")
    assert picture.said().count("1/6") == 6


def forgot_to_divide(lesson):
    picture = lesson.pictures["forgot-to-divide"]
    for text in lesson.column("this micro-batch") + [lesson.shown("full batch")["text"], lesson.shown("sum of the micro-batches")["text"]]:
        picture.says(vector(text))
    bold = [words[4] for words in picture.words if "t-strong" in words[5]]
    assert bold.count("1/6") == 6 and bold.count("1/2") == 6, bold
    picture.says("3.00 times the full batch's")


def divide(lesson):
    picture = lesson.pictures["divide"]
    for name in ("full batch", "sum of the micro-batches", "w.grad"):
        picture.says(vector(lesson.shown(name)["text"]))
    assert picture.said().count(vector(lesson.shown("full batch")["text"])) == 2, "the full batch's and the divided gradient"
    assert picture.said().count("1/2 / 3 = 1/6") == 6
    picture.says("1.00 times the full batch's")


def unequal(lesson):
    picture = lesson.pictures["unequal"]
    picture.says(vector(lesson.column("w.grad afterwards")[-1]))
    assert picture.said().count("1/4 x 4/6 = 1/6") == 4 and picture.said().count("1/2 x 2/6 = 1/6") == 2
    picture.says("1.00 times the full batch's")
    picture.says("not the full batch's")


def why_a_large_batch(lesson):
    picture = lesson.pictures["cloud"]
    plot, = (event for event in lesson.events if event["event"] == "plot")
    ticks = [[(int(words[4]), (words[0] + words[2]) / 2 if kind == "t-middle" else words[3] - 10)
              for words in picture.words if kind in words[5] and re.fullmatch(r"-?\d+", words[4])] for kind in ("t-middle", "t-end")]
    (x0, across), (x1, further) = ticks[0][0], ticks[0][-1]
    (y0, low), (y1, high) = ticks[1][0], ticks[1][-1]
    unit = (further - across) / (x1 - x0)
    assert abs(unit - (low - high) / (y1 - y0)) < 0.02 * unit, "both axes have one scale"
    marks = [path.get("d") for path in picture.root.iter(SVG + "path") if path.get("class") in ("s-one", "s-two")]
    for commands, series in zip([mark for mark in marks if mark.count("M") > 1], plot["series"]):
        places = [(int(x), int(y)) for x, y in re.findall(r"M(\d+),(\d+)", commands)]
        assert len(places) == len(series["x"]) == 60
        for (x, y), a, b in zip(places, series["x"], series["y"]):
            assert abs(x - across - (a - x0) * unit) < 8 and abs(low - y - (b - y0) * unit) < 8, (x, y, a, b)


def rounding(lesson):
    """Compares the bits with numbers that are rounded once and twice to 24 binary digits."""
    def rounded(number):
        return struct.unpack(">f", struct.pack(">f", float(number)))[0]
    def bits_of(number):
        return bin(int.from_bytes(struct.pack(">f", number), "big"))[-23:]
    n, b = map(int, lesson.shown("smallest N and b")["values"])
    once, twice = rounded(Fraction(1, n * b)), rounded(Fraction(rounded(Fraction(1, n))) / b)
    assert lesson.column("its 23 stored bits") == [bits_of(once), bits_of(twice)]
    assert once != twice


def lost_batches(lesson):
    picture = lesson.pictures["lost-batches"]
    assert sum(text.startswith("lost") for text in picture.said()) == 2
    last = vector(lesson.column("gradient of this loss alone")[-1])
    assert picture.said().count(last) == 1, "in w.grad"  # the other gradients are not in the picture
    for text in lesson.column("gradient of this loss alone")[:-1]:
        assert vector(text) not in picture.said()


def adam_hides_it(lesson):
    picture = lesson.pictures["losses"]
    ends = dict(re.fullmatch(r"(\w+, \w+ of 3): \S+ to (\S+)", text).groups() for text in picture.said() if " of 3: " in text)
    table, = lesson.tables("mean of 3", "sum of 3")
    for row in table["text"]:
        for which, end in zip(("mean", "sum"), row[1:]):
            drawn = float(ends[f"{row[0].split(',')[0]}, {which} of 3"])
            assert abs(drawn - float(end)) <= max(5e-5, 0.5 * float(end) if "e" in end else 0), (row, ends)


def optimizer_state(lesson):
    picture = lesson.pictures["zero-gradients"]
    for name, end in zip(("once per update", "zeros in between"), lesson.column("s")):
        picture.says(f"{name}: 0 to {float(end):g}")


def agn(lesson):
    picture = lesson.pictures["path"]
    table, = lesson.tables("item", "slope taken at", "w afterwards")
    picture.says(f"each slope at a new w: 0 to {float(table['text'][-1][2]):.4g}")
    alone = sum(-0.1 * float(row[-1]) for row in lesson.tables("item", "slope at w = 0")[0]["text"])
    picture.says(f"all slopes at w = 0: 0 to {alone:.4g}")


def where_memory_goes(lesson):
    picture = lesson.pictures["bytes"]
    picture.says("Adam's averages")
    table, = lesson.tables("Adam", "in all")
    row = dict(zip(table["columns"], map(int, ["0"] + table["text"][0][1:])))
    heights = {}
    for area in picture.root.iter(SVG + "polygon"):
        corners = [tuple(map(int, corner.split(","))) for corner in area.get("points").split()]
        heights[area.get("class")] = max(y for x, y in corners if x == corners[0][0]) - min(y for x, y in corners if x == corners[0][0])
    for name, style in (("Adam", "t-named"), ("weights", "t-class0"), ("gradients", "t-class1")):
        assert abs(heights[style] - 312 * row[name] / row["in all"]) <= 2, (name, heights, row)


def checkpointing(lesson):
    picture = lesson.pictures["checkpointing"]
    saved = sum("s-saved" in element.get("class", "") for element in picture.root.iter()) - 1  # the legend has one
    assert saved == int(lesson.shown("buffers")["text"]), saved
    again = sum(text.endswith(" x2") for text in picture.said())
    assert again == int(lesson.shown("layers begun")["text"]) - 16, again
    assert "bytes" in lesson.pictures


def the_best_schedule(lesson):
    picture = lesson.pictures["schedule"]
    for style, name in (("s-two", "recorded"), ("s-kept", "only run")):
        boxes = sum(path.get("d").count("M") for path in picture.root.iter(SVG + "path") if path.get("class") == style)
        assert boxes == int(lesson.shown(name)["text"]), (name, boxes)


def what_the_noise_says(lesson):
    """Compares the number of crosses below 0 with the number in the table."""
    picture = lesson.pictures["what-the-noise-says"]
    zero, = (words[3] - 10 for words in picture.words if "t-end" in words[5] and words[4] == "0")
    crosses = [int(y) for path in picture.root.iter(SVG + "path") if path.get("class") == "s-one"
               for y in re.findall(r"M\d+,(\d+)", path.get("d"))][:-1]  # the last cross is in the legend
    kept, = lesson.tables("below 0")
    below = int(kept["text"][0][kept["columns"].index("below 0")])
    assert len(crosses) == 100 and sum(y > zero + 1 for y in crosses) <= below <= sum(y > zero - 1 for y in crosses), (zero, below)


def what_a_pipe_keeps(lesson):
    """Compares the boxes of the picture with the letters of its text form, and the memory of each lane with the table."""
    texts = {event["name"]: event["text"] for event in lesson.events if event["event"] == "graph"}
    for name, text in texts.items():
        lanes = [line.split("|")[1] for line in text.splitlines()]
        boxes = [tuple(map(int, box)) for path in lesson.pictures[name].root.iter(SVG + "path")
                 for box in re.findall(r"M(\d+),(\d+)H(\d+)", path.get("d"))]  # left, top, right
        begin = min(left for left, _, _ in boxes)
        unit = (max(right for _, _, right in boxes) - begin) / len(lanes[0])
        tops = sorted({top for _, top, _ in boxes})
        assert len(tops) == len(lanes), name
        for top, lane in zip(tops, lanes):
            covered = {column for left, at, right in boxes if at == top
                       for column in range(round((left - begin) / unit), round((right - begin) / unit))}
            assert covered == {column for column, letter in enumerate(lane) if letter != "."}, (name, lane)
    kept, = lesson.tables("GPipe, KiB kept")
    for name, column in (("gpipe", "GPipe keeps"), ("the-pipe", "1F1B keeps")):
        said = [words for words in lesson.pictures[name].said() if words.startswith("keeps")]
        assert said == [f"keeps {row[kept['columns'].index(column)]}" for row in kept["text"]], (name, said)


OWN = {check.__name__.replace("_", "-"): check for check in (
    full_batch, forgot_to_divide, divide, unequal, why_a_large_batch, rounding, lost_batches, optimizer_state, adam_hides_it, agn,
    where_memory_goes, checkpointing, the_best_schedule, what_the_noise_says, what_a_pipe_keeps)}


def main(programs):
    faults, seen = [], set()
    for program in programs:
        events, skipped = events_of(program)
        lesson, slug = Lesson(events), events[0]["slug"]
        faults += [f"{slug}, {picture.name}: {fault}" for picture in lesson.pictures.values() for fault in picture.faults()]
        if slug in OWN:
            seen.add(slug)
        if slug in OWN and not skipped:
            try:
                OWN[slug](lesson)
            except (AssertionError, KeyError, StopIteration, ValueError) as error:
                faults.append(f"{slug}: {type(error).__name__}: {error}")
        print(f"{slug}: {', '.join(lesson.pictures) or 'no picture'}")
    if len(programs) > 20:
        faults += [f"{slug} was not run" for slug in OWN.keys() - seen]
    sys.exit("\n".join(faults) or 0)


main(sys.argv[1:])
