// Decides what a lesson shows at a step, judges answers, and counts votes. Needs no browser.
import { fits32, parseNumber } from "./numbers.js";

export const titleOf = (lesson) => lesson.events.find((event) => event.event === "title");
export const stepsOf = (lesson) => titleOf(lesson)?.steps ?? 1;
export const questionsOf = (lesson) => lesson.events.filter((event) => event.event === "prediction");
export const ruleOf = (lesson) => lesson.events.find((event) => event.rule)?.rule ?? "";

// Some lessons need several processes. If they could not be recorded, their events have only a title and an end with the reason.
export const isRecorded = (lesson) => lesson.events.some((event) => event.event === "sentence" || event.event === "prediction");
export const whyMissing = (lesson) => lesson.events.find((event) => event.event === "end")?.detail ?? "";
export const nextOf = (lessons, lesson) => lessons.find((one) => one.number > lesson.number && isRecorded(one)) ?? null;

// ---- one question ----

// A record keeps what a learner did: a try is the id of an option, or the typed text of a number.
export const NO_RECORD = { tries: [], shown: false, hints: 0 };

export const mostTries = (question) => question.kind === "number" || question.options.length > 2 ? 2 : 1;

// Returns {value}, or {wrong: key of a text} for a text that must not cost a try.
export function readAnswer(words) {
  if (words.trim() === "") return { wrong: "empty" };
  const value = parseNumber(words);
  if (Number.isNaN(value)) return { wrong: "notNumber" };
  return fits32(value) ? { value } : { wrong: "tooLarge" };
}

function judgeTry(question, words) {
  const right = question.answer - 1;
  if (question.kind !== "number") {
    const index = question.ids.indexOf(words);
    return { words: question.options[index], index, isRight: index === right, mistake: question.mistakes[index] ?? "", side: "" };
  }
  const value = parseNumber(words);
  const isNear = (i) => Math.abs(value - Number(question.options[i])) <= question.within + 1e-9 * Math.abs(Number(question.options[i]));
  const index = isNear(right) ? right : question.options.findIndex((_, i) => isNear(i));
  return {
    words: words.trim(), index, isRight: index === right, mistake: question.mistakes[index] ?? "",
    side: index >= 0 ? "" : value > Number(question.options[right]) ? "high" : "low",
  };
}

// Returns what the record means: {tries, isOver, isRight, isShown}. Each try is {words, index, isRight, mistake, side}.
export function judge(question, record = NO_RECORD) {
  const tries = record.tries.map((words) => judgeTry(question, words));
  const isRight = tries.some((one) => one.isRight);
  return { tries, isRight, isShown: record.shown && !isRight, isOver: isRight || record.shown || tries.length >= mostTries(question) };
}

export const isOver = (question, answers) => judge(question, answers[question.id]).isOver;

// The following functions return the next record. After the last try, a record does not change any more.
export const tryOnce = (question, record, words) =>
  judge(question, record).isOver ? record : { ...record, tries: [...record.tries, words] };
export const giveUp = (question, record) => judge(question, record).isOver ? record : { ...record, shown: true };
export const takeHint = (question, record) => ({ ...record, hints: Math.min(record.hints + 1, question.hints.length) });

// Returns the records of a lesson without those that do not fit its questions, for example because the course has changed.
export function readRecords(lesson, stored) {
  const records = {};
  for (const question of questionsOf(lesson)) {
    const { tries, shown, hints } = stored?.[question.id] ?? {}, most = question.hints.length;
    if (!Array.isArray(tries) || tries.length > mostTries(question)) continue;
    const fits = (words) => typeof words === "string" &&
      (question.kind === "number" ? readAnswer(words).value !== undefined : question.ids.includes(words));
    if (tries.every(fits)) records[question.id] = { tries, shown: shown === true, hints: Math.min(Number(hints) || 0, most) };
  }
  return records;
}

// Counts the questions of a lesson that were answered at the first try, at the second, wrongly, by "show me", and not at all.
export function scoreOf(lesson, answers) {
  const score = { total: 0, first: 0, second: 0, wrong: 0, shown: 0, open: 0 };
  for (const question of questionsOf(lesson)) {
    const { tries, isOver: over, isRight } = judge(question, answers[question.id]);
    ++score.total;
    ++score[!over ? "open" : isRight ? (tries.length === 1 ? "first" : "second") : tries.length ? "wrong" : "shown"];
  }
  return score;
}

