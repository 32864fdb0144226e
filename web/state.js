// Describes the state of the page, its link, and its short code. Needs no browser.
import { mostThrows } from "./noise_model.js";
import { parseNumber, fits32, shortest } from "./numbers.js";

export const PARTS = ["toy", "lessons", "chain", "noise"];

// lessons.present is 0 while no teacher presents. Otherwise it says whether a class sees the lesson or its live picture.
export const LESSON_ALONE = 1;
export const PICTURE_ALONE = 2;

// x and w of the toy are null while they are the numbers of the course. noise.found lists [size, count, thrown, spread] of each
// setting that was thrown; only the history contains it.
export const START = {
  part: "toy",
  toy: { x: null, w: null, cuts: [6], divide: 0, at: 0, guess: null, compare: -1 },
  lessons: { lesson: 0, step: 1, present: 0, votes: 0, sheet: "" },
  chain: { layers: 16, cuts: [0, 4, 8, 12], budget: 0 },
  noise: { size: 8, count: 1, seed: 0, thrown: 0, law: 0, near: 0, found: [] },
};

// Returns the state with the changes of a patch such as {part: "toy", toy: {at: 1}}.
export function patched(state, patch) {
  const next = { ...state };
  for (const [name, value] of Object.entries(patch))
    next[name] = value && typeof value === "object" && !Array.isArray(value) ? { ...state[name], ...value } : value;
  return next;
}

const WHOLE = /^(0|[1-9]\d{0,6})$/;
const whole = (least, most) => ({
  read: (text) => WHOLE.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : undefined,
  write: String,
});
const numbers = (count) => ({
  read: (text) => {
    const values = text.split(",").map(parseNumber);
    return values.length === count && values.every((value) => fits32(value)) ? values.map(Math.fround) : undefined;
  },
  write: (values) => values.map(shortest).join(","),
});
const sizes = {
  read: (text) => {
    const values = text.split(",");
    return values.every((size) => /^[1-6]$/.test(size)) && values.reduce((sum, size) => sum + Number(size), 0) === 6
      ? values.map(Number) : undefined;
  },
  write: (values) => values.join(","),
};
const oneOf = (...words) => ({ read: (text) => words.includes(text) ? text : undefined, write: String });
const starts = {
  read: (text) => {
    const values = text.split(",");
    return values[0] === "0" && values.every((value, i) => WHOLE.test(value) && (i === 0 || Number(value) > Number(values[i - 1])))
      ? values.map(Number) : undefined;
  },
  write: (values) => values.join(","),
};

// The fields of a link, for each part. Each has a reader that returns undefined for a wrong text.
const FIELDS = {
  toy: { cuts: sizes, divide: whole(0, 2), at: whole(0, 6), x: numbers(18), w: numbers(3), compare: whole(0, 2) },
  lessons: { lesson: whole(0, 99), step: whole(1, 99), present: whole(0, PICTURE_ALONE), votes: whole(0, 1), sheet: oneOf("questions", "answers") },
  chain: { layers: whole(2, 64), cuts: starts, budget: whole(0, 10_000_000) },
  noise: {
    size: whole(1, 512), count: whole(1, 64), seed: whole(0, 1_000_000), thrown: whole(0, 500), law: whole(0, 1), near: whole(0, 1),
  },
};

// Returns the hash of the link. It contains the fields of the shown part that differ from the start.
export function linkOf(state) {
  const fields = new URLSearchParams({ part: state.part });
  for (const [name, { write }] of Object.entries(FIELDS[state.part])) {
    const value = state[state.part][name];
    if (value !== null && value !== -1 && String(value) !== String(START[state.part][name])) fields.set(name, write(value));
  }
  return `#${fields}`;
}

// Returns the state that a link describes, and the names of fields that cannot be read. A field that cannot be read keeps its start.
export function readLink(hash, state = START) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const unread = [];
  const part = fields.get("part") ?? state.part;
  if (!PARTS.includes(part)) return { state: { ...state }, unread: ["part"] };
  const values = {};
  for (const [name, text] of fields) {
    if (name === "part") continue;
    const value = FIELDS[part][name]?.read(text);
    if (value === undefined) unread.push(name);
    else values[name] = value;
  }
  const fresh = [...fields.keys()].some((name) => name !== "part") ? START[part] : state[part];
  const next = { ...state, part, [part]: { ...fresh, ...values } };
  next.toy = { ...next.toy, at: Math.min(next.toy.at, next.toy.cuts.length) };
  const { layers, cuts } = next.chain;
  if (cuts.at(-1) >= layers) next.chain = { ...next.chain, cuts: cuts.filter((start) => start < layers) };
  next.noise = { ...next.noise, thrown: Math.min(next.noise.thrown, mostThrows(next.noise.count)) };
  return { state: next, unread };
}

const SCALING = "1nr"; // not scaled, divided by N, times the share of the rows

// Returns a short code that carries the state without a server, such as "S 222 n". The toy needs the numbers of the course.
export function codeOf(state) {
  if (state.part === "toy") return state.toy.x || state.toy.w ? "" : `S ${state.toy.cuts.join("")} ${SCALING[state.toy.divide]}`;
  if (state.part === "lessons") return state.lessons.lesson ? `L ${state.lessons.lesson} ${state.lessons.step}` : "";
  if (state.part === "chain") return `C ${state.chain.layers} ${state.chain.cuts.join(",")}`;
  return `N ${state.noise.size} ${state.noise.count}`;
}

// Returns the patch of a code, or null if the text is not a code.
export function readCode(text) {
  const words = text.trim().split(/\s+/);
  const fields = { S: ["cuts", "divide"], L: ["lesson", "step"], C: ["layers", "cuts"], N: ["size", "count"] }[words[0]?.toUpperCase()];
  if (!fields || words.length !== 3) return null;
  const part = { S: "toy", L: "lessons", C: "chain", N: "noise" }[words[0].toUpperCase()];
  const texts = part === "toy" ? [[...words[1]].join(","), String(SCALING.indexOf(words[2].toLowerCase()))] : words.slice(1);
  const values = fields.map((name, i) => FIELDS[part][name].read(texts[i]));
  if (values.includes(undefined)) return null;
  const patch = Object.fromEntries(fields.map((name, i) => [name, values[i]]));
  if (part === "toy") Object.assign(patch, { x: null, w: null, at: 0, guess: null });
  if (part === "noise") patch.thrown = 0;
  if (part === "chain" && patch.cuts.at(-1) >= patch.layers) return null;
  return { part, [part]: patch };
}
