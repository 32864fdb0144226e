// Tests what a lesson shows, how answers are judged, and how votes are counted.
import assert from "node:assert";
import { test } from "node:test";
import * as model from "../../web/lesson_model.js";

const choice = {
  event: "prediction", step: 3, id: 1, kind: "choice", question: "Which?", options: ["one", "two", "three"], ids: ["b", "a", "c"],
  mistakes: ["not one", "", "not three"], answer: 2, hints: ["look", "look again"], why: "because",
};
const number = {
  ...choice, step: 4, id: 2, kind: "number", options: ["0.3333333333", "3", "-1"], ids: ["a", "b", "c"],
  mistakes: ["", "that is N", "sign"], answer: 1, within: 0.005,
};
const lesson = {
  number: 6, slug: "forgot-to-divide",
  events: [
    { event: "title", title: "forgot", minutes: 5, steps: 4 },
    { event: "sentence", step: 1, role: "step", text: "First" },
    { event: "sentence", step: 2, role: "step", text: "Second" },
    { event: "table", step: 2, columns: ["x"], values: [[1]], text: [["1"]] },
    { event: "graph", step: 2, name: "cause", svg: "<svg/>", dot: "", text: "" },
    choice,
    { event: "reveal", step: 3, id: 1 },
    { event: "tensor", step: 3, name: "w", text: "1" },
    { event: "check", step: 3, name: "equal", ok: true },
    number,
    { event: "check", step: 4, name: "wrong", ok: false },
    { event: "sentence", step: 4, role: "note", text: "Last" },
    { event: "end", detail: "" },
  ],
};
const over = { tries: ["a"], shown: false, hints: 0 };
const kinds = (views) => views.map((view) => view.kind).join(" ");

test("a step stops at its open question", () => {
  assert.equal(kinds(model.visible(lesson, 3, {})), "heading heading table picture question");
  assert.equal(kinds(model.visible(lesson, 3, { 1: over })), "heading heading table moved question picture tensor checks");
  assert.equal(kinds(model.visible(lesson, 4, { 1: over })).split(" ").at(-1), "question");
  assert.equal(kinds(model.visible(lesson, 9, { 1: over, 2: { ...over, tries: ["1/3"] } })).split(" ").slice(-4).join(" "),
    "question failed note end");
});

test("a picture that shows the next answer is folded, and then it is below the question", () => {
  const picture = (step, answers) => model.visible(lesson, step, answers).find((view) => view.kind === "picture");
  assert.deepEqual([picture(2, {}).step, picture(2, {}).isFolded], [2, true]);
  assert.deepEqual([picture(3, {}).step, picture(3, {}).isFolded], [2, true]);
  assert.deepEqual([picture(3, { 1: over }).step, picture(3, { 1: over }).isFolded], [3, false]);
  assert.deepEqual([picture(2, { 1: over }).step, picture(2, { 1: over }).isFolded], [2, false]); // the learner went back
});

test("keys of views are different, and a view keeps its key", () => {
  const views = model.visible(lesson, 4, { 1: over });
  const keys = views.map((view) => `${view.step}/${view.key}`);
  assert.equal(new Set(keys).size, keys.length);
  const before = model.visible(lesson, 4, {}).map((view) => `${view.step}/${view.key}`);
  assert.ok(before.includes("3/5") && keys.includes("3/5"));
});

test("the context of a question is what is seen in the step before, without its sentences", () => {
  assert.equal(kinds(model.contextOf(lesson, 3, {})), "table picture");
  assert.equal(kinds(model.contextOf(lesson, 3, { 1: over })), "table");
  assert.equal(kinds(model.contextOf(lesson, 4, { 1: over })), "picture tensor");
  assert.equal(kinds(model.contextOf(lesson, 4, {})), "picture tensor"); // the teacher passed over question 1
  assert.deepEqual(model.contextOf(lesson, 2, {}), []);
});

test("two wrong tries, or one right, end a question", () => {
  let record = model.tryOnce(choice, model.NO_RECORD, "b");
  let judged = model.judge(choice, record);
  assert.deepEqual([judged.isOver, judged.isRight, judged.tries[0].mistake], [false, false, "not one"]);
  record = model.tryOnce(choice, record, "c");
  judged = model.judge(choice, record);
  assert.deepEqual([judged.isOver, judged.isRight, judged.tries.map((one) => one.mistake)], [true, false, ["not one", "not three"]]);
  assert.equal(model.tryOnce(choice, record, "a"), record);
  assert.equal(model.judge(choice, model.tryOnce(choice, model.NO_RECORD, "a")).isRight, true);
  const two = { ...choice, options: ["yes", "no"], ids: ["a", "b"], mistakes: ["", "no"], answer: 1 };
  assert.equal(model.judge(two, model.tryOnce(two, model.NO_RECORD, "b")).isOver, true);
});