// Options of a number are shown in increasing order, because the list of the event begins with the answer.
export function orderOf(question) {
  const order = question.options.map((_, i) => i);
  return question.kind === "number" ? order.sort((a, b) => Number(question.options[a]) - Number(question.options[b])) : order;
}

// A keyboard for digits has neither a minus nor a slash, so it appears only if all plausible answers are whole and not negative.
export const needsSigns = (question) => !question.options.every((option) => /^\d+$/.test(option));

// ---- what a step shows ----

const stepOf = (event) => Math.max(1, event.step ?? 0);

// Returns the question that a picture answers: the next one, if it comes in the same step or in the next.
function askedNext(events, i) {
  const next = events.slice(i).find((event) => event.event === "prediction");
  return next && stepOf(next) <= stepOf(events[i]) + 1 ? next : null;
}

const KINDS = { source: "source", tensor: "tensor", table: "table", plot: "plot" };

// Returns the views of one step. `last` is the last step that is shown: a picture that shows the answer of a question moves
// below this question when the question is over, so that nothing opens above the question.
function viewsOfStep(lesson, step, answers, last) {
  const { events } = lesson, views = [], holds = [];
  for (const [i, event] of events.entries()) {
    if (event.event === "title" || event.event === "end" || stepOf(event) !== step) continue;
    const view = { key: `${i}`, step, event };
    if (event.event === "sentence") views.push({ ...view, kind: event.role === "step" ? "heading" : "note" });
    else if (event.event === "check") {
      if (event.ok) holds.push(event);
      else views.push({ ...view, kind: "failed" });
    } else if (event.event === "graph") {
      const asked = askedNext(events, i), over = asked && isOver(asked, answers);
      if (over && stepOf(asked) > step && stepOf(asked) <= last) views.push({ ...view, key: `moved${i}`, kind: "moved" });
      else if (asked && !over) views.push({ ...view, key: `folded${i}`, kind: "picture", isFolded: true });
      else views.push({ ...view, kind: "picture", isFolded: false });
    } else if (event.event === "prediction") {
      views.push({ ...view, kind: "question" });
      if (!isOver(event, answers)) return views;
      for (const [j, other] of events.entries())
        if (other.event === "graph" && stepOf(other) === step - 1 && askedNext(events, j) === event)
          views.push({ key: `${j}`, step, event: other, kind: "picture", isFolded: false });
    } else if (KINDS[event.event]) views.push({ ...view, kind: KINDS[event.event] });
  }
  if (holds.length) views.push({ key: "checks", step, kind: "checks", events: holds });
  return views;
}

export const openQuestion = (lesson, step, answers) =>
  questionsOf(lesson).find((question) => stepOf(question) === step && !isOver(question, answers)) ?? null;

// Returns the views of all steps up to `step`, in order. After an open question, the rest of its step is missing.
export function visible(lesson, step, answers) {
  const last = Math.min(step, stepsOf(lesson));
  const views = [...Array(last).keys()].flatMap((i) => viewsOfStep(lesson, i + 1, answers, last));
  if (last === stepsOf(lesson) && !openQuestion(lesson, last, answers)) views.push({ key: "end", step: last, kind: "end" });
  return views;
}

// Returns the views of the given step only.
export const visibleAlone = (lesson, step, answers) => visible(lesson, step, answers).filter((view) => view.step === step);

// Returns what a question is about: code, numbers, tables and pictures of the step before, without its sentences. A teacher can
// pass over a question, so an open question of the step before hides nothing here.
export function contextOf(lesson, step, answers) {
  if (step < 2 || !questionsOf(lesson).some((question) => stepOf(question) === step)) return [];
  const passed = openQuestion(lesson, step - 1, answers);
  const known = passed ? { ...answers, [passed.id]: giveUp(passed, answers[passed.id] ?? NO_RECORD) } : answers;
  return viewsOfStep(lesson, step - 1, known, step).filter((view) => ["source", "tensor", "table", "plot", "picture"].includes(view.kind));
}

// Returns the views after a question, without the end of the lesson.
export const resultsOf = (views) => views.slice(views.findIndex((view) => view.kind === "question") + 1).filter((view) => view.kind !== "end");

