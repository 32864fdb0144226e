"""Tests the plain and the JSON stream, flags and exit codes. Usage: streams_test.py LESSON_SAMPLE SCHEMA"""

import json
import os
import re
import subprocess
import sys
import tempfile

from schema import Schema
from terminal_driver import clean_environment, run_tests


def run(lesson, *arguments, stdout=subprocess.PIPE, behaviour=None, **environment):
    return subprocess.run([lesson, *arguments], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True,
                          check=False, timeout=60, env=clean_environment(SAMPLE_LESSON=behaviour, **environment))


def events_of(lesson, *arguments, **more):
    result = run(lesson, "--json", *arguments, **more)
    assert result.stderr == "", result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_json_is_valid_against_the_schema(lesson, schema):
    seen = set()
    for behaviour in (None, "fails", "throws", "skips", "short", "typed"):
        for arguments in ((), ("--digits=9",), ("--from", "3"), ("--device=cuda",)):
            for event in events_of(lesson, *arguments, behaviour=behaviour):
                wrong = schema.errors(event)
                assert not wrong, f"{event}: {wrong}"
                seen.add(event["event"])
    assert seen == {"title", "sentence", "source", "tensor", "table", "prediction", "reveal", "check", "graph", "plot",
                    "progress", "end"}, seen
    assert not schema.errors(json.loads(run(lesson, "--describe").stdout))


def test_numbers_have_full_precision_and_the_printed_form(lesson, schema):
    tensors = {e["name"]: e for e in events_of(lesson) if e["event"] == "tensor"}
    gradient = tensors["w.grad"]
    assert gradient["text"] == "[-0.3536  0.0207 -0.6125]" and gradient["shape"] == [3]
    assert gradient["values"][1] == 0.020666999742388725  # the exact float, not its four digits
    assert tensors["before"]["values"] is None and tensors["before"]["text"] == "-"


def test_the_same_seed_gives_the_same_stream(lesson, schema):
    assert run(lesson, "--json").stdout == run(lesson, "--json").stdout


def test_plain_has_no_escapes(lesson, schema):
    for arguments in ((), ("--plain", "--color=always")):
        result = run(lesson, *arguments)
        assert "\x1b" not in result.stdout and "\r" not in result.stdout


def test_color_always(lesson, schema):
    assert "\x1b[" in run(lesson, "--color=always").stdout
    coloured = re.sub(r"\x1b\[[\d;]*m", "", run(lesson, "--color=always").stdout)
    assert coloured == run(lesson).stdout, "the text without colours is the same"


def test_ascii_is_pure(lesson, schema):
    spoken = run(lesson).stdout
    assert "σ²" in spoken and "█" in spoken
    for result in (run(lesson, "--ascii"), run(lesson, LC_ALL="C")):
        assert result.stdout.isascii()
        assert "The ?? of it is ? 1." in result.stdout


def test_long_work_prints_a_line_for_each_tenth(lesson, schema):
    shares = [int(s) for s in re.findall(r"(\d+) % \(\d+ of \d+\): adding numbers", run(lesson, behaviour="slow").stdout)]
    assert shares and shares == sorted(set(shares)) and all(s % 10 == 0 for s in shares), shares
    assert shares[-1] == 100
    assert "adding numbers" not in run(lesson).stdout, "short work prints no progress"


def test_from(lesson, schema):
    plain = run(lesson, "--from", "4").stdout
    assert "[4/5]" in plain and "[3/5]" not in plain and "PREDICT" not in plain and "2 checks" in plain
    result = run(lesson, "--from", "6")
    assert result.returncode == 2 and "has 5 steps" in result.stderr


def test_digits(lesson, schema):
    assert "[-0.35  0.02 -0.61]" in run(lesson, "--digits=2").stdout
    assert "[-0.353600  0.020667 -0.612500]" in run(lesson, "--digits=6").stdout


def test_quiet_prints_nothing(lesson, schema):
    result = run(lesson, "--quiet")
    assert result.returncode == 0 and result.stdout == "" and result.stderr == ""


def test_exit_codes(lesson, schema):
    for behaviour, code, words in ((None, 0, "[ok] lesson sample: 5 steps, 2 checks"), ("fails", 1, "three is four: 3 is not 4"),
                                   ("throws", 1, "inner sizes differ"), ("skips", 77, "not today"),
                                   ("short", 1, "the lesson declares 5 steps and has 4")):
        result = run(lesson, behaviour=behaviour)
        flat = re.sub(r"\s+", " ", result.stdout)
        assert result.returncode == code and words in flat, (behaviour, result.returncode, result.stdout[-400:])
    failed = run(lesson, behaviour="fails").stdout
    assert re.search(r"sample/99_sample.cpp:\d+", failed) and "again: ./learn run sample" in failed
    seeded = re.sub(r"\s+", " ", run(lesson, "--seed=5", "--threads=2", behaviour="fails").stdout)
    assert "again: ./learn run sample --seed 5 --threads 2" in seeded, seeded[-400:]
    cuda = run(lesson, "--device=cuda")
    said = re.sub(r"\s+", " ", cuda.stdout)
    assert cuda.returncode in (0, 77) and (cuda.returncode == 0 or "no CUDA device: this " in said), said


def test_usage_errors_are_one_sentence_and_exit_2(lesson, schema):
    for arguments, words in ((["--device=gpu"], "cpu, cuda, simulated or auto"), (["--seed=-1"], "-1"),
                             (["--seed=x"], "x"), (["--width=3"], "20"), (["--from=0"], "1"), (["--nonsense"], "--nonsense"),
                             (["--color=red"], "always"), (["--step", "--no-step"], "excludes"), (["--graph", "x.png"], ".svg")):
        result = run(lesson, *arguments)
        assert result.returncode == 2 and result.stdout == "", (arguments, result.returncode)
        assert result.stderr.count("\n") == 1 and words in result.stderr, result.stderr


def test_write_errors_are_exit_5(lesson, schema):
    for arguments in ([], ["--json"], ["--describe"], ["--help"]):
        with open("/dev/full", "w") as full:
            result = run(lesson, *arguments, stdout=full)
        assert result.returncode == 5 and "No space left" in result.stderr, (arguments, result)
        reader, writer = os.pipe()
        os.close(reader)
        result = run(lesson, *arguments, stdout=writer)
        os.close(writer)
        assert result.returncode == 141 and result.stderr == "", (arguments, result)  # the reader has closed the output


def test_graph_file(lesson, schema):
    with tempfile.TemporaryDirectory() as folder:
        for name, start in (("g.svg", "<svg"), ("g.dot", "digraph")):
            result = run(lesson, "--graph", f"{folder}/{name}")
            assert result.returncode == 0 and result.stdout == "", result
            with open(f"{folder}/{name}", encoding="utf-8") as file:
                assert file.read().startswith(start)
        assert sorted(os.listdir(folder)) == ["g.dot", "g.svg"]
        for path in (f"{folder}/nowhere/g.svg", f"{folder}/g.svg/h.svg"):
            result = run(lesson, "--graph", path)
            assert result.returncode == 5 and path in result.stderr, result
        os.symlink("/dev/full", f"{folder}/full.svg")
        result = run(lesson, "--graph", f"{folder}/full.svg")
        assert result.returncode == 5 and "No space left" in result.stderr, result
        assert sorted(os.listdir(folder)) == ["full.svg", "g.dot", "g.svg"], "no incomplete file is left"


if __name__ == "__main__":
    run_tests(sys.modules[__name__], os.path.abspath(sys.argv[1]), Schema(sys.argv[2]))
