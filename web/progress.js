// Keeps the answers of the learner: in localStorage if the browser allows it, and else until the page is closed.
import { readRecords } from "./lesson_model.js";

// Answers in front of a class are kept apart, so that the answers of the teacher do not show, and only as long as the tab is open.
const STORES = {
  alone: { name: "tally-lessons", storage: () => localStorage },
  class: { name: "tally-class", storage: () => sessionStorage },
};
const kept = {}; // for each store, {slug: {step, questions: {id: record}}}

function load(which) {
  if (kept[which]) return kept[which];
  kept[which] = {};
  try {
    const stored = JSON.parse(STORES[which].storage().getItem(STORES[which].name));
    if (stored && typeof stored === "object" && !Array.isArray(stored)) kept[which] = stored;
  } catch {
    // The browser has no storage, or the stored text is damaged: the page begins without answers.
  }
  return kept[which];
}

function save(which) {
  try {
    STORES[which].storage().setItem(STORES[which].name, JSON.stringify(kept[which]));
  } catch {
    // The browser has no storage: the answers are kept until the page is closed.
  }
}

const whichOf = (state) => state.lessons.present ? "class" : "alone";
const checked = new Map(); // the records of a lesson that were compared with its questions once

export function answersOf(lesson, state) {
  const which = whichOf(state), key = `${which}/${lesson.slug}`;
  if (!checked.has(key)) checked.set(key, readRecords(lesson, load(which)[lesson.slug]?.questions));
  return checked.get(key);
}

export function keepAnswer(lesson, state, id, record) {
  const which = whichOf(state), answers = { ...answersOf(lesson, state), [id]: record };
  checked.set(`${which}/${lesson.slug}`, answers);
  load(which)[lesson.slug] = { ...load(which)[lesson.slug], questions: answers };
  save(which);
}

export function forgetAnswers(lesson, state) {
  const which = whichOf(state);
  checked.delete(`${which}/${lesson.slug}`);
  delete load(which)[lesson.slug];
  save(which);
}

// Returns the last step that the learner has seen.
export function stepSeen(lesson, state) {
  const step = load(whichOf(state))[lesson.slug]?.step;
  return Number.isInteger(step) ? step : 0;
}

export function keepStep(lesson, state, step) {
  if (stepSeen(lesson, state) === step) return;
  const which = whichOf(state);
  load(which)[lesson.slug] = { ...load(which)[lesson.slug], step };
  save(which);
}
