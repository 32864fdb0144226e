#!/usr/bin/env python3
"""Makes docs/classroom.html: the page, the engine, and what the lessons' programs said, in one file.

Usage: build.py ENGINE_FOLDER LESSONS_FOLDER   (engine.js and engine.wasm; the programs lesson_NN_slug)
       build.py --hash                         (of the sources that the committed page was made from, as they are now)
       build.py --stamp HEADER                 (writes the hash of the engine's sources, where it is another: it is compiled in)
"""

import base64
import gzip
import hashlib
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "classroom.html"
SCRIPTS = ["elements.js", "toy.js", "lessons.js", "chain.js", "noise.js", "page.js"]  # in this order; the last begins
MODULES = ["base", "kernels", "memory", "device", "array", "autograd", "checkpoint", "tools"]


def engine_sources():
    """What is compiled into the engine."""
    for folder in [ROOT / "src" / module for module in MODULES]:
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file())
    yield from sorted((ROOT / "src" / "cpu").glob("reference*.hpp"))
    yield from (ROOT / "src" / name for name in ("core.hpp", "tally.hpp"))
    yield from sorted(path for path in (ROOT / "web").iterdir() if path.suffix in (".cpp", ".hpp", ".cmake", ".txt"))


def page_sources():
    """And what the page is made of beside it."""
    yield from engine_sources()
    yield from (ROOT / "web" / name for name in ("build.py", "page.css", "page.html", *SCRIPTS))


def hash_of(sources):
    total = hashlib.sha256()
    for path in sources:
        total.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def stamp(header):
    """Written only where it changes, so that nothing is compiled anew for it."""
    text = f'// Of what this engine is compiled.\n#define TALLY_ENGINE_SOURCES "{hash_of(engine_sources())}"\n'
    if not header.exists() or header.read_text(encoding="utf-8") != text:
        header.write_text(text, encoding="utf-8")


def packed(data):
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def events(lesson):
    """What a lesson says, an event a line; a lesson that cannot run here says why, and is skipped."""
    result = subprocess.run([lesson, "--json"], capture_output=True, text=True, check=False)
    if result.returncode not in (0, 77):
        sys.exit(f"{lesson}: exit code {result.returncode}\n{result.stderr}")
    said = [json.loads(line) for line in result.stdout.splitlines()]
    for event in said:
        event.pop("v"), event.pop("lesson"), event.pop("slug")
        if event.get("outcome") == "skip":  # why is another sentence on each machine
            needs = "several processes started by an MPI" if "processes" in event["detail"] else "a GPU"
            event["detail"] = f"This lesson needs {needs}, and could not be recorded."
    return [event for event in said if event["event"] != "progress"]


def lessons(folder):
    programs = sorted(path for path in folder.glob("lesson_[0-9]*") if path.is_file() and not path.suffix)
    if not programs:
        sys.exit(f"no lessons in {folder}")
    return [{"number": int(path.name[7:9]), "events": events(path)} for path in programs]


def main():
    if sys.argv[1:] == ["--hash"]:
        print(hash_of(page_sources()))
        return
    if sys.argv[1:2] == ["--stamp"] and len(sys.argv) == 3:
        stamp(pathlib.Path(sys.argv[2]))
        return
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    engine, programs = map(pathlib.Path, sys.argv[1:])
    if hash_of(engine_sources()).encode() not in (engine / "engine.wasm").read_bytes():
        sys.exit(f"{engine / 'engine.wasm'} was compiled from other sources")
    text = (ROOT / "web" / "page.html").read_text(encoding="utf-8")
    parts = {
        "hash": hash_of(page_sources()),
        "short": hash_of(page_sources())[:12],
        "style": (ROOT / "web" / "page.css").read_text(encoding="utf-8"),
        "script": "\n".join((ROOT / "web" / name).read_text(encoding="utf-8") for name in SCRIPTS),
        "engine_script": packed((engine / "engine.js").read_bytes()),
        "engine": packed((engine / "engine.wasm").read_bytes()),
        "recorded": packed(json.dumps(lessons(programs), ensure_ascii=False, separators=(",", ":")).encode()),
    }
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part)
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {PAGE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
