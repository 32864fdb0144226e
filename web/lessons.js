// Shows the recorded lessons: the list, a lesson as cards, printed sheets, and a lesson in front of a class.
import { hasEngine, lessons } from "./calls.js";
import { make, patch, set, setText } from "./elements.js";
import { makeEvent } from "./lesson_events.js";
import { makeRow, showDots, updateRow } from "./lesson_list.js";
import * as live from "./lesson_live.js";
import * as model from "./lesson_model.js";
import { makePresenter } from "./present.js";
import { answersOf, forgetAnswers, keepAnswer, keepStep } from "./progress.js";
import { makeQuestion } from "./question.js";
import { answersSheet, questionsSheet } from "./sheet.js";
import { LESSON_ALONE, PICTURE_ALONE, codeOf } from "./state.js";
import { change, now } from "./store.js";
import { text } from "./texts.js";

// main.js shows the live part next to the lesson, or alone.
export const liveOf = live.liveOf;
export const isAlone = live.isAlone;

const { lessonOf } = live;
const stepIn = (lesson, state) => Math.min(state.lessons.step, model.stepsOf(lesson));

let view = null;
let armed = ""; // what the next press does, if it needs two presses
const votes = new Map(); // of each question, as slug/id

// Returns what the functions below need to know about the moment.
function moment() {
  const state = now(), lesson = lessonOf(state), step = stepIn(lesson, state), answers = answersOf(lesson, state);
  return { state, lesson, step, answers, open: model.openQuestion(lesson, step, answers) };
}

const refresh = () => update(now());
const votesOf = (lesson, question) => votes.get(`${lesson.slug}/${question.id}`) ?? model.noVotes(question);

// ---- what a learner or a teacher does ----

// Returns whether `what` was armed by the press before. Otherwise it arms it.
function isArmedBy(what, words) {
  if (armed === what) return true;
  armed = what;
  setText(view.say, words);
  refresh();
  return false;
}

function disarm() {
  armed = "";
  setText(view.say, "");
}

function keep(question, record) {
  const { state, lesson } = moment();
  disarm();
  keepAnswer(lesson, state, question.id, record);
  refresh();
}

function showVerdict(question) {
  const { verdict } = view.steps.querySelector(`[data-question="${question.id}"]`);
  verdict.focus({ preventScroll: true });
  verdict.scrollIntoView({ block: "nearest" });
}

const recordOf = (question) => moment().answers[question.id] ?? model.NO_RECORD;

function answer(question, words) {
  keep(question, model.tryOnce(question, recordOf(question), words));
  showVerdict(question);
}

function giveUp(question) {
  const { state } = moment();
  if (state.lessons.present && !isArmedBy(`show/${question.id}`, text("lessons.armed"))) return;
  keep(question, model.giveUp(question, recordOf(question)));
  showVerdict(question);
}

const hint = (question) => keep(question, model.takeHint(question, recordOf(question)));

function putVotes(question, next) {
  disarm();
  votes.set(`${moment().lesson.slug}/${question.id}`, next);
  refresh();
}

const countVote = (question, option, by) => putVotes(question, model.vote(votesOf(moment().lesson, question), option, by));
const talk = (question) => putVotes(question, model.secondRound(votesOf(moment().lesson, question)));

function showVotes(question) {
  const counted = votesOf(moment().lesson, question);
  putVotes(question, { ...counted, isShown: !counted.isShown });
}

const toStep = (step) => change({ lessons: { step } });

function beginAgain() {
  const { state, lesson } = moment();
  disarm();
  forgetAnswers(lesson, state);
  model.questionsOf(lesson).forEach((question) => votes.delete(`${lesson.slug}/${question.id}`));
  change({ lessons: { step: 1 } });
  refresh();
}

function openSheet(sheet) {
  change({ lessons: { sheet } });
  setTimeout(() => globalThis.print(), 100); // after the pictures of the sheet are there
}

// ---- keys in front of a class ----

