#!/usr/bin/env python3
"""Tests that a run ends in time and with a message if one process stops, is killed, throws, omits a call or makes an additional call.

    scenes_test.py PROGRAM [MPIEXEC]     without MPIEXEC, tally was built without MPI
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import time

PROGRAM, MPIEXEC = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
IN_TIME = 10  # seconds from the failure of a process to the end of the run, as documented
SOON = 7  # seconds; less than the default timeout of 8


class Scene:
    """Runs a scene and collects the results of checks."""

    def __init__(self, play):
        self.lines, self.failed = [], False
        play(self)

    def expect(self, holds, what):
        self.lines.append(("holds: " if holds else "FAILS: ") + what)
        self.failed |= not holds

    def run(self, ranks, scene, timeout=None, **variables):
        if timeout:
            variables["TALLY_TIMEOUT"] = str(timeout)
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
    scene.expect(code == 0 and "rank 0 of 1 has trained" in out, "a program without a launcher trains on one process")


def started_without_mpi(scene):
    code, out, _ = scene.run(0, "", OMPI_COMM_WORLD_SIZE="3")
    scene.expect(code == 1 and "started 3 times" in out and "built without MPI" in out, "started three times without MPI, it throws an Error")


def started_by_another_mpi(scene):
    code, out, _ = scene.run(0, "", MPI_LOCALNRANKS="3")  # MPI_LOCALNRANKS is set by the launcher of another MPI
    scene.expect(code == 1 and "started 3 times (MPI_LOCALNRANKS), but its MPI library found only one process" in out, "started by another MPI's launcher, it throws an Error")


def together(scene):
    code, out, _ = scene.run(3, "")
    scene.expect(code == 0 and len(trained(out)) == 3 and len({sums for *_, sums in trained(out)}) == 1, "three processes train together")
    code, out, _ = scene.run(5, "in halves")
    scene.expect(code == 0 and out.count("MPI continues: 10") == 5 and sorted(of for _, of, _ in trained(out)) == ["2", "2", "3", "3", "3"],
                 "a program's own communicators: of two and of three, and MPI continues after them")
    code, out, _ = scene.run(2, "after MPI_Finalize")
    scene.expect(code == 0 and out.count("[processes] MPI was finalized before the ProcessGroup") == 2, "MPI is not called after MPI_Finalize")


START = r"\[processes\] finish of window 1, after 2 micro-batches: rank 2 "


def stops(scene):
    code, out, took = scene.run(3, "stops")  # with the default timeout
    scene.expect(code != 0 and took < IN_TIME + 2, f"a process that stops ends all within {IN_TIME} s, and 2 to start and end")
    scene.expect(re.search("^" + START + r"did not answer within 8 s \(last heard from at the step, finish of window 0, after 2 micro-batches\)", out, re.M),
                 "the message names the missing process, the current call, and its last call")


def leaves(scene):
    code, out, took = scene.run(3, "throws")
    scene.expect(code != 0 and took < SOON and len(re.findall(START + "has left", out)) == 2 and "a file has not been found" in out,
                 "a process that throws is reported by both others before their timeout")
    code, out, took = scene.run(3, "leaves")
    scene.expect(len(re.findall(START + "has left", out)) == 2 and out.count("has saved") == 2,
                 "a process that leaves waits for the others, which throw and save")


def comes_late(scene):
    code, out, took = scene.run(3, "late", timeout=2)
    scene.expect(code != 0 and took < IN_TIME and out.count("has made update 0") == 3 and "has made update 1" not in out,
                 "a process that reaches the step after the others' timeout does not update")
    scene.expect(re.search(r"^\[processes\] the step, finish of window 1, .*: rank 2 did not answer within 2 s", out, re.M), "and the message names it")


def calls_differ(scene):
    code, out, took = scene.run(3, "skips", timeout=3)
    scene.expect(code != 0 and took < IN_TIME and len(re.findall(r"rank 0 calls finish of window 1, after 2 micro-batches, and rank 2 calls "
                 r"finish of window 2, after 2 micro-batches", out)) == 3, "an omitted window is named on all three processes")
    code, out, took = scene.run(3, "extra", timeout=3)
    scene.expect(code != 0 and took < IN_TIME and len(re.findall(r"^\[processes\] ", out, re.M)) >= 3,
                 "an additional call is an error on all three processes")


def is_lost(scene):
    code, out, took = scene.run(3, "lost in a sum", timeout=2)
    scene.expect(code != 0 and took < IN_TIME and re.search(r"^\[processes\] sum: the numbers of other processes did not arrive within 2 s, and rank 2 did not answer within 1 s", out, re.M),
                 "a process that stops during a sum of exact gradients is named")
    for how in ("exits", "killed"):
        code, out, took = scene.run(3, how, timeout=3)
        scene.expect((code != 0 or how == "exits") and took < IN_TIME, f"'{how}' ends all processes")  # MPICH's launcher then returns 0
        scene.expect(not trained(out), "no process completes the training")


AT = r"run 1 of the pipe, of 4 micro-batches, (?:forward|backward) of micro-batch \d in stage "


def in_a_pipe(scene):
    code, out, _ = scene.run(3, "in a pipe")
    scene.expect(code == 0 and out.count("has run the pipe") == 3, "three processes run a pipe together")
    code, out, took = scene.run(3, "throws in a pipe")
    scene.expect(code != 0 and took < SOON and len(re.findall(AT + r"\d: rank 2 has failed at " + AT + "2: a file has not been found", out)) == 2,
                 "a stage that throws is reported by both others before their timeout")
    code, out, took = scene.run(3, "killed in a pipe", timeout=3)
    scene.expect(code != 0 and took < IN_TIME and "has run the pipe" not in out, "a process killed in a pipe ends all")


def stops_in_a_pipe(scene):
    code, out, took = scene.run(3, "stops in a pipe", timeout=6)
    scene.expect(code != 0 and took < IN_TIME + 2, f"a stage that stops ends all processes within {IN_TIME} s, and 2 to start and end")
    scene.expect(re.search(r"^\[processes\] " + AT + r"[01]: .*rank 2 did not answer within 1 s \(last heard from at run 1 of the pipe, of 4 micro-batches\); ", out, re.M),
                 "the message names the missing process, the current call, and its last call")


# The longest scenes are first. They mostly wait, so they run in parallel.
WITH_MPI = [stops, stops_in_a_pipe, comes_late, calls_differ, is_lost, leaves, in_a_pipe, together, alone, started_by_another_mpi]
WITHOUT = [alone, started_without_mpi]

with concurrent.futures.ThreadPoolExecutor(4) as pool:
    scenes = list(pool.map(Scene, WITH_MPI if MPIEXEC else WITHOUT))
for each in scenes:
    print("\n".join(each.lines))
sys.exit(1 if any(each.failed for each in scenes) else 0)
