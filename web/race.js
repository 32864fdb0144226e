// Draws the tracks of w in ten SGD steps, for two ways to scale the losses of micro-batches.
import { ask } from "./calls.js";
import { make, set, setText, shape } from "./elements.js";
import { valueOf } from "./numbers.js";
import { text } from "./texts.js";

const SIDE = 100, FROM = -0.6, TO = 1.8; // the part of the plane that is shown, for both components
const RATE = 0.6, STEPS = 10;

const place = (value) => (value - FROM) / (TO - FROM) * SIDE;

export function makeRace() {
  const track = shape("svg", { class: "track", viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img" },
    shape("rect", { class: "frame", x: 0.5, y: 0.5, width: SIDE - 1, height: SIDE - 1 }),
    shape("circle", { class: "goal", cx: place(1), cy: SIDE - place(1), r: 3.5 }),
    shape("path", { class: "path whole" }), shape("path", { class: "path first" }), shape("path", { class: "path second" }));
  const raceWords = make("p", { class: "quiet", id: "race-words" });
  const race = make("figure", { class: "race", hidden: true }, make("figcaption", { class: "quiet" }, text("toy.race")), track, raceWords);
  return { race, track, raceWords };
}

function run(x, sizes, divide) {
  const { track } = ask("race", Float32Array.from(x), x.length, Int32Array.from(sizes), sizes.length, divide, RATE, STEPS);
  return track.map((point) => point.map(valueOf));
}

const pathOf = (points) => points.filter((point) => point.every(Number.isFinite))
  .map(([a, b], i) => `${i ? "L" : "M"}${Math.max(-1e4, Math.min(1e4, place(a)))} ${Math.max(-1e4, Math.min(1e4, SIDE - place(b)))}`).join("");

function distance(points) {
  const far = Math.hypot(...points.at(-1).map((value) => value - 1));
  return far < 100 ? far.toFixed(2) : text("toy.raceFar");
}

export function showRace(track, words, toy) {
  const names = text("toy.scalingsShort");
  const whole = run(toy.x, [6], 0), first = run(toy.x, toy.cuts, toy.divide), second = run(toy.x, toy.cuts, toy.compare);
  const paths = track.querySelectorAll(".path");
  [whole, first, second].forEach((points, i) => set(paths[i], { d: pathOf(points) }));
  setText(words, text("toy.raceWords", { a: distance(first), b: distance(second), nameA: names[toy.divide], nameB: names[toy.compare] }));
  set(track, { "aria-label": words.textContent });
}