// Scrolls a step that does not fit the screen. Returns whether there was something to scroll.
function scrolled(direction) {
  const below = view.lesson.getBoundingClientRect().bottom - innerHeight;
  if (direction > 0 ? below <= 8 : scrollY <= 8) return false;
  scrollBy(0, direction > 0 ? Math.min(below + 16, 0.8 * innerHeight) : -0.8 * innerHeight);
  return true;
}

const currentQuestion = () => view.steps.querySelector(".question");

const presenting = {
  isPresenting: () => {
    const { part, lessons: shown } = now();
    return part === "lessons" && Boolean(shown.present) && !shown.sheet && lessonOf(now()) !== null;
  },
  forward: (key) => {
    const { lesson, step, open } = moment();
    if (key !== "ArrowRight" && scrolled(1)) return;
    const next = model.nextOf(lessons, lesson);
    if (open) giveUp(open);
    else if (step < model.stepsOf(lesson)) toStep(step + 1);
    else if (next && isArmedBy("next", text("lessons.armedNext", { number: next.number })))
      change({ lessons: { lesson: next.number, step: 1, present: LESSON_ALONE } });
  },
  back: (key) => {
    const { step } = moment();
    if ((key !== "ArrowLeft" && scrolled(-1)) || step === 1) return;
    toStep(step - 1);
  },
  // A digit presses an option, or begins to type a number. Returns false if the key must reach the field.
  choose: (key) => {
    const question = currentQuestion(), { open } = moment();
    if (!open) return undefined;
    if (question.field && !now().lessons.votes) {
      question.field.focus();
      question.field.select();
      return false;
    }
    question.options[Number(key) - 1]?.button.click();
    return undefined;
  },
  hint: () => {
    const { open } = moment();
    if (open) hint(open);
  },
  picture: () => [view.results, view.steps, view.context].map((box) => box.querySelector("img")).find(Boolean)?.click(),
  checks: () => {
    const checks = view.talk.querySelector("details.checks");
    if (checks) checks.open = !checks.open;
  },
  showVotes: () => {
    const { open, state } = moment();
    if (open && state.lessons.votes) showVotes(open);
  },
  isPicture: () => live.isAlone(now()),
  live: () => {
    const { lesson } = moment(), isPicture = live.isAlone(now());
    if (model.livePart(lesson) && hasEngine()) change({ lessons: { present: isPicture ? LESSON_ALONE : PICTURE_ALONE } });
  },
  setVotes: (on) => change({ lessons: { votes: on ? 1 : 0 } }),
  begin: beginAgain,
  leave: () => {
    change({ lessons: { present: 0 } });
    view.teach.open = true;
    view.present.focus();
  },
};

// ---- building ----

const link = (words, fields, attributes = {}) => make("a", { href: `#part=lessons&${new URLSearchParams(fields)}`, ...attributes }, words);
const button = (name, onclick, attributes = {}) => make("button", { type: "button", onclick, ...attributes }, text(`lessons.${name}`));
const lessonName = (lesson) => text("lessons.name2", { number: lesson.number, title: model.titleOf(lesson).title });

function makeEnd(lesson) {
  const score = make("p"), rule = model.ruleOf(lesson), next = model.nextOf(lessons, lesson);
  const again = button("forget", beginAgain, { class: "small" });
  const onward = next ? make("a", { class: "onward" }, text("lessons.next", { number: next.number, title: model.titleOf(next).title }))
    : make("p", {}, text("lessons.lastLesson"));
  const element = make("section", { class: "lesson-end" }, make("h3", { tabindex: "-1" }, text("lessons.endOf", { number: lesson.number })), score,
    ...(rule ? [make("p", { class: "rule" }, text("lessons.rule", { rule }))] : []),
    make("p", { class: "bar" }, onward, link(text("lessons.all"), { lesson: 0 }), again));
  element.refresh = ({ answers, state }) => {
    const counted = model.scoreOf(lesson, answers);
    setText(score, ["score", "scoreSecond", "scoreWrong", "scoreShown", "scoreOpen"]
      .filter((name, i) => i === 0 || counted[["first", "second", "wrong", "shown", "open"][i]])
      .map((name) => text(`lessons.${name}`, counted)).join(" "));
    if (next) {
      const { present, votes: isVoting } = state.lessons;
      set(onward, { href: `#part=lessons&lesson=${next.number}${present ? "&present=1" : ""}${isVoting ? "&votes=1" : ""}` });
    }
  };
  return element;
}