// Returns for each step whether it has a question, and whether the question is over.
export const progressOf = (lesson, answers) => [...Array(stepsOf(lesson)).keys()].map((i) => {
  const question = questionsOf(lesson).find((one) => stepOf(one) === i + 1);
  return { step: i + 1, isQuestion: Boolean(question), isOver: Boolean(question && isOver(question, answers)) };
});

// ---- the live picture next to a lesson ----

// The scene number n is shown when the first n questions are over. A scene must not show the answer of the next question.
const LIVE = {
  "full-batch": { part: "toy", scenes: [{ cuts: [6], divide: 0, at: 0 }, { cuts: [6], divide: 0, at: 1 }] },
  "forgot-to-divide": { part: "toy", scenes: [{ cuts: [2, 2, 2], divide: 0, at: 0 }, { cuts: [2, 2, 2], divide: 0, at: 3 }] },
  "divide": {
    part: "toy",
    scenes: [{ cuts: [2, 2, 2], divide: 0, at: 0 }, { cuts: [2, 2, 2], divide: 1, at: 3 }, { cuts: [1, 1, 1, 1, 1, 1], divide: 1, at: 6 }],
  },
  "unequal": {
    part: "toy",
    scenes: [{ cuts: [4, 2], divide: 1, at: 0 }, { cuts: [4, 2], divide: 1, at: 2 }, { cuts: [4, 2], divide: 2, at: 2 }],
  },
  "checkpointing": { part: "chain", scenes: [{ layers: 16, cuts: [0] }, { layers: 16, cuts: [0, 4, 8, 12] }] },
  "the-best-schedule": { part: "chain", scenes: [{ layers: 10, cuts: [0] }, { layers: 10, cuts: [0, 4, 7] }] },
  "why-a-large-batch": { part: "noise", scenes: [{ size: 1, count: 1, thrown: 0 }] },
};

export const livePart = (lesson) => lesson && isRecorded(lesson) ? LIVE[lesson.slug]?.part ?? null : null;

// Returns {part, name, values} of the present scene. The toy begins with the numbers of the course and without a guess.
export function sceneOf(lesson, answers) {
  const { part, scenes } = LIVE[lesson.slug];
  const questions = questionsOf(lesson), open = questions.findIndex((question) => !isOver(question, answers));
  const index = Math.min(open < 0 ? questions.length : open, scenes.length - 1);
  const fresh = part === "toy" ? { x: null, w: null, guess: null, compare: -1 } : {};
  return { part, name: `${lesson.slug}/${index}`, values: { ...fresh, ...scenes[index] } };
}

// ---- votes ----

// The first round is before the class talks, and the second one is after it.
export const noVotes = (question) => ({ rounds: [question.options.map(() => 0)], isShown: false });

export function vote(votes, option, by) {
  const rounds = votes.rounds.map((counts) => [...counts]);
  rounds.at(-1)[option] = Math.max(0, rounds.at(-1)[option] + by);
  return { ...votes, rounds };
}

export const secondRound = (votes) => votes.rounds.length > 1 ? votes
  : { rounds: [...votes.rounds, votes.rounds[0].map(() => 0)], isShown: false };
export const countOf = (counts) => counts.reduce((sum, count) => sum + count, 0);

// ---- plots ----

// Returns at most about `most` round numbers from `low` to `high`, such as 0, 2, 4.
export function ticksOf(low, high, most = 8) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const by = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough * (1 - 1e-9));
  const ticks = [];
  for (let k = Math.ceil(low / by - 1e-9); k * by <= high + 1e-9 * by; ++k) ticks.push(Number((k * by).toPrecision(6)));
  return ticks;
}

// Returns a range that contains all finite values and zero.
export function rangeOf(values) {
  const finite = values.filter(Number.isFinite);
  const low = Math.min(0, ...finite), high = Math.max(0, ...finite);
  return low === high ? [low, low + 1] : [low, high];
}

// Points have the same scale on both axes if their ranges are alike. The events do not name units.
export function hasEqualScale(kind, [x0, x1], [y0, y1]) {
  const ratio = (x1 - x0) / (y1 - y0);
  return kind === "points" && ratio > 1 / 4 && ratio < 4;
}
