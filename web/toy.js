// The first screen: cut six rows into micro-batches, guess the gradient, and play.
import { ask, courseToy, tensor } from "./calls.js";
import { byId, choices, dragging, isFirst, make, numberField, set, setText, shape } from "./elements.js";
import { bitsOf, fits32, formatBytes, joinBits, parseNumber, shortest, valueOf } from "./numbers.js";
import { makeRace, showRace } from "./race.js";
import { makeStage } from "./stage.js";
import { change, endGesture, now, play as show, remember } from "./store.js";
import { text } from "./texts.js";
import { GUESSES, PRESETS, compare, gapsOf, largerSizes, mistakeOf, moveCut, toggleCut } from "./toy_model.js";

const STEP = 900; // milliseconds for each micro-batch
const MEMORY = { width: 360, height: 70 }; // of the picture of the memory

const numbersOf = (toy) => {
  const course = courseToy();
  return { x: toy.x ?? course.x, w: toy.w ?? course.w };
};

// Returns f(...values), and keeps the answers: a picture that moves asks for the same ones in each frame.
function remembering(f) {
  const answers = new Map();
  return (...values) => {
    const key = JSON.stringify(values, (_, value) => Object.is(value, -0) ? "-0" : value);
    if (!answers.has(key)) {
      if (answers.size > 200) answers.clear();
      answers.set(key, f(...values));
    }
    return answers.get(key);
  };
}

const gradients = remembering((x, w, cuts, divide) =>
  ask("toy", Float32Array.from(x), x.length, Float32Array.from(w), Int32Array.from(cuts), cuts.length, divide));
const memoryOf = remembering((sizes) => ask("batch_memory", Int32Array.from(sizes), sizes.length));

function gradientsOf(toy) {
  const { x, w } = numbersOf(toy);
  return gradients(x, w, toy.cuts, toy.divide);
}

// Returns the largest number of the picture for any scaling, so that a change of the scaling keeps the scale of the bars.
function highest(toy, answer) {
  const numbers = [0, 1, 2].flatMap((divide) => gradientsOf({ ...toy, divide }).parts.flatMap((part) => part.grad.map(valueOf)));
  const finite = [...numbers, ...answer.full.map(valueOf)].filter(Number.isFinite).map(Math.abs);
  return 1.06 * Math.max(...finite, 1e-30);
}

// A change of the cut shows all micro-batches of the new cut if all of the old cut were shown, and else none.
function cutInto(sizes, name = null) {
  const { toy } = now();
  if (String(sizes) === String(toy.cuts)) return false;
  stop();
  change({ toy: { cuts: sizes, at: toy.at > 0 ? sizes.length : 0, guess: null } }, name);
  return true;
}

function putNumber(name, index, value, gesture = null) {
  const { toy } = now();
  const values = [...numbersOf(toy)[name]];
  values[index] = Math.fround(value);
  const course = courseToy()[name];
  change({ toy: { [name]: values.every((one, i) => Object.is(one, course[i])) ? null : values, guess: null } }, gesture);
}

const readNumber = (what) => (words) => {
  if (words.trim() === "") return { wrong: text("field.empty") };
  const value = parseNumber(words);
  if (Number.isNaN(value)) return { wrong: text("field.notNumber", { what, text: words.trim() }) };
  if (!fits32(value)) return { wrong: text("field.tooLarge", { what, text: words.trim() }) };
  return { value };
};

// A text field for a number of x or w. The arrow keys up and down change the number by 1/8.
function cellField(name, index, what) {
  const wrapper = numberField({ id: `${name}${index}`, "aria-label": what }, readNumber(what), (value) => putNumber(name, index, value));
  wrapper.classList.add("cell");
  wrapper.field.addEventListener("keydown", (event) => {
    const by = { ArrowUp: 0.125, ArrowDown: -0.125 }[event.key];
    if (!by) return;
    event.preventDefault();
    const { value: typed } = readNumber(what)(wrapper.field.value);
    const value = Math.fround((typed ?? numbersOf(now().toy)[name][index]) + by);
    wrapper.clear();
    wrapper.field.value = shortest(value);
    putNumber(name, index, value, `${name}${index}`);
  });
  wrapper.field.addEventListener("blur", endGesture);
  scrub(wrapper, name, index);
  return wrapper;
}

