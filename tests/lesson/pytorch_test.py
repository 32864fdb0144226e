"""Tests that the PyTorch listing of each lesson's page prints the text below the listing. Skipped without PyTorch.

Usage: pytorch_test.py
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

LESSONS = Path(__file__).resolve().parents[2] / "lessons"
# A listing and the next block of text, which is its output. A page may have only one listing.
LISTING = re.compile(r"```python\n(.*?)```\n.*?```text\n(.*?)```", re.DOTALL)
# Runs all listings in one process, because importing torch takes seconds.
RUNNER = """
import contextlib, io, json, sys
try:
    import torch
except ImportError:
    sys.exit(77)
for source in json.load(sys.stdin):
    torch.set_default_dtype(torch.float32), torch.set_printoptions(profile="default")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(source, "listing", "exec"), {"__name__": "listing"})
    print(json.dumps(said.getvalue()))
"""


def of_several_processes(python, source, folder):
    """Returns the output of a listing for torchrun. Starts its processes directly, because Debian 12's torchrun does not run on its Python."""
    program = Path(folder, "listing.py")
    program.write_text(source)
    number = int(re.match(r"# torchrun --nproc_per_node (\d+) listing\.py\n", source).group(1))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = dict(os.environ, CUDA_VISIBLE_DEVICES="", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                  WORLD_SIZE=str(number), LOCAL_WORLD_SIZE=str(number))
    started = [subprocess.Popen([python, "-W", "ignore", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=dict(common, RANK=str(rank), LOCAL_RANK=str(rank))) for rank in range(number)]
    ended = [(process.communicate(timeout=300), process.returncode) for process in started]
    assert all(code == 0 for _, code in ended), "\n".join(errors[-2000:] for (_, errors), _ in ended)
    return "".join(output for (output, _), _ in ended)


def run_by_torch(sources):
    """Returns the Python interpreter that has PyTorch, and the results of the listings."""
    for python in (sys.executable, "python3", "/usr/bin/python3"):
        try:
            done = subprocess.run([python, "-W", "ignore", "-c", RUNNER], capture_output=True, text=True, check=False,
                                  input=json.dumps(sources), env=dict(os.environ, CUDA_VISIBLE_DEVICES=""))
        except OSError:
            continue
        if done.returncode != 77:
            return python, done
    print("skipped: no PyTorch")
    sys.exit(77)


def main():
    pages = {}
    for page in sorted(LESSONS.glob("*.md")):
        found = LISTING.findall(page.read_text())
        assert len(found) == 1 == page.read_text().count("```python"), f"{page.name}: {len(found)} listings with their output"
        pages[page.name] = found[0]
    assert pages, "no page was found"
    several = {page: pages.pop(page) for page in list(pages) if pages[page][0].startswith("# torchrun ")}
    python, done = run_by_torch([source for source, _ in pages.values()])
    said = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode == 0:
        with tempfile.TemporaryDirectory() as folder:
            said += [of_several_processes(python, source, folder) for source, _ in several.values()]
        pages |= several
    wrong = [f"{page}: the listing prints\n{ours}and the page shows\n{printed}"
             for (page, (_, printed)), ours in zip(pages.items(), said) if ours.rstrip() != printed.rstrip()]
    assert done.returncode == 0 and len(said) == len(pages), f"{list(pages)[len(said)]}\n{done.stderr[-2000:]}"
    assert not wrong, "\n".join(wrong)
    print(f"{len(pages)} listings print the text on their pages")


main()
