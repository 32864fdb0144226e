#!/usr/bin/env python3
"""Kills a training at 50 random times and resumes it with the same number of processes or one fewer. No run may hang, each file must be complete,
and the weights must have the bits of an uninterrupted training.

    kills_test.py PROGRAM [MPIEXEC]     without MPIEXEC, tally was built without MPI, and one process is killed
    TALLY_TEST_SEED determines the times.

Also stops a process by SIGSTOP, after which the run must end in time with an Error that names the process. A time is given by a number of events of a process
(beginning and end of a micro-batch, a file, an update) plus up to two milliseconds. A file from the middle of a window requires the same number of
processes for saving and resuming.
"""
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM, MPIEXEC = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
SEED = int(os.environ.get("TALLY_TEST_SEED", random.SystemRandom().randrange(2**32)))
KILLS, UPDATES, ROUND = 50, 8, 2
IN_TIME = 10  # seconds; a longer run counts as a hang
os.environ["OMPI_MCA_odls_base_sigkill_timeout"] = "0"  # otherwise Open MPI's launcher waits a second before it ends the other processes
draw = random.Random(SEED)
faults = []


def expect(holds, what):
    if not holds:
        print("FAILS: " + what)
        faults.append(what)


def run(ranks, path, timeout=8, fault=()):
    """Returns the output and the duration. With ranks 0, the program runs without mpirun."""
    command = ([MPIEXEC, "-n", str(ranks)] if ranks and MPIEXEC else []) + [PROGRAM, str(path), UPDATES, ROUND, timeout, *fault]
    begun = time.monotonic()
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=4 * IN_TIME)
        out = done.stdout + "\n".join(re.findall(r"^\[processes\].*", done.stderr, re.M))
    except subprocess.TimeoutExpired as late:
        out = f"hangs: {late.stdout}"
    return out, time.monotonic() - begun


def bits(out, ranks):
    """Returns the final bits of the weights if all ranks have printed the same bits, and None otherwise."""
    found = re.findall(r"^rank \d of (\d) has (.*)$", out, re.M)
    return found[0][1] if len(found) == ranks and len(set(found)) == 1 and found[0][0] == str(ranks) else None


def resume(ranks, path, timeout=8, fault=()):
    """Resumes the training, if necessary with the number of ranks that saved the file. Returns this number, the output and the duration."""
    out, took = run(ranks, path, timeout, fault)
    rejected = re.search(r"was saved in the middle of a window by (\d) process(?:es)?, but this run has (\d)", out)
    if not rejected:
        return ranks, out, took
    saved, here = int(rejected[1]), int(rejected[2])
    expect(saved != ranks and here == ranks and not bits(out, ranks), f"{ranks} do not resume a window that as many had saved: {out}")
    print(f"{here} do not resume a window of {saved}")
    return saved, *run(saved, path, timeout, fault)


def files(folder):
    """Returns the names of all files except temporary files of killed processes."""
    return sorted(path.name for path in folder.iterdir() if ".tmp-" not in path.name)


def kills(folder, undisturbed):
    most, killed, ended, longest, path = (3 if MPIEXEC else 1), 0, 0, 0, folder / "killed.state"
    while killed < KILLS:
        ranks = draw.randint(min(2, most), most)
        while True:  # trains until the end
            fault = (draw.randrange(ranks), draw.randint(1, 100 // ranks), "kill", draw.choice([0, draw.randint(1, 2000)])) if killed < KILLS else ()
            ranks, out, took = resume(ranks, path, fault=fault)
            longest = max(longest, took)
            expect(took < IN_TIME, f"a run of {ranks} with {fault} ends in {took:.1f} s")
            if bits(out, ranks):
                expect(bits(out, ranks) == undisturbed, f"after {killed} kills {ranks} have the bits of an undisturbed training: {out}")
                break
            expect(fault and not re.search(r"^\[(?!processes\])", out, re.M), f"{ranks} with {fault} were killed, and print no other error: {out}")
            if not fault or len(faults) > 3:
                return
            killed += 1
            ranks = max(1, ranks - draw.randint(0, 1))
        ended += 1
        expect(files(folder) == ["killed.state"], f"only the file remains: {files(folder)}")
        path.unlink()
    print(f"{killed} kills, {ended} trainings, no run longer than {longest:.1f} s")
    expect(ended > 1, "some trainings end")


def stops(folder, undisturbed):
    faults_to_test = [(1, 2), (2, 3), (0, 3)] + [(draw.randrange(3), 3) for _ in range(4)]
    for number, (rank, ranks) in enumerate(faults_to_test):
        path = folder / f"stopped{number}.state"
        fault = (rank, 1, "stop", 0) if number < 3 else (rank, draw.randint(1, 30), "stop", draw.randint(0, 2000))
        out, took = run(ranks, path, 2, fault)
        expect(took < IN_TIME, f"{ranks} with {fault} end in {took:.1f} s")
        expect(re.search(rf"^\[processes\] .*rank {rank} (did not answer within|began to send)", out, re.M), f"{ranks} with {fault} end with a message: {out}")
        _, out, _ = resume(max(2, ranks - draw.randint(0, 1)), path)
        expect(undisturbed in (bits(out, 2), bits(out, 3)), f"{ranks} with {fault} resume to the same bits: {out}")


def main():
    print(f"seed {SEED}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out, _ = run(0, folder / "alone.state")
        undisturbed = bits(out, 1)
        expect(undisturbed, f"one process trains: {out}")
        for ranks in (1, 2, 3) if MPIEXEC else ():
            out, _ = run(ranks, folder / f"{ranks}.state")
            expect(bits(out, ranks) == undisturbed, f"{ranks} have the bits of one process: {out}")
        for path in folder.iterdir():
            path.unlink()
        kills(folder, undisturbed)
        if MPIEXEC:
            stops(folder, undisturbed)


begun = time.monotonic()
main()
print(f"{time.monotonic() - begun:.0f} s")
sys.exit(1 if faults else 0)
