// Shows a live picture next to a lesson: sets it when the lesson begins, and plays it when a question is answered.
import { hasEngine, lessons } from "./calls.js";
import { livePart, sceneOf } from "./lesson_model.js";
import { answersOf } from "./progress.js";
import { LESSON_ALONE, PICTURE_ALONE } from "./state.js";
import { change, now, play } from "./store.js";

const STEP = 900; // milliseconds for each micro-batch

export const lessonOf = (state) => lessons.find((lesson) => lesson.number === state.lessons.lesson) ?? null;

// Returns the part that is shown next to the lesson, or null. A class sees either the lesson or the picture, as large as the screen.
export function liveOf(state) {
  return state.lessons.present === LESSON_ALONE || state.lessons.sheet ? null : livePart(lessonOf(state));
}

export const isAlone = (state) => hasEngine() && state.part === "lessons" && state.lessons.present === PICTURE_ALONE && liveOf(state) !== null;

let scene = "", timer = 0;

export function fitScene(state, lesson) {
  if (state.part !== "lessons" || state.lessons.present === LESSON_ALONE) return; // a class returns to the picture as it was
  const wanted = liveOf(state) && hasEngine() ? sceneOf(lesson, answersOf(lesson, state)) : null;
  if ((wanted?.name ?? "") === scene) return;
  const isNext = wanted && scene.split("/")[0] === lesson.slug; // an answer led from one scene to the next
  scene = wanted?.name ?? "";
  clearTimeout(timer);
  if (wanted) queueMicrotask(() => showScene(wanted, isNext));
}

// Changes the live picture after the present update of the page. A scene of the toy that follows an answer is played.
function showScene({ part, name, values }, isPlayed) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const isFilm = part === "toy" && isPlayed && values.at > 0 && !calm;
  change({ [part]: isFilm ? { ...values, at: 0 } : values });
  if (isFilm) timer = setTimeout(() => playScene(name, values, 1), STEP);
}

// A learner who changes the cut or the time ends the film.
function playScene(name, values, at) {
  const { part, toy } = now();
  const isChanged = toy.at !== at - 1 || String(toy.cuts) !== String(values.cuts) || toy.divide !== values.divide;
  if (part !== "lessons" || scene !== name || isChanged) return;
  play({ toy: { at } });
  if (at < values.at) timer = setTimeout(() => playScene(name, values, at + 1), STEP);
}