// Lets a mouse pull the number of a field to the left or right. A click selects the number instead.
function scrub(wrapper, name, index) {
  const { field } = wrapper;
  let isPulled = false;
  field.addEventListener("pointerdown", (event) => {
    isPulled = isFirst(event) && event.pointerType === "mouse" && field !== document.activeElement;
    if (!isPulled) return;
    const from = numbersOf(now().toy)[name][index];
    let moved = false;
    dragging(field, event, (next) => {
      const by = next.clientX - event.clientX;
      if (!moved && Math.abs(by) <= 4) return;
      moved = true;
      wrapper.clear();
      putNumber(name, index, from + Math.round(by / 12) / 8, `pull ${name}${index}`);
    }, () => {
      endGesture();
      if (moved) return;
      field.focus();
      field.select();
    });
  });
  field.addEventListener("mousedown", (event) => { if (isPulled) event.preventDefault(); });
}

let timer = 0, frame = 0, growth = 1, moment = null; // the state that the playback has set last
const playing = () => timer !== 0;

function stop() {
  clearTimeout(timer);
  cancelAnimationFrame(frame);
  timer = 0;
  growth = 1;
}

function playFrom(at) {
  stop();
  const { toy } = now();
  const next = at >= toy.cuts.length ? 1 : at + 1;
  const begun = performance.now();
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  growth = calm ? 1 : 0;
  timer = setTimeout(() => {
    if (byId("toy").hidden || next >= now().toy.cuts.length) {
      stop();
      update(now());
    } else playFrom(next);
  }, STEP);
  moment = { ...toy, at: next };
  show({ toy: { at: next } });
  const grow = (time) => {
    growth = Math.min(1, Math.max(0, (time - begun) / (STEP * 0.7)));
    update(now());
    if (growth < 1) frame = requestAnimationFrame(grow);
  };
  if (!calm) frame = requestAnimationFrame(grow);
}

function togglePlay() {
  if (playing()) {
    stop();
    update(now());
    return;
  }
  remember();
  const { toy } = now();
  playFrom(toy.at < toy.cuts.length ? toy.at : 0);
}

function startAnew() {
  stop();
  [...document.querySelectorAll("#toy .field")].forEach((field) => field.clear());
  change({ toy: { x: null, w: null, cuts: [6], divide: 0, at: 0, guess: null, compare: -1 } });
}

const rivalOf = ({ compare, divide }) => compare === divide ? -1 : compare; // a scaling is not compared with itself

let view = null;

