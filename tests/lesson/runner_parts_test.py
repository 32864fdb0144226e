#!/usr/bin/env python3
"""Tests functions of the runner that need no program: names, lines of answers, counts of mistakes and pages of lessons."""
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "course/runner"))
from answers import Answer, Answers, parsed, predicted
from class_report import mistakes
from common import Problem, cut, edit_distance, find_named, wrapped
from lessons import Lesson
from verdict import members, missing_member


def tried(number, how, which="", of="divide"):
    return Answer("question", of, str(number), how, which)


class Parts(unittest.TestCase):
    def test_a_line_is_cut_to_the_window_if_there_is_one(self):
        for width, expected in ((None, "to repeat: question 2"), (21, "to repeat: question 2"), (20, "to repeat: questi..."), (12, "to repeat...")):
            with mock.patch("common.window_width", lambda width=width: width):
                self.assertEqual(cut("to repeat: question 2"), expected)

    def test_a_line_that_is_not_an_answer_is_rejected(self):
        self.assertEqual(parsed("lesson\tdivide\t\tdone\t\t\t\t"), Answer("lesson", "divide", how="done"))
        for line in ("", "lesson", "lesson\tdivide\t\tdone\t\t\t", "lesson\tdivide\t\tdone\t\t\t\t\t", "lesson\tdivide\t\tfinished\t\t\t\t",
                     "lesson\t\t\tdone\t\t\t\t", "lesson\tDivide\t\tdone\t\t\t\t", "question\tdivide\t\tright\t\t\t\t",
                     "question\tdivide\t0\tright\t\t\t\t", "question\tdivide\t100\tright\t\t\t\t", "question\tdivide\t1\tpassed\t\t\t\t",
                     "exercise\tdivide\t\tright\t\t\t\t", "verse\tdivide\t1\tright\t\t\t\t", "question\tdivide\t1\twrong\tb c\t\t\t",
                     "question\tdivide\t1\twrong\tb\t\t\033[31m\t"):
            self.assertIsNone(parsed(line), line)

    def test_the_first_tries_count_when_a_question_was_answered_several_times(self):
        tries = [tried(1, "right"), tried(2, "wrong", "b"), tried(2, "right", "a"), tried(3, "skipped"), tried(3, "wrong", "b"),
                 tried(3, "wrong", "c"), tried(3, "right", "a"), tried(4, "skipped"), tried(1, "wrong", "b"),
                 tried(1, "right", "a", "unequal")]
        self.assertEqual(predicted(tries), (5, 2, 1, 1))

    def test_a_learner_counts_once_for_each_mistake_and_each_question(self):
        learners = [[tried(1, "wrong", "b"), tried(1, "right", "a"), tried(1, "wrong", "b")],
                    [tried(1, "wrong", "b"), tried(1, "wrong", "c")], [tried(1, "right", "a"), tried(2, "wrong", "d")],
                    [tried(1, "skipped"), tried(1, "wrong", "b", "unequal")], []]
        self.assertEqual([(each.of, each.number, each.which, made, answered) for each, made, answered in mistakes(learners)],
                         [("divide", "1", "b", 2, 3), ("divide", "2", "d", 1, 1), ("unequal", "1", "b", 1, 1), ("divide", "1", "c", 1, 3)])
        self.assertEqual(mistakes([]), [])

    def test_all_questions_up_to_the_last_one_must_be_answered(self):
        with TemporaryDirectory() as folder:
            answers = Answers(folder)
            self.assertEqual((answers.all_answered("divide", False), answers.all_answered("divide", True)), (False, True))
            answers.add(tried(3, "right"))  # the lesson was begun at a later step
            self.assertFalse(answers.all_answered("divide", True))
            answers.add(tried(1, "wrong"), tried(2, "skipped"))
            self.assertFalse(answers.all_answered("divide", True))
            answers.add(tried(2, "right"))
            self.assertTrue(answers.all_answered("divide", True) and Answers(folder).all_answered("divide", True))
            self.assertFalse(answers.all_answered("unequal", False))

    def test_a_name_is_found_by_number_beginning_or_part(self):
        names = {2: "the-diamond", 6: "forgot-to-divide", 7: "divide", 11: "the-tail", 3: "tail"}
        entries = [SimpleNamespace(number=number, slug=slug) for number, slug in names.items()]

        def found(which):
            try:
                return find_named(entries, which, "lesson", "./learn list").slug
            except Problem as problem:
                return problem.message
        for number, slug in names.items():
            self.assertEqual((found(slug), found(str(number)), found(f"0{number}")), (slug, slug, slug))
        self.assertEqual((found("forg"), found("diam"), found("div")), ("forgot-to-divide", "the-diamond", "divide"))
        self.assertEqual(found("the"), "'the' could be the-diamond, the-tail (./learn list)")
        self.assertEqual(found("8"), "no lesson 8; there are 2 to 11 (./learn list)")
        self.assertEqual(found("dvide"), "no lesson 'dvide'; the nearest is 'divide' (./learn list)")
        self.assertEqual((edit_distance("divde", "divide"), edit_distance("", "abc"), edit_distance("kitten", "sitting")), (1, 3, 3))

    def test_lines_are_wrapped_at_blanks_and_long_words_are_cut(self):
        self.assertEqual(wrapped("one two  three", 8), ["one two", "three"])
        self.assertEqual(wrapped("abcdefgh", 4), ["abcd", "efgh"])
        self.assertEqual(wrapped("head: one two three", 12, 6), ["head: one", "      two", "      three"])

    def test_a_page_is_read(self):
        with TemporaryDirectory() as folder:
            page = Path(folder, "07_di_vide.md")
            page.write_text("# Lesson 7: divide\n\n10 minutes alone, 20 in class · Before it: [a-b](01_a_b.md), [c](02_c.md) ·\nExercise: "
                            "`./learn check d-e`\n\n## Remember\n\nDivide\n`loss` once.\n\nIn PyTorch: `(loss / n)\n.backward()`\n\n"
                            "Try it: use six.\n`./learn run divide --micro 6`\n\n## Read next\n", encoding="utf-8")
            lesson = Lesson(page)
            self.assertEqual((lesson.number, lesson.slug, lesson.title, lesson.minutes, lesson.in_class), (7, "di-vide", "divide", 10, 20))
            self.assertEqual((lesson.before, lesson.exercises, lesson.rule), (["a-b", "c"], ["d-e"], "Divide loss once."))
            self.assertEqual((lesson.suggestion, lesson.command), ("Use six.", "./learn run divide --micro 6"))
            page.write_text("# divide\n", encoding="utf-8")
            with self.assertRaisesRegex(Problem, "07_di_vide.md: expected '# Lesson 7: TITLE'"):
                Lesson(page)

    def test_the_members_of_a_type_are_listed(self):
        given = "struct Sum {  // a sum\n    static int count;\n    double sum = 0, lost = 0;\n    double norm() const { return sum; }\n};\n"
        self.assertEqual(members("Sum", given), ["sum", "lost", "norm()"])
        self.assertEqual(missing_member("'struct Sum' has no member named 'sun'", given),
                         "Sum has no member sun. The members of Sum are sum, lost and norm().")


if __name__ == "__main__":
    unittest.main()
