"""Tests ./learn class with files of answers, some of them broken."""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from terminal_driver import RUNNER, clean_environment, run_tests

HEADING = "what\tof\tnumber\thow\twhich\tgiven\tsentence\tquestion"
SIX = ("b", "6", "6 is the number of rows, and each mean has divided by 2 of them.")
TWO = ("c", "2", "That is what each mean has been divided by.")
NOT_DIVIDED = "exercise\tdivide\t\twrong\tnot_divided\t\tYou do not divide the losses.\t"


def tried(how, which="", given="", sentence=""):
    return f"question\tdivide\t1\t{how}\t{which}\t{given}\t{sentence}\tBy which number?"


class Class:
    def __init__(self, **learners):
        self.folder = tempfile.TemporaryDirectory()
        self.pupils, self.work = self.folder.name + "/pupils", self.folder.name + "/work"
        os.mkdir(self.pupils)
        for name, lines in learners.items():
            self.write(name, HEADING, *lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def write(self, name, *lines):
        os.makedirs(os.path.dirname(f"{self.pupils}/{name}"), exist_ok=True)
        with open(f"{self.pupils}/{name}", "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))

    def run(self, *words):
        return subprocess.run([*RUNNER, "class", *(words or [self.pupils])], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=60, env=clean_environment(TALLY_WORK=self.work))


def three():
    return Class(anna=[tried("wrong", *SIX), tried("right", "a", "3")], ben=[tried("wrong", *SIX), tried("wrong", *TWO), NOT_DIVIDED],
                 carl=[tried("right", "a", "3")])


def test_most_frequent_mistake_is_first():
    with three() as a_class:
        result = a_class.run()
        said = " ".join(result.stdout.split())
        assert result.returncode == 0 and result.stderr == "", result
        places = [said.index(words) for words in ("3 learners", "2 of 3 divide, question 1 By which number?", f'"6": {SIX[2]}', "1 of 1 exercise divide",
                                                  "You do not divide the losses.", "1 of 3 divide, question 1", f'"2": {TWO[2]}', "wrote ")]
        assert places == sorted(places), said
        assert all(len(line) <= 80 for line in result.stdout.splitlines()[:-1])


def test_picture():
    with three() as a_class:
        picture = a_class.folder.name + "/slides/class.svg"
        assert a_class.run(a_class.pupils, "-o", picture).returncode == 0
        for path in (picture, a_class.work + "/class.svg"):
            root = xml.etree.ElementTree.parse(path).getroot() if os.path.exists(path) else None
            if path == picture:
                texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
                assert any("2 of 3" in text for text in texts) and any(SIX[2] in text for text in texts), texts
                assert int(root.get("width")) <= 1400, root.attrib
                bars = [int(each.get("width")) for each in root.iter("{http://www.w3.org/2000/svg}rect") if each.get("class") == "c-bar"]
                assert bars == [1320 * 2 // 3, 1320, 1320 // 3], bars
            else:
                assert root is None, "a picture is written only to the named file"
        a_class.run()
        assert os.path.exists(a_class.work + "/class.svg")


def test_json():
    with three() as a_class:
        rows = [json.loads(line) for line in a_class.run(a_class.pupils, "--json").stdout.splitlines()]
        assert [(row["slug"], row["which"], row["learners"], row["of"]) for row in rows] == \
            [("divide", "b", 2, 3), ("divide", "not_divided", 1, 1), ("divide", "c", 1, 3)], rows


def test_broken_files_are_reported_and_the_others_count():
    with three() as a_class:
        before = a_class.run().stdout.splitlines()
        a_class.write("rubbish", "\x00\x01 no answers", "")
        a_class.write(".hidden", "not looked at")
        a_class.write("carl", HEADING, tried("right", "a", "3"), "half of a li\x1b[31mne")
        os.mkdir(a_class.pupils + "/nothing")
        result = a_class.run()
        assert result.returncode == 0 and result.stdout.splitlines() == before, result
        assert "rubbish is not a file of answers: ignored" in result.stderr and "carl has a line that is not an answer" in result.stderr, result.stderr
        assert "\x1b" not in result.stderr and "hidden" not in result.stderr
        assert open(a_class.pupils + "/rubbish", encoding="utf-8").read().startswith("\x00"), "the files in the folder are unchanged"


def test_a_learner_may_be_a_folder():
    with Class() as a_class:
        a_class.write("anna/answers", HEADING, tried("wrong", *SIX))
        a_class.write("ben/work/answers", HEADING, tried("wrong", *SIX))
        assert "2 of 2" in a_class.run().stdout


def test_missing_or_empty_folder():
    with Class() as a_class:
        result = a_class.run()
        assert result.returncode == 77 and "no answers in" in result.stderr and result.stdout == "", result
        result = a_class.run(a_class.pupils + "/nowhere")
        assert result.returncode == 5 and "cannot read the folder" in result.stderr, result
        a_class.write("anna", HEADING, tried("right", "a", "3"))
        result = a_class.run()
        assert result.returncode == 0 and "1 learner" in result.stdout and not os.path.exists(a_class.work), "a picture is written only if there are mistakes"
        a_class.write("anna", HEADING, tried("wrong", *SIX))
        open(a_class.work, "w").close()
        result = a_class.run()
        assert result.returncode == 5 and a_class.work in result.stderr, result


if __name__ == "__main__":
    run_tests(sys.modules[__name__])