export function build(section) {
  const hands = {
    isCut: (gap) => gapsOf(now().toy.cuts)[gap],
    toggle: (gap, name) => cutInto(toggleCut(now().toy.cuts, gap), name),
    move: (from, to, name) => cutInto(moveCut(now().toy.cuts, from, to), name),
    cell: (row, number) => cellField("x", 3 * row + number, text("toy.cell", { row, number: number + 1 })),
    guess: (factor, name) => {
      const near = GUESSES.find((one) => Math.abs(one - factor) < 0.12 * one);
      change({ toy: { guess: near ?? Math.max(-9, Math.min(9, Math.round(factor * 20) / 20)) } }, name);
    },
    end: endGesture,
  };
  const stage = makeStage(hands);
  const presets = choices(text("toy.presets"), text("toy.presetNames"), (i) => cutInto(PRESETS[i]));
  const scaling = choices(text("toy.scaling"), text("toy.scalings"), (i) => {
    stop();
    change({ toy: { divide: i, guess: null } });
  });
  const guesses = choices(text("toy.guess"), GUESSES.map((one) => `×${one < 1 ? `1/${Math.round(1 / one)}` : one}`),
    (i) => change({ toy: { guess: GUESSES[i] } }));
  const time = make("input", {
    type: "range", min: 0, step: 1, "aria-label": text("toy.time"),
    oninput: () => { stop(); change({ toy: { at: Number(time.value) } }, "time"); }, onchange: endGesture,
  });
  const play = make("button", { type: "button", class: "key", onclick: togglePlay }, text("toy.play"));
  const words = make("p", { id: "verdict", class: "verdict", role: "status" });
  const bits = make("p", { class: "quiet number", id: "bits" });
  const memory = { held: shape("path", { class: "held" }), later: shape("path", { class: "held later" }) };
  memory.picture = shape("svg", { class: "memory", viewBox: `0 0 ${MEMORY.width} ${MEMORY.height}`, role: "img", preserveAspectRatio: "none" },
    shape("line", { class: "full", x1: 0, x2: MEMORY.width, y1: 3, y2: 3 }), memory.held, memory.later);
  const memoryWords = make("p", { class: "quiet", id: "memory-words" });
  const weights = [0, 1, 2].map((i) => cellField("w", i, text("toy.weight", { number: i + 1 })));
  const checked = make("p", { class: "quiet", id: "badge" });
  const memoryFigure = make("figure", {}, make("figcaption", { class: "quiet" }, text("toy.memory")), memory.picture, memoryWords);
  const { race, track, raceWords } = makeRace();
  const rivals = choices(text("toy.compare"), [text("toy.compareNone"), ...text("toy.scalingsShort")], (i) => change({ toy: { compare: i - 1 } }));
  const reset = make("button", { type: "button", id: "reset-toy", onclick: startAnew }, text("reset"));
  const guessing = make("div", { class: "group", id: "guessing" }, make("span", { class: "quiet" }, text("toy.guess")), guesses);
  section.append(
    make("h2", {}, text("toy.title")),
    make("div", { class: "bar" },
      make("div", { class: "group" }, make("span", { class: "quiet" }, text("toy.presets")), presets),
      make("div", { class: "group" }, make("span", { class: "quiet" }, text("toy.scaling")), scaling),
      make("div", { class: "group playing" }, play, time)),
    stage.element,
    make("div", { class: "result" },
      make("div", { class: "words" }, words, guessing, bits),
      make("div", { class: "more" }, make("span", { class: "group" }, make("span", { class: "number" }, "w ="), ...weights),
        make("span", { class: "group" }, make("span", { class: "quiet" }, text("toy.compare")), rivals), reset, checked),
      memoryFigure, race));
  view = { stage, presets, scaling, guesses, guessing, time, play, words, bits, memory, memoryWords, memoryFigure, race, track, raceWords, rivals, weights, checked };
  new ResizeObserver(() => {
    stage.fit();
    update(now());
  }).observe(stage.element);
  stage.fit();
  checkBits();
}

export function update(state) {
  const { toy } = state;
  if (playing() && (toy.at !== moment.at || toy.cuts !== moment.cuts || toy.divide !== moment.divide)) stop(); // undo, or a link
  const { x, w } = numbersOf(toy);
  const answer = gradientsOf(toy), rival = rivalOf(toy);
  const model = { x, sizes: toy.cuts, divide: toy.divide, at: toy.at, guess: toy.guess, playing: playing(), growth,
    rival: rival >= 0 ? gradientsOf({ ...toy, divide: rival }) : null,
    names: { a: text("toy.scalingsShort")[toy.divide], b: text("toy.scalingsShort")[rival] } };
  view.stage.draw(model, answer, highest(toy, answer));
  view.presets.choose(PRESETS.findIndex((sizes) => String(sizes) === String(toy.cuts)));
  view.scaling.choose(toy.divide);
  view.rivals.choose(rival + 1);
  [...view.rivals.children].forEach((button, i) => set(button, { disabled: i === toy.divide + 1 }));
  view.guesses.choose(GUESSES.indexOf(toy.guess));
  set(view.time, { max: toy.cuts.length, "aria-valuetext": text("toy.timeValue", { at: toy.at, n: toy.cuts.length }) });
  view.time.value = toy.at;
  setText(view.play, text(playing() ? "toy.pause" : toy.at > 0 && toy.at < toy.cuts.length ? "toy.goOn" : "toy.play"));
  x.forEach((value, i) => {
    const cell = document.getElementById(`x${i}`).parentElement;
    cell.put(shortest(value));
    cell.style.setProperty("--tint", `${Math.min(45, 6 + Math.abs(value) * 20)}%`);
    set(cell, { class: `field cell ${value < 0 ? "minus" : "plus"}` });
  });
  w.forEach((value, i) => view.weights[i].put(shortest(value)));
  const done = toy.at === toy.cuts.length && !(playing() && growth < 1);
  showWords(toy, answer, done);
  set(view.guessing, { hidden: toy.at > 0 || toy.cuts.length === 1 });
  setText(view.bits, done && answer.same ? text("toy.bits", { bits: joinBits(answer.sum) }) : "");
  set(view.memoryFigure, { hidden: rival >= 0 });
  set(view.race, { hidden: rival < 0 });
  if (rival < 0) showMemory(toy, playing() ? toy.at - 1 + growth : toy.at === 0 ? toy.cuts.length : toy.at);
  else showRace(view.track, view.raceWords, { ...toy, x });
}

