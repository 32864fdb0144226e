// Makes the printed sheets of a lesson: one with the questions, and one with the answers.
import { make } from "./elements.js";
import { orderOf, questionsOf, titleOf } from "./lesson_model.js";
import { printEvent } from "./lesson_events.js";
import { readable } from "./numbers.js";
import { text } from "./texts.js";

const optionsOf = (question) => orderOf(question).map((i) => ({
  words: question.kind === "number" ? readable(question.options[i]) : question.options[i], mistake: question.mistakes[i],
}));

const heading = (lesson, name) => make("h2", {}, text(name, { number: lesson.number, title: titleOf(lesson).title }));
const line = () => make("div", { class: "line" });
const questionLine = (question, number) =>
  make("p", {}, make("strong", {}, text("lessons.sheetQuestion", { number, question: question.question })));

function printQuestion(question, number) {
  const choice = question.kind === "number" ? [make("p", {}, text("lessons.sheetNumber"))]
    : [make("p", { class: "quiet" }, text("lessons.sheetBoxes")),
      ...optionsOf(question).map(({ words }) => make("p", { class: "boxes" }, text("lessons.sheetBox", { words })))];
  return make("div", { class: "asked" }, questionLine(question, number), ...choice, make("p", {}, text("lessons.because")), line(), line());
}

// The sheet of questions has only what comes before the first question, because later events show answers.
export function questionsSheet(lesson) {
  const questions = questionsOf(lesson), first = lesson.events.indexOf(questions[0]);
  const given = lesson.events.slice(0, Math.max(first, 0)).filter((event) => event.event !== "graph").flatMap(printEvent);
  return make("div", { class: "paper" }, heading(lesson, "lessons.sheetQuestions"),
    make("p", { class: "name-and-date" }, make("span", {}, text("lessons.name")), make("span", {}, text("lessons.date"))),
    ...given, ...questions.map((question, i) => printQuestion(question, i + 1)));
}

function printAnswer(question, number) {
  const right = question.options[question.answer - 1], answer = question.kind === "number" ? readable(right) : right;
  const mistakes = optionsOf(question).filter(({ mistake }) => mistake);
  return make("div", { class: "asked" }, questionLine(question, number),
    make("p", {}, make("strong", {}, text("lessons.sheetAnswer", { answer })), " ", question.why),
    make("ul", {}, ...mistakes.map(({ words, mistake }) => make("li", {}, text("lessons.sheetMistake", { words, mistake })))));
}

export function answersSheet(lesson) {
  let number = 0;
  return make("div", { class: "paper" }, heading(lesson, "lessons.sheetAnswers"), ...lesson.events.flatMap((event) =>
    event.event === "prediction" ? [printAnswer(event, ++number)] : printEvent(event)));
}
