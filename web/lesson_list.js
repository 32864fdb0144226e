// Shows the list of lessons with what was answered in each.
import { make, patch, set, setText } from "./elements.js";
import { isRecorded, progressOf, scoreOf, titleOf, whyMissing } from "./lesson_model.js";
import { answersOf, stepSeen } from "./progress.js";
import { text } from "./texts.js";

export function makeRow(lesson) {
  const { title, minutes } = titleOf(lesson);
  const name = [make("span", { class: "number-of" }, `${lesson.number}.`), make("span", { class: "title" }, title)];
  if (!isRecorded(lesson))
    return make("li", { class: "row missing" }, ...name, make("span", { class: "quiet" }, whyMissing(lesson)));
  const dots = make("span", { class: "dots" }), count = make("span", { class: "quiet count" }), go = make("span", { class: "go" });
  const time = make("span", { class: "quiet minutes" }, text("lessons.minutes", { n: minutes }));
  const anchor = make("a", { class: "row" }, ...name, time, count, dots, go);
  return Object.assign(make("li", {}, anchor), { anchor, dots, count, go });
}

export function updateRow(row, lesson, state) {
  if (!row.anchor) return;
  const answers = answersOf(lesson, state), seen = stepSeen(lesson, state);
  const { total, open } = scoreOf(lesson, answers), isDone = open === 0;
  set(row.anchor, { href: `#part=lessons&lesson=${lesson.number}${seen > 1 && !isDone ? `&step=${seen}` : ""}` });
  showDots(row.dots, progressOf(lesson, answers).filter((one) => one.isQuestion));
  setText(row.count, isDone ? text("lessons.done", { n: total }) : text("lessons.count2", { at: total - open, n: total }));
  setText(row.go, text(isDone ? "lessons.readAgain" : seen > 1 || open < total ? "lessons.goOn" : "lessons.begin"));
}

// Shows one dot for each question and one dash for each other step.
export const showDots = (parent, steps, step = 0) => patch(parent, steps, (one) => one.step, () => make("span"), (dot, one) => {
  const time = one.step === step ? " now" : one.step < step ? " seen" : "";
  set(dot, { class: `${one.isQuestion ? "ask-dot" : "dash"}${one.isOver ? " over" : ""}${time}` });
});