function showWords(toy, answer, done) {
  const lines = [];
  let kind = "";
  if (toy.at === 0) lines.push(text(toy.cuts.length === 1 ? "toy.sayStart" : toy.guess === null && now().part === "toy" ? "toy.sayGuess" : "toy.sayReady"));
  else if (!done) lines.push(text("toy.sayPlaying", { at: toy.at, n: toy.cuts.length }));
  else {
    const verdict = compare(answer.full.map(valueOf), answer.sum.map(valueOf), answer.same, toy.cuts, toy.divide);
    kind = verdict.kind === "same" || verdict.kind === "rounding" ? "same" : "other";
    const words = text(`verdict.${verdict.kind}`, { factor: verdict.factor ?? "", weight: [...new Set(toy.cuts)].map((size) => `1/${size}`).join(" or ") });
    const guessed = toy.guess === null ? [] : judged(toy, verdict.kind);
    lines.push(...guessed, guessed.length ? words.replace(/^[✓✗] /, "") : words);
    if (kind === "same" && toy.cuts.length > 1 && toy.divide > 0) lines.push(text(toy.divide === 1 ? "verdict.equalParts" : "verdict.everyCut"));
  }
  setText(view.words, lines.join(" "));
  set(view.words, { class: `verdict ${kind}` });
}

// Says whether the guess was right, and explains a wrong one.
function judged({ guess, cuts, divide }, kind) {
  const factor = GUESSES.includes(guess) && guess < 1 ? `1/${Math.round(1 / guess)}` : String(guess);
  if (!["same", "rounding", "factor"].includes(kind)) return [text("toy.noFactor", { factor })];
  const mistake = mistakeOf(guess, cuts, divide);
  return mistake ? [text("toy.wrong", { factor }), text(`mistake.${mistake}`, { size: cuts[0], parts: cuts.length })] : [text("toy.right", { factor })];
}

// The measured memory of a larger training, one bar for each moment, for the same cut and for all items at once.
function showMemory(toy, reached) {
  const sizes = largerSizes(toy.cuts);
  const cut = memoryOf(sizes), whole = memoryOf([64]);
  const step = MEMORY.width / Math.max(cut.moments.length, 1), scale = (MEMORY.height - 4) / whole.peak;
  const done = Math.ceil(reached * cut.moments.length / sizes.length);
  const bars = (from, to) => cut.moments.slice(from, to).map((bytes, i) =>
    `M${(from + i) * step} ${MEMORY.height}v${-bytes * scale}h${Math.max(0.5, step - 0.3)}v${bytes * scale}z`).join("");
  set(view.memory.held, { d: bars(0, done) });
  set(view.memory.later, { d: bars(done) });
  const words = text(toy.cuts.length === 1 ? "toy.memoryFull" : "toy.memoryWords", { peak: formatBytes(cut.peak), full: formatBytes(whole.peak) });
  set(view.memory.picture, { "aria-label": words });
  setText(view.memoryWords, words);
}

// Compares the bits of the course's toy with those that the C++ lessons recorded.
function checkBits() {
  const mine = (divide) => gradientsOf({ x: null, w: null, cuts: [2, 2, 2], divide });
  const once = mine(0), divided = mine(1);
  const theirs = (name) => tensor("divide", name).values.map(bitsOf).join(" ");
  const same = joinBits(once.full) === theirs("full batch") && joinBits(once.sum) === theirs("sum of the micro-batches") &&
    joinBits(divided.sum) === theirs("w.grad");
  setText(view.checked, text(same ? "toy.checked" : "toy.notChecked", { mine: joinBits(once.full), theirs: theirs("full batch") }));
}
