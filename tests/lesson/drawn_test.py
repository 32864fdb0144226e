"""The pictures that lessons draw can be read. Usage: drawn_test.py LESSON...

That they have the numbers that they were handed, tests/lesson/pictures_test.cpp asks, and printed_test.py that those stay the same.
"""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

from terminal_driver import clean_environment

WIDEST, SMALLEST, LARGEST = 1400, 18, 12_000  # pixels, pixels of a letter, bytes
SVG = "{http://www.w3.org/2000/svg}"


def events_of(lesson):
    done = subprocess.run([lesson, "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          env=clean_environment(TALLY_IMAGES="1312"))
    assert done.returncode in (0, 77), done.stderr  # 77: skipped, where there is no device, or no MPI
    return [json.loads(line) for line in done.stdout.splitlines()]


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


def main(programs):
    faults = []
    for program in programs:
        events = events_of(program)
        pictures = [Picture(event) for event in events if event["event"] == "graph"]
        faults += [f"{events[0]['slug']}, {picture.name}: {fault}" for picture in pictures for fault in picture.faults()]
        print(f"{events[0]['slug']}: {', '.join(picture.name for picture in pictures) or 'no picture'}")
    sys.exit("\n".join(faults) or 0)


main(sys.argv[1:])
