#!/usr/bin/env python3
"""A process that stops, is killed, throws, leaves out a call or makes one too many: the run ends in words, and in time.

    scenes_test.py PROGRAM [MPIEXEC]     without mpiexec tally was built without MPI
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import time

PROGRAM, MPIEXEC = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
IN_TIME = 10  # seconds from the moment that a process is missing, as promised
SOON = 7  # less than their timeout of 8


class Scene:
    """One run after the other, and what is expected of each."""

    def __init__(self, play):
        self.lines, self.failed = [], False
        play(self)

    def expect(self, holds, what):
        self.lines.append(("holds: " if holds else "FAILS: ") + what)
        self.failed |= not holds

    def run(self, ranks, scene, timeout=None, **variables):
        if timeout:
            variables["TALLY_PATIENCE"] = str(timeout)
        command = ([MPIEXEC, "-n", str(ranks)] if ranks else []) + [PROGRAM, scene]
        begun = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | variables, timeout=60)
        took = time.monotonic() - begun
        self.lines.append(f"-- {scene or 'together'}, {ranks} ranks: {took:.1f} s, exit {done.returncode}\n{done.stdout}")
        return done.returncode, done.stdout, took


def trained(out):
    return re.findall(r"rank (\d) of (\d) has trained, (\d+)", out)


def alone(scene):
    code, out, _ = scene.run(0, "")
    scene.expect(code == 0 and "rank 0 of 1 has trained" in out, "a program that nobody has started so trains alone")


def started_without_mpi(scene):
    code, out, _ = scene.run(0, "", OMPI_COMM_WORLD_SIZE="3")
    scene.expect(code == 1 and "started 3 times" in out and "built without MPI" in out, "started three times without MPI, it says so")


def started_by_another_mpi(scene):
    code, out, _ = scene.run(0, "", MPI_LOCALNRANKS="3")  # as another MPI's launcher says it
    scene.expect(code == 1 and "started 3 times (MPI_LOCALNRANKS), but its MPI library found only one process" in out, "by a launcher of another MPI it says so")


def together(scene):
    code, out, _ = scene.run(3, "")
    scene.expect(code == 0 and len(trained(out)) == 3 and len({sums for *_, sums in trained(out)}) == 1, "three train together")
    code, out, _ = scene.run(5, "in halves")
    scene.expect(code == 0 and out.count("MPI goes on: 10") == 5 and sorted(of for _, of, _ in trained(out)) == ["2", "2", "3", "3", "3"],
                 "a program's own communicators: of two and of three, and MPI goes on after them")
    code, out, _ = scene.run(2, "beyond MPI")
    scene.expect(code == 0 and out.count("[processes] MPI was finalized before the ProcessGroup") == 2, "MPI that is over is not called")


WHO = r"\[processes\] finish of window 1, after 2 micro-batches: rank 2 "


def stops(scene):
    code, out, took = scene.run(3, "stops")  # with the timeout that a program has if it says nothing
    scene.expect(code != 0 and took < IN_TIME + 2, f"a process that stops ends all within {IN_TIME} s, and 2 to start and end")
    scene.expect(re.search("^" + WHO + r"did not answer within 8 s \(last heard from at the step, finish of window 0, after 2 micro-batches\)", out, re.M),
                 "the message says who has not come, where they are, and where it was last")


def leaves(scene):
    code, out, took = scene.run(3, "throws")
    scene.expect(code != 0 and took < SOON and len(re.findall(WHO + "has left", out)) == 2 and "a file has not been found" in out,
                 "one that throws has left, which both others hear at once, not after their timeout")
    code, out, took = scene.run(3, "leaves")
    scene.expect(len(re.findall(WHO + "has left", out)) == 2 and out.count("has saved") == 2,
                 "who has left waits for those whom that is an error, and who save")


def comes_late(scene):
    code, out, took = scene.run(3, "late", timeout=2)
    scene.expect(code != 0 and took < IN_TIME and out.count("has made update 0") == 3 and "has made update 1" not in out,
                 "one that comes to the step after the others' timeout makes no update, either")
    scene.expect(re.search(r"^\[processes\] the step, finish of window 1, .*: rank 2 did not answer within 2 s", out, re.M), "and the message names it")


def calls_differ(scene):
    code, out, took = scene.run(3, "skips", timeout=3)
    scene.expect(code != 0 and took < IN_TIME and len(re.findall(r"rank 0 calls finish of window 1, after 2 micro-batches, and rank 2 calls "
                 r"finish of window 2, after 2 micro-batches", out)) == 3, "a window that one leaves out is named on all three")
    code, out, took = scene.run(3, "extra", timeout=3)
    scene.expect(code != 0 and took < IN_TIME and len(re.findall(r"^\[processes\] ", out, re.M)) >= 3,
                 "a call too many is an error on all three")


def is_lost(scene):
    code, out, took = scene.run(3, "lost in a sum", timeout=2)
    scene.expect(code != 0 and took < IN_TIME and re.search(r"^\[processes\] sum: the numbers of other processes did not arrive within 2 s, and rank 2 did not answer within 1 s", out, re.M),
                 "one that is lost amid a sum of exact gradients is named")
    for how in ("exits", "killed"):
        code, out, took = scene.run(3, how, timeout=3)
        scene.expect((code != 0 or how == "exits") and took < IN_TIME, f"one that {how} ends all")  # MPICH's launcher then says 0
        scene.expect(not trained(out), "and none of them says that it has trained")


AT = r"run 1 of the pipe, of 4 micro-batches, (?:forward|backward) of micro-batch \d in stage "


def in_a_pipe(scene):
    code, out, _ = scene.run(3, "in a pipe")
    scene.expect(code == 0 and out.count("has come through") == 3, "three come through a pipe together")
    code, out, took = scene.run(3, "throws in a pipe")
    scene.expect(code != 0 and took < SOON and len(re.findall(AT + r"\d: rank 2 has failed at " + AT + "2: a file has not been found", out)) == 2,
                 "a stage that throws is heard by both others at once, not after their timeout")
    code, out, took = scene.run(3, "killed in a pipe", timeout=3)
    scene.expect(code != 0 and took < IN_TIME and "has come through" not in out, "one that is killed in a pipe ends all")


def stops_in_a_pipe(scene):
    code, out, took = scene.run(3, "stops in a pipe", timeout=6)
    scene.expect(code != 0 and took < IN_TIME + 2, f"a stage that stops ends all within {IN_TIME} s, and 2 to start and end")
    scene.expect(re.search(r"^\[processes\] " + AT + r"[01]: .*rank 2 did not answer within 1 s \(last heard from at run 1 of the pipe, of 4 micro-batches\); ", out, re.M),
                 "the message says who has not come, where they wait, and where it was last")


# The longest first. Most of the time they wait.
WITH_MPI = [stops, stops_in_a_pipe, comes_late, calls_differ, is_lost, leaves, in_a_pipe, together, alone, started_by_another_mpi]
WITHOUT = [alone, started_without_mpi]

with concurrent.futures.ThreadPoolExecutor(4) as pool:
    scenes = list(pool.map(Scene, WITH_MPI if MPIEXEC else WITHOUT))
for each in scenes:
    print("\n".join(each.lines))
sys.exit(1 if any(each.failed for each in scenes) else 0)
