"""Tests the sheets of ./learn handout. The students' sheet must have no answers. Usage: handout_test.py BUILD"""

import html
import json
import os
import re
import subprocess
import sys
import tempfile
from html.parser import HTMLParser

from terminal_driver import RUNNER, clean_environment, given_build, run_tests


class Paper(HTMLParser):
    """Reads the words of a sheet and checks that its tags are closed in order."""

    VOID = {"meta", "img"}

    def __init__(self, path):
        super().__init__()
        self.open, self.words, self.fetched, self.alternatives = [], "", [], []
        with open(path, encoding="utf-8") as file:
            self.source = file.read()
        self.feed(self.source)
        assert not self.open, self.open
        self.words = " ".join(self.words.split())

    def handle_starttag(self, tag, attrs):
        self.fetched += [value for name, value in attrs if name in ("src", "href") and not value.startswith("data:")]
        self.alternatives += [value for name, value in attrs if name == "alt"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes another tag"

    def handle_data(self, data):
        self.words += data if "style" not in self.open else ""


class Desk:
    def __init__(self, build):
        (self.root, self.environment), self.folder = given_build(build), tempfile.TemporaryDirectory()
        self.work = self.folder.name + "/work"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()
        self.root.cleanup()

    def run(self, *words):
        return subprocess.run([*RUNNER, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300,
                              env=clean_environment(**self.environment, TALLY_WORK=self.work))

    def sheets(self, *words):
        result = self.run("handout", *words)
        assert result.returncode == 0 and result.stderr == "", result
        return [Paper(line.removeprefix("wrote ")) for line in result.stdout.splitlines()]

    def told(self, which, *words):
        return [json.loads(line) for line in self.run("run", which, "--json", *words).stdout.splitlines()]


def asked(events):
    return [event for event in events if event["event"] == "prediction"]


def one_line(text):
    return " ".join(text.split())


def test_only_the_teachers_sheet_has_answers(build):
    slugs = ["full-batch", "forgot-to-divide", "unequal", "where-memory-goes"]
    with Desk(build) as desk:
        questions, answers = desk.sheets(*slugs)
        for slug in slugs:
            events = desk.told(slug)
            assert asked(events), slug
            for event in asked(events):
                hidden = [event["why"], *filter(None, event["mistakes"]), *event["hints"]]
                for text in hidden:
                    assert one_line(text) in answers.words and one_line(text) not in questions.words, (slug, text)
                for text in (event["question"], *(event["options"] if event["kind"] == "choice" else ())):
                    assert one_line(text) in questions.words and one_line(text) in answers.words, (slug, text)
                right = event["options"][event["answer"] - 1]
                assert f"<b>{html.escape(right, quote=False)} (right)</b>" in answers.source.replace("&quot;", '"'), (slug, right)
            after = [event for event in events if event.get("step", 0) > asked(events)[0]["step"] and event["event"] == "tensor" and event.get("shape")]
            assert all(one_line(event["text"]) in answers.words for event in after), slug


def test_students_sheet_has_only_questions_after_the_first_question(build):
    with Desk(build) as desk:
        questions, _ = desk.sheets("forgot-to-divide")
        events = desk.told("forgot-to-divide")
        first = asked(events)[0]["step"]
        later = [event for event in events if event.get("step", 0) >= first]
        texts = [one_line(event["text"]) for event in later if event["event"] == "sentence"]
        texts += [one_line(f"{event['name']} = {event['text']}") for event in later if event["event"] == "tensor"]
        assert len(texts) > 3 and not [text for text in texts if text in questions.words], questions.words
        assert "img" not in questions.source.split("</style>")[1], "a picture would show the gradients"


def test_numbers_of_the_toy_are_those_of_its_lesson(build):
    with Desk(build) as desk:
        toy = {event["name"]: one_line(event["text"]) for event in desk.told("full-batch") if event["event"] == "tensor" and event["step"] == 1}
        for slug, times in (("divide", 1), ("full-batch", 1), ("one-number", 0)):
            questions, _ = desk.sheets(slug)
            assert questions.words.count(toy["x"]) == times and questions.words.count(toy["w"]) >= times, slug


def test_pictures_have_alternative_texts(build):
    with Desk(build) as desk:
        _, answers = desk.sheets("divide")
        drawn = [event["svg"] for event in desk.told("divide") if event["event"] == "graph"]
        told = [html.unescape(re.search(r"<desc[^>]*>(.*?)</desc>", svg, re.S)[1]) for svg in drawn]
        assert told and answers.alternatives == told, (answers.alternatives, told)


def test_the_seed_shuffles_the_options_on_paper(build):
    with Desk(build) as desk:
        orders = set()
        for seed in ("0", "1", "2", "3"):
            questions, answers = desk.sheets("full-batch", "--seed", seed)
            options = asked(desk.told("full-batch", "--seed", seed))[0]["options"]
            places = [questions.words.index(f"☐ {option}") for option in options]
            assert places == sorted(places) and f"seed {seed}" in answers.words
            orders.add(tuple(options))
        assert len(orders) > 1


def test_paths_of_the_sheets(build):
    with Desk(build) as desk:
        result = desk.run("handout", "7", "divide")
        assert result.stdout.split() == ["wrote", f"{desk.work}/handouts/divide.html", "wrote", f"{desk.work}/handouts/divide.answers.html"], result
        own = desk.folder.name + "/monday/group a.html"
        assert desk.run("handout", "7", "6", "-o", own, "--quiet").stdout == ""
        assert sorted(os.listdir(desk.folder.name + "/monday")) == ["group a.answers.html", "group a.html"]
        paper = Paper(own)
        assert not paper.fetched and "script" not in paper.source, "a sheet needs no other files"
        assert re.findall(r"<h1>Lesson (\d+)", paper.source) == ["7", "6"]


def test_parameters_are_set_only_in_lessons_that_declare_them(build):
    with Desk(build) as desk:
        assert desk.run("handout", "6", "--micro", "6").returncode == 0
        source = Paper(desk.work + "/handouts/forgot-to-divide.html").source
        assert "The toy: six rows x" in source and "Micro-batches: 6, rows in each: 1." in source, source
        result = desk.run("handout", "5", "--micro", "6")
        assert result.returncode == 2 and "--micro: this lesson has no such parameter" in result.stderr, result


def test_all_lessons_that_can_run_here(build):
    with Desk(build) as desk:
        result = desk.run("handout")
        listed = [json.loads(line) for line in desk.run("list", "--json").stdout.splitlines()]
        paper = Paper(desk.work + "/handouts/lessons.html")
        shown = paper.source.count("<h1>Lesson")
        left_out = result.stderr.count("cannot run here and is left out")
        assert result.returncode == 0 and shown + left_out == len(listed) and shown > 15, result


def test_errors(build):
    with Desk(build) as desk:
        for words, code, why in ((["nonsense-lesson"], 2, "no lesson"), (["7", "-o", desk.folder.name + "/x.pdf"], 2, "must end in .html"),
                                 (["7", "--present", "--no-step"], 2, "")):
            result = desk.run("handout", *words)
            assert result.returncode == code and result.stdout == "" and why in result.stderr and result.stderr.count("\n") == 1, (words, result)
        assert os.listdir(desk.folder.name) == []
        with open(desk.work, "w", encoding="utf-8"):
            pass
        result = desk.run("handout", "7")
        assert result.returncode == 5 and desk.work in result.stderr and result.stdout == "", result
        taken = desk.folder.name + "/taken.answers.html"
        os.mkdir(taken)
        result = desk.run("handout", "7", "-o", desk.folder.name + "/taken.html")
        assert result.returncode == 5 and "taken.answers.html" in result.stderr, result


if __name__ == "__main__":
    run_tests(sys.modules[__name__], os.path.abspath(sys.argv[1]))