function makeView(one, lesson) {
  if (one.kind === "end") return makeEnd(lesson);
  if (one.kind !== "question") return makeEvent(one);
  return makeQuestion(one.event, {
    key: `${lesson.slug}-${one.event.id}`, answer, giveUp, hint, talk, showVotes, vote: countVote,
    isVoting: () => Boolean(now().lessons.votes),
  });
}

function updateView(element, one, { state, lesson, answers }) {
  if (one.kind !== "question") {
    element.refresh?.({ state, answers });
    return;
  }
  const questions = model.questionsOf(lesson), question = one.event;
  element.refresh({
    record: answers[question.id] ?? model.NO_RECORD, votes: votesOf(lesson, question), isVoting: Boolean(state.lessons.votes),
    isArmed: armed === `show/${question.id}`, number: questions.indexOf(question) + 1, total: questions.length,
  });
}

function showCard(card, views, shown) {
  patch(card, views, (one) => one.key, (one) => makeView(one, shown.lesson), (element, one) => updateView(element, one, shown));
}

function buildList() {
  const unknown = make("p", { class: "unknown" }), rows = make("ol");
  const list = make("div", { class: "lesson-list" },
    make("h2", { tabindex: "-1" }, text("lessons.title")), make("p", {}, text("lessons.intro")), unknown, rows);
  return { list, unknown, rows };
}

function buildHead() {
  const title = make("h2", { tabindex: "-1" }), progress = make("span", { class: "dots", role: "img" });
  const present = button("present", () => change({ lessons: { present: 1 } }));
  const voting = button("voting", () => change({ lessons: { votes: now().lessons.votes ? 0 : 1 } }));
  const prints = [button("printQuestions", () => openSheet("questions")), button("printAnswers", () => openSheet("answers"))];
  const teach = make("details", { class: "teach" }, make("summary", {}, text("lessons.teach")),
    make("div", { class: "group" }, present, voting, ...prints));
  const back = link(text("lessons.all"), { lesson: 0 }, { class: "back-to-list" });
  return { head: make("div", { class: "lesson-head" }, back, title, progress, teach), title, progress, present, voting, teach };
}

function buildFoot(presenter) {
  const back = button("back", () => toStep(moment().step - 1)), say = make("p", { class: "say", role: "status" });
  const next = button("nextStep", () => toStep(moment().step + 1), { class: "key" });
  const help = button("settings", () => presenter.settings.showModal(), { class: "small help" });
  const picture = button("live", presenting.live, { class: "small" });
  return { foot: make("div", { class: "foot" }, back, next, say, picture, help), back, next, say, picture };
}

function buildSheet() {
  const paper = make("div");
  const back = button("backToLesson", () => change({ lessons: { sheet: "" } }));
  const print = button("print", () => globalThis.print(), { class: "key" });
  return { sheet: make("div", { class: "sheet" }, make("div", { class: "group" }, back, print), paper), paper };
}

export function build(section) {
  const presenter = makePresenter(presenting);
  const corner = make("span", { class: "corner number" }), missing = make("p", { class: "missing" });
  const context = make("div", { class: "context" }), steps = make("div", { class: "steps" }), results = make("div", { class: "results" });
  const talk = make("div", { class: "talk" }, context, steps, results);
  view = { section, presenter, corner, missing, context, steps, results, talk, ...buildList(), ...buildHead(), ...buildFoot(presenter), ...buildSheet() };
  view.lesson = make("div", { class: "lesson" }, view.head, corner, missing, talk, view.foot);
  section.append(view.list, view.lesson, view.sheet, presenter.settings, presenter.black);
}

// ---- updating ----

