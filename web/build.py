#!/usr/bin/env python3
"""Makes docs/classroom.html: one file with the page, the engine and the output of the lesson programs.

Usage: build.py ENGINE_FOLDER LESSONS_FOLDER   (engine.js and engine.wasm; the programs lesson_NN_slug)
       build.py --hash                         (prints the hash of the page's present sources)
       build.py --stamp HEADER                 (writes the hash of the engine's sources, which is compiled into the engine)
"""

import base64
import gzip
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "classroom.html"
STYLES = ["page.css", "toy.css", "lessons.css", "chain.css", "noise.css"]
IMPORT = re.compile(r'^import (\{[^}]*\}|\* as \w+) from "\./(\w+)\.js";\n', re.M)
MODULES = ["base", "kernels", "memory", "device", "array", "autograd", "checkpoint", "tools"]


def engine_sources():
    """Lists the files that are compiled into the engine."""
    for folder in [ROOT / "src" / module for module in MODULES]:
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file())
    yield from sorted((ROOT / "src" / "cpu").glob("reference*.hpp"))
    yield from (ROOT / "src" / name for name in ("core.hpp", "tally.hpp"))
    yield from sorted(path for path in (ROOT / "web").iterdir() if path.suffix in (".cpp", ".hpp", ".cmake", ".txt"))


def page_sources():
    """Lists the engine's sources and the other sources of the page."""
    yield from engine_sources()
    yield from sorted(path for path in (ROOT / "web").iterdir() if path.suffix in (".css", ".html", ".js") or path.name == "build.py")


def hash_of(sources):
    total = hashlib.sha256()
    for path in sources:
        total.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def stamp(header):
    """Writes the header only if it changes, so that an unchanged engine is not compiled again."""
    text = f'// The hash of all sources of the engine.\n#define TALLY_ENGINE_SOURCES "{hash_of(engine_sources())}"\n'
    if not header.exists() or header.read_text(encoding="utf-8") != text:
        header.write_text(text, encoding="utf-8")


def bundled(entry):
    """Returns one script with the module `entry` and all modules that it imports, each in a function of its own."""
    scripts, begun = {}, set()

    def add(name):
        if name in scripts:
            return
        if name in begun:
            sys.exit(f"web/{name}.js imports itself, directly or through other modules")
        begun.add(name)
        source = (ROOT / "web" / f"{name}.js").read_text(encoding="utf-8")
        for _, other in IMPORT.findall(source):
            add(other)
        if re.search(r"^export (?!const |function |async function )", source, re.M):
            sys.exit(f"web/{name}.js: only constants and functions can be exported")
        exported = re.findall(r"^export (?:const|function|async function) (\w+)", source, re.M)
        source = IMPORT.sub(lambda found: f"const {found[1].replace('* as ', '').replace(' as ', ': ')} = {found[2]}_module;\n", source)
        if re.search(r"^import\b", source, re.M):
            sys.exit(f"web/{name}.js: an import must be one line with a file of this folder")
        source = re.sub(r"^export ", "", source, flags=re.M)
        scripts[name] = f"const {name}_module = (() => {{\n{source}return {{ {', '.join(exported)} }};\n}})();\n"

    add(entry)
    return '"use strict";\n' + "".join(scripts.values())


def shortened(text):
    """Returns JavaScript or CSS without indentation and without lines that are only a comment."""
    lines = [line.strip() for line in re.sub(r"^\s*/\*.*?\*/\s*$", "", text, flags=re.M | re.S).splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"


def packed(data):
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def events(lesson):
    """Returns the events of a lesson. A lesson that cannot run here has one event with the reason."""
    device = ["--device=simulated"] if lesson.name.endswith("on_the_gpu") else []
    haswell = {**os.environ, "OPENBLAS_CORETYPE": "Haswell"}  # other kernels of OpenBLAS give other bits
    result = subprocess.run([lesson, "--json", *device], capture_output=True, text=True, check=False, env=haswell)
    if result.returncode not in (0, 77):
        sys.exit(f"{lesson}: exit code {result.returncode}\n{result.stderr}")
    said = [json.loads(line) for line in result.stdout.splitlines()]
    for event in said:
        event.pop("v"), event.pop("lesson"), event.pop("slug")
        if event.get("outcome") == "skip":  # replaces the reason, which depends on the machine
            event["detail"] = "This lesson needs several processes started by an MPI, and could not be recorded."
    return [event for event in said if event["event"] != "progress"]


def lessons(folder):
    programs = sorted(path for path in folder.glob("lesson_[0-9]*") if path.is_file() and not path.suffix)
    if not programs:
        sys.exit(f"no lessons in {folder}")
    return [{"number": int(path.name[7:9]), "slug": path.name[10:].replace("_", "-"), "events": events(path)} for path in programs]


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
    page, boot, texts = ((ROOT / "web" / name).read_text(encoding="utf-8") for name in ("page.html", "boot.js", "texts.js"))
    parts = {
        "hash": hash_of(page_sources()),
        "short": hash_of(page_sources())[:12],
        "style": "".join(shortened((ROOT / "web" / name).read_text(encoding="utf-8")) for name in STYLES),
        "boot": shortened(boot),
        "scripts": packed(((engine / "engine.js").read_text(encoding="utf-8") + "\n" + shortened(bundled("main"))).encode()),
        "engine": packed((engine / "engine.wasm").read_bytes()),
        "recorded": packed(json.dumps(lessons(programs), ensure_ascii=False, separators=(",", ":")).encode()),
    }
    for name in re.findall(r"{{(\w+)}}", page + boot):
        if name not in parts:
            parts[name] = re.search(rf'^    {name}: "(.*)",$', texts, re.M)[1]
    for name, part in parts.items():
        page = page.replace("{{" + name + "}}", part)
    PAGE.write_text(page, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {PAGE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