test("numbers are compared with the answer and with known mistakes", () => {
  const judged = (words) => model.judge(number, model.tryOnce(number, model.NO_RECORD, words)).tries[0];
  for (const words of ["1/3", "0,333", "0.3333333333", " 33.3 %", "2/6"]) assert.ok(judged(words).isRight, words);
  assert.equal(judged("3").mistake, "that is N");
  assert.equal(judged("\u22121").mistake, "sign");
  assert.deepEqual([judged("5").side, judged("0.1").side], ["high", "low"]);
});

test("a text that is not a number costs no try", () => {
  assert.deepEqual(["", " ", "three", "1e39", "1/0", "0x1", "1/3", "0,5"].map((words) => model.readAnswer(words).wrong),
    ["empty", "empty", "notNumber", "tooLarge", "tooLarge", "notNumber", undefined, undefined]);
});

test("the learner can ask for the answer, and for two hints", () => {
  const shown = model.judge(choice, model.giveUp(choice, model.NO_RECORD));
  assert.deepEqual([shown.isOver, shown.isShown, shown.isRight], [true, true, false]);
  const hinted = [1, 2, 3].reduce((record) => model.takeHint(choice, record), model.NO_RECORD);
  assert.equal(hinted.hints, 2);
});

test("stored answers that do not fit the questions are dropped", () => {
  assert.deepEqual(Object.keys(model.readRecords(lesson, { 1: over, 2: { tries: ["1/3"], shown: false, hints: 0 } })), ["1", "2"]);
  for (const stored of [null, 7, { 1: null }]) assert.deepEqual(model.readRecords(lesson, stored), {});
  for (const tries of ["a", ["z"], ["a", "b", "c"], [1]]) assert.deepEqual(model.readRecords(lesson, { 1: { tries } }), {});
  assert.deepEqual(model.readRecords(lesson, { 2: { tries: ["x"] } }), {});
});

test("the score counts first tries, second tries, wrong, shown and open questions", () => {
  const score = model.scoreOf(lesson, { 1: { ...over, tries: ["b", "a"] } });
  assert.deepEqual(score, { total: 2, first: 0, second: 1, wrong: 0, shown: 0, open: 1 });
  const other = model.scoreOf(lesson, { 1: { ...over, tries: [], shown: true }, 2: { ...over, tries: ["9", "8"] } });
  assert.deepEqual([other.shown, other.wrong], [1, 1]);
});

test("options of a number are in increasing order, and a minus or a slash needs a full keyboard", () => {
  assert.deepEqual(model.orderOf(number), [2, 0, 1]);
  assert.deepEqual(model.orderOf(choice), [0, 1, 2]);
  assert.deepEqual([model.needsSigns(number), model.needsSigns({ ...number, options: ["3", "10"] })], [true, false]);
});

test("a scene of the live picture follows the questions that are over", () => {
  assert.equal(model.livePart(lesson), "toy");
  assert.deepEqual([model.sceneOf(lesson, {}).values.at, model.sceneOf(lesson, { 1: over }).values.at], [0, 3]);
  assert.equal(model.livePart({ ...lesson, slug: "arrays" }), null);
  assert.equal(model.livePart({ ...lesson, events: [lesson.events[0]] }), null);
});

test("lessons without events are passed over", () => {
  const gpu = { number: 7, slug: "gpu", events: [{ event: "title", title: "gpu", steps: 3 }, { event: "end", detail: "needs a GPU" }] };
  const last = { ...lesson, number: 8 };
  assert.equal(model.nextOf([lesson, gpu, last], lesson), last);
  assert.equal(model.nextOf([lesson, gpu, last], last), null);
  assert.equal(model.whyMissing(gpu), "needs a GPU");
});

test("votes are counted in two rounds and never fall below zero", () => {
  let votes = model.noVotes(choice);
  votes = model.vote(model.vote(model.vote(votes, 1, 1), 0, -1), 1, 1);
  assert.deepEqual(votes.rounds, [[0, 2, 0]]);
  votes = model.vote(model.secondRound(votes), 2, 1);
  assert.deepEqual(votes.rounds, [[0, 2, 0], [0, 0, 1]]);
  assert.equal(model.secondRound(votes), votes);
  assert.equal(model.countOf(votes.rounds[0]), 2);
});

test("axes have few round numbers and contain zero", () => {
  assert.deepEqual(model.ticksOf(-9.9, 2.5), [-8, -6, -4, -2, 0, 2]);
  assert.deepEqual(model.ticksOf(0, 0.5), [0, 0.1, 0.2, 0.3, 0.4, 0.5]);
  assert.deepEqual(model.rangeOf([3, 5, NaN]), [0, 5]);
  assert.deepEqual(model.rangeOf([]), [0, 1]);
  assert.ok(model.hasEqualScale("points", [-1, 7], [-10, 3]));
  assert.ok(!model.hasEqualScale("bars", [0, 1], [0, 1]) && !model.hasEqualScale("points", [0, 1], [0, 99]));
});