export function update(state) {
  const lesson = lessonOf(state), { sheet } = state.lessons;
  const isSheet = Boolean(lesson && sheet && model.isRecorded(lesson)), isPresenting = Boolean(lesson && state.lessons.present && !isSheet);
  set(view.list, { hidden: lesson !== null });
  set(view.lesson, { hidden: lesson === null || isSheet });
  set(view.sheet, { hidden: !isSheet });
  set(view.section, { class: isPresenting ? "presenting" : "" });
  if (!lesson) showList(state);
  else if (isSheet) view.paper.replaceChildren(sheet === "questions" ? questionsSheet(lesson) : answersSheet(lesson));
  else showLesson(state, lesson, isPresenting);
  moveOn(state, lesson);
  live.fitScene(state, lesson);
}

function showList(state) {
  setText(view.unknown, state.lessons.lesson ? text("lessons.unknown", { number: state.lessons.lesson }) : "");
  patch(view.rows, lessons, (one) => one.slug, makeRow, (row, one) => updateRow(row, one, state));
}

function showLesson(state, lesson, isPresenting) {
  const step = stepIn(lesson, state), count = model.stepsOf(lesson), isRecorded = model.isRecorded(lesson);
  const answers = answersOf(lesson, state), shown = { state, lesson, answers };
  setText(view.title, lessonName(lesson));
  setText(view.missing, isRecorded ? "" : text("lessons.missing", { why: model.whyMissing(lesson), slug: lesson.slug }));
  setText(view.corner, isPresenting ? codeOf(state) : "");
  set(view.voting, { "aria-pressed": String(Boolean(state.lessons.votes)) });
  view.presenter.update(Boolean(state.lessons.votes));
  for (const element of [view.teach, view.progress, view.foot]) set(element, { hidden: !isRecorded });
  const { total, open } = model.scoreOf(lesson, answers);
  if (isRecorded) showDots(view.progress, model.progressOf(lesson, answers), step);
  set(view.progress, { "aria-label": text("lessons.progress", { step, count, at: total - open, n: total }) });
  const views = !isRecorded ? [] : isPresenting ? model.visibleAlone(lesson, step, answers) : model.visible(lesson, step, answers);
  const cards = [...new Set(views.map((one) => one.step))];
  const makeCard = (number) => make("section", { class: "card", "aria-label": text("lessons.step", { number }) });
  const context = isPresenting ? model.contextOf(lesson, step, answers) : [];
  const results = context.length ? model.resultsOf(views) : []; // a class sees them next to the verdict
  patch(view.steps, cards, (number) => `${lesson.slug}/${number}`, makeCard,
    (card, number) => showCard(card, views.filter((one) => one.step === number && !results.includes(one)), shown));
  for (const [box, some] of [[view.context, context], [view.results, results]]) {
    patch(box, some, (one) => `${lesson.slug}/${one.step}/${one.key}`, (one) => makeView(one, lesson));
    set(box, { hidden: some.length === 0 });
  }
  set(view.picture, { hidden: !isPresenting || !hasEngine() || !model.livePart(lesson) });
  setText(view.picture, text(live.isAlone(state) ? "lessons.backToLesson" : "lessons.live"));
  set(view.back, { hidden: step === 1 });
  set(view.next, { hidden: step === count || model.openQuestion(lesson, step, answers) !== null });
  if (isRecorded) keepStep(lesson, state, step);
}

let place = null; // the lesson and step that were shown last

// Moves focus and scroll position to what is new, but not while the page starts.
function moveOn(state, lesson) {
  const { sheet, present } = state.lessons;
  const next = { part: state.part, lesson: lesson?.slug ?? "", step: lesson ? stepIn(lesson, state) : 0, sheet, present };
  const before = place;
  place = next;
  if (state.part !== "lessons" || next.sheet || (before && JSON.stringify(before) === JSON.stringify(next))) return;
  disarm();
  const card = view.steps.lastElementChild, isFirst = next.step <= 1 || next.present;
  const target = live.isAlone(state) ? view.picture : !lesson ? view.list.querySelector("h2") : next.step > 1 || (before && before.lesson === next.lesson)
    ? card?.querySelector("h3") ?? view.title : view.title;
  if (before) target.focus({ preventScroll: true });
  // The page scrolls to the top when it changes the part, so this scrolls afterwards.
  queueMicrotask(() => {
    if (!lesson || isFirst) scrollTo(0, 0);
    else card?.scrollIntoView({ block: "start" });
  });
}
